import Foundation
import HeapModule
import RecordModel

enum LoadPace: Hashable, Sendable {
    /// Each of `concurrency` clients sends its next request when the last one was answered.
    case closed(concurrency: Int)
    /// Requests are due by a schedule, whether others were answered or not.
    case open(profile: LoadProfile, spacing: ArrivalSchedule.Spacing, outstandingMax: Int)

    static func open(rate: Double, spacing: ArrivalSchedule.Spacing, outstandingMax: Int) -> LoadPace {
        .open(profile: .constant(rate), spacing: spacing, outstandingMax: outstandingMax)
    }
}

struct LoadPlace: Hashable, Sendable {
    var container: String
    var environment: String
    /// `public` or `private`.
    var database: String
    /// At least one.
    var zones: [String]

    static let defaultZone = ZoneKey.defaultZoneName
}

struct LoadSettings: Sendable {
    var mix: LoadMix
    var pace: LoadPace
    var bound: LoadBound
    var place: LoadPlace
    var recordType = "Load"
    /// Records in each zone that reads, updates and queries choose from.
    var records = 10_000
    var connections: Int
    var seed: UInt64 = 1
    /// Seconds after which a request counts as unanswered.
    var timeoutSeconds = 10
    var nodes = NodePattern.even
    var behaviours = WeightedChoice<ThrottleBehaviour>([(.ignore, 1)])
    var users = 1
    var assetBytes = Self.assetBytesStandard

    static let assetBytesStandard = 1_000_000
}

/// When the requests of an open loop are due: a sequence of offsets from the start that does not wait for answers.
///
/// Even arrivals are computed from their number, so rounding does not add up. Poisson arrivals (independent clients)
/// come from a seed: the same seed gives the same load. Where the rate changes, both are stretched by it.
struct ArrivalSchedule: Sendable {
    enum Spacing: String, Sendable, CaseIterable {
        case poisson, even
    }

    let profile: LoadProfile
    let spacing: Spacing
    let bound: LoadBound
    private var random: LoadRandom
    private var issued = 0
    /// The sum of the gaps so far, in mean gaps.
    private var gaps = 0.0

    init(profile: LoadProfile, spacing: Spacing, bound: LoadBound, seed: UInt64) {
        self.profile = profile
        self.spacing = spacing
        self.bound = bound
        random = LoadRandom(seed: seed)
    }

    /// The next arrival, in nanoseconds after the start and never before the last one; nil after the last one.
    mutating func next() -> UInt64? {
        if let count = bound.count, issued >= count { return nil }
        let seconds: Double
        switch spacing {
        case .even: seconds = profile.time(ofArrivals: Double(issued))
        case .poisson:
            // 1 - u is in (0, 1], so the logarithm is finite.
            gaps += -log(1 - random.unit())
            seconds = profile.time(ofArrivals: gaps)
        }
        if let end = bound.seconds, seconds >= end { return nil }
        issued += 1
        return UInt64(seconds * 1_000_000_000)
    }
}

/// Where a run ends: after a time, after a number of requests, or at whichever comes first. Every run has a bound.
struct LoadBound: Hashable, Sendable {
    let seconds: Double?
    let count: Int?

    /// Ten seconds where nothing was said.
    init(seconds: Double? = nil, count: Int? = nil) {
        self.seconds = seconds == nil && count == nil ? 10 : seconds
        self.count = count
    }
}

enum NodePattern: Hashable, Sendable {
    case even
    case one
    /// All to one node, which is the next one every so many seconds.
    case moving(seconds: Double)

    /// Reads `even`, `one` or `moving:5`; nil for anything else.
    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        switch (parts[0], parts.count) {
        case ("even", 1): self = .even
        case ("one", 1): self = .one
        case ("moving", 2):
            guard let seconds = Double(parts[1]), seconds >= 0.001, seconds <= 86_400 else { return nil }
            self = .moving(seconds: seconds)
        default: return nil
        }
    }

    var name: String {
        switch self {
        case .even: "even"
        case .one: "one"
        case .moving(let seconds): "moving:\(seconds == seconds.rounded() ? "\(Int(seconds))" : "\(seconds)")"
        }
    }

    /// - Parameters:
    ///   - turn: number of the request, or of the worker in a closed loop, which stays with its node.
    ///   - nanoseconds: since the start.
    /// - Returns: an index below `count`.
    func target(turn: Int, nanoseconds: UInt64, count: Int) -> Int {
        switch self {
        case .even: turn % count
        case .one: 0
        case .moving(let seconds): Int((Double(nanoseconds) / 1_000_000_000 / seconds).rounded(.down)) % count
        }
    }
}

/// What a client does when it is told to slow down (`THROTTLED`).
enum ThrottleBehaviour: String, Hashable, Sendable, CaseIterable {
    /// Gives this request up and sends the next one as if nothing had been said.
    case ignore
    /// Sends it again exactly when `retryAfter` says.
    case honour
    /// Sends it again after a time of its own that doubles, whatever `retryAfter` says.
    case backOff = "back-off"

    /// The first pause of a client that backs off, and the longest, in nanoseconds.
    static let firstPause: UInt64 = 100_000_000
    static let pauseMax: UInt64 = 10_000_000_000

    /// How long the client waits before it sends a refused request again.
    /// - Parameters:
    ///   - attempt: how often the request was refused before, from 0.
    ///   - retryAfter: nanoseconds, as the refusal said; nil where it said nothing.
    ///   - unit: a random number from 0 to 1: clients that back off wait between half and all of their pause.
    /// - Returns: nil where it is not sent again.
    func pause(attempt: Int, retryAfter: UInt64?, unit: Double) -> UInt64? {
        switch self {
        case .ignore: return nil
        case .honour: return retryAfter
        case .backOff:
            let whole = min(Self.pauseMax, Self.firstPause << UInt64(min(attempt, 10)))
            return whole / 2 + UInt64(Double(whole / 2) * unit)
        }
    }
}

struct DueQueue<Item: Sendable>: Sendable {
    private struct Entry: Comparable, Sendable {
        let due: UInt64
        let order: UInt64
        let item: Item

        static func < (left: Self, right: Self) -> Bool { (left.due, left.order) < (right.due, right.order) }
        static func == (left: Self, right: Self) -> Bool { (left.due, left.order) == (right.due, right.order) }
    }

    private var heap = Heap<Entry>()
    private var added: UInt64 = 0

    var count: Int { heap.count }
    var nextDue: UInt64? { heap.min?.due }

    /// Items of one due time come out as they went in.
    mutating func add(_ item: Item, due: UInt64) {
        heap.insert(Entry(due: due, order: added, item: item))
        added += 1
    }

    /// The earliest item that is due by now; nil when there is none.
    mutating func pop(by now: UInt64) -> (due: UInt64, item: Item)? {
        guard let first = heap.min, first.due <= now else { return nil }
        heap.removeMin()
        return (first.due, first.item)
    }
}

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
