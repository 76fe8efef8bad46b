import Foundation

/// When the requests of an open loop are due: a sequence of offsets from the start that does not wait for answers.
///
/// Even arrivals are computed from their number, so rounding does not add up. Poisson arrivals (independent clients) come from a
/// seed: the same seed gives the same load. Where the rate changes, both are stretched by it.
struct ArrivalSchedule: Sendable {
    /// How arrivals are spread over time.
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

    /// - Parameter rate: arrivals a second, above 0.
    init(rate: Double, spacing: Spacing, bound: LoadBound, seed: UInt64) {
        precondition(rate > 0 && rate.isFinite, "a rate above 0 is needed, not \(rate)")
        self.init(profile: .constant(rate), spacing: spacing, bound: bound, seed: seed)
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
