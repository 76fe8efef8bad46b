struct LoadProfile: Hashable, Sendable {
    struct Piece: Hashable, Sendable {
        var seconds: Double
        var from: Double
        var to: Double

        var arrivals: Double { (from + to) / 2 * seconds }

        /// When so many of its requests were due, in seconds after its begin.
        ///
        /// The root of from * t + slope / 2 * t^2 = arrivals, in the form that does not cancel where the slope is
        /// small.
        func time(ofArrivals arrivals: Double) -> Double {
            if arrivals == 0 { return 0 }
            if from == to { return arrivals / from }
            let slope = (to - from) / seconds
            let root = max(0, from * from + 2 * slope * arrivals).squareRoot()
            return 2 * arrivals / (from + root)
        }
    }

    /// As reports name it: `constant`, `ramp`, `step`, `spike` or `soak`.
    let name: String
    /// At least one; the rate at the end of the last one goes on after it.
    let pieces: [Piece]

    static func constant(_ rate: Double, name: String = "constant") -> LoadProfile {
        LoadProfile(name: name, pieces: [Piece(seconds: .infinity, from: rate, to: rate)])
    }

    init(name: String, pieces: [Piece]) {
        precondition(!pieces.isEmpty, "a profile without a piece")
        precondition(
            pieces.allSatisfy { $0.seconds > 0 && $0.from >= 0 && $0.to >= 0 } && (pieces.last?.to ?? 0) > 0,
            "rates of 0 or more and a last one above 0 are needed: \(pieces)")
        self.name = name
        self.pieces = pieces
    }

    /// Requests a second that are due at a time.
    func rate(at seconds: Double) -> Double {
        var begin = 0.0
        for piece in pieces {
            if seconds < begin + piece.seconds {
                return piece.from == piece.to
                    ? piece.from : piece.from + (piece.to - piece.from) * (seconds - begin) / piece.seconds
            }
            begin += piece.seconds
        }
        return pieces[pieces.count - 1].to
    }

    /// When so many requests were due, in seconds after the start.
    func time(ofArrivals arrivals: Double) -> Double {
        var begin = 0.0
        var rest = arrivals
        for piece in pieces {
            let all = piece.arrivals
            if rest < all { return begin + piece.time(ofArrivals: rest) }
            rest -= all
            begin += piece.seconds
        }
        return begin + rest / pieces[pieces.count - 1].to
    }

    var rateMax: Double { pieces.map { max($0.from, $0.to) }.max() ?? 0 }
}

/// A profile as it is typed, before rate and duration are known.
enum LoadProfileText: Hashable, Sendable {
    case constant, soak
    /// From one rate to another, evenly.
    case ramp(from: Double, to: Double)
    /// Rates one after the other, each for the same time.
    case step([Double])
    /// `--rate` with a higher one in the middle fifth.
    case spike(Double)

    /// Reads `constant`, `soak`, `ramp:10-400`, `step:100,200,400` or `spike:400`; nil for anything else.
    init?(argument: String) {
        let parts = argument.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let rest = parts.count == 2 ? String(parts[1]) : nil
        func rates(_ separator: Character) -> [Double]? {
            guard let rest else { return nil }
            let rates = rest.split(separator: separator, omittingEmptySubsequences: false).map { Double($0) ?? -1 }
            return rates.allSatisfy { $0 >= 0 && $0 <= 1_000_000 } ? rates : nil
        }
        switch (parts[0], rest) {
        case ("constant", nil): self = .constant
        case ("soak", nil): self = .soak
        case ("ramp", _):
            guard let ends = rates("-"), ends.count == 2, ends[1] > 0 else { return nil }
            self = .ramp(from: ends[0], to: ends[1])
        case ("step", _):
            guard let steps = rates(","), steps.count > 1, steps.allSatisfy({ $0 > 0 }) else { return nil }
            self = .step(steps)
        case ("spike", _):
            guard let peak = rates(","), peak.count == 1, peak[0] > 0 else { return nil }
            self = .spike(peak[0])
        default: return nil
        }
    }

    /// As it is typed, without its rates.
    var name: String { profile(rate: 1, seconds: 1).name }

    /// Whether it says its rates itself, so that `--rate` has no place.
    var hasOwnRates: Bool {
        switch self {
        case .ramp, .step: true
        case .constant, .soak, .spike: false
        }
    }

    /// Seconds of a run that was not given a duration.
    var defaultSeconds: Double? {
        switch self {
        case .constant: nil
        case .soak: 3_600
        case .ramp, .step, .spike: 30
        }
    }

    /// - Parameter rate: of `--rate`, above 0.
    func profile(rate: Double, seconds: Double) -> LoadProfile {
        switch self {
        case .constant: return .constant(rate)
        case .soak: return .constant(rate, name: "soak")
        case .ramp(let from, let to):
            return LoadProfile(name: "ramp", pieces: [.init(seconds: seconds, from: from, to: to)])
        case .step(let rates):
            let each = seconds / Double(rates.count)
            return LoadProfile(name: "step", pieces: rates.map { .init(seconds: each, from: $0, to: $0) })
        case .spike(let peak):
            let rest = LoadProfile.Piece(seconds: seconds * 0.4, from: rate, to: rate)
            return LoadProfile(
                name: "spike", pieces: [rest, .init(seconds: seconds * 0.2, from: peak, to: peak), rest])
        }
    }
}
