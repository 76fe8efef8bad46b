import Foundation

/// When the requests of an open loop are due: a sequence of offsets from the start that does not wait for answers.
///
/// Even arrivals are computed from their number, so rounding does not add up. Poisson arrivals (independent clients) come from a
/// seed: the same seed gives the same load.
struct ArrivalSchedule: Sendable {
    /// How arrivals are spread over time.
    enum Spacing: String, Sendable, CaseIterable {
        case poisson, even
    }

    /// Arrivals a second; above 0.
    let rate: Double
    let spacing: Spacing
    let bound: LoadBound
    private var random: LoadRandom
    private var issued = 0
    private var elapsedSeconds = 0.0

    init(rate: Double, spacing: Spacing, bound: LoadBound, seed: UInt64) {
        precondition(rate > 0 && rate.isFinite, "a rate above 0 is needed, not \(rate)")
        self.rate = rate
        self.spacing = spacing
        self.bound = bound
        random = LoadRandom(seed: seed)
    }

    /// The next arrival, in nanoseconds after the start and never before the last one; nil after the last one.
    mutating func next() -> UInt64? {
        if let count = bound.count, issued >= count { return nil }
        switch spacing {
        case .even: elapsedSeconds = Double(issued) / rate
        // 1 - u is in (0, 1], so the logarithm is finite.
        case .poisson: elapsedSeconds += -log(1 - random.unit()) / rate
        }
        if let seconds = bound.seconds, elapsedSeconds >= seconds { return nil }
        issued += 1
        return UInt64(elapsedSeconds * 1_000_000_000)
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

/// The seeded generator of a run (SplitMix64): the same seed gives the same load on every machine.
struct LoadRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, and without, 1.
    mutating func unit() -> Double { Double(next() >> 11) / Double(1 << 53) }

    /// A whole number from 0 up to, and without, `bound`; the bias is below one in 2^40 for what a run asks.
    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
