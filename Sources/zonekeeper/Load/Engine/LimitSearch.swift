/// Searches for the highest rate that is accepted: doubles until a trial fails, then halves what is between.
///
/// Where requests are throttled there is a shorter way: while much more is offered, what is accepted is the limit. It is read off twice,
/// without the trial's beginning, in which the burst is used up, and then tried by a rate a little below. The two readings are made at
/// twice and at two and a half times the limit: a limiter that keeps no burst accepts every second of even arrivals at 1.6 times its
/// limit, and every third at 2.4 times. Then what is accepted follows what is offered, the readings differ, and halving goes on.
struct LimitSearch: Sendable {
    /// What came of offering a rate for a while.
    struct Trial: Hashable, Sendable {
        /// Requests a second.
        var offered: Double
        /// Accepted a second after the beginning of the trial.
        var accepted: Double
        /// The part of the requests that was not accepted in time, 0 to 1; of the whole trial.
        var lostShare: Double
        /// Whether some were told to slow down.
        var wasThrottled: Bool
    }

    /// The highest rate that passed, and the lowest that did not.
    private(set) var passed: Double?
    private(set) var failed: Double?
    /// The limit that was set, as what was accepted while much more was offered; nil where nothing was throttled, or not yet.
    private(set) var limit: Double?
    private(set) var trials: [Trial] = []
    private var hint: Double?
    /// About the limit: what was accepted of the last trial that was throttled.
    private var estimate: Double?
    /// What was accepted while twice the estimate was offered.
    private var reading: Double?
    /// Whether the limit can be read off: not where what is accepted depends on what is offered.
    private var isSteady = true
    let tolerance: Double
    let first: Double
    let rateMax: Double
    private static let trialsMax = 24
    /// A rate passes when no more than this is lost.
    static let lostMax = 0.005
    /// What is accepted is the limit when so many times as much is offered.
    private static let saturation = 1.5
    /// What the two readings offer, in parts of the estimate; the second is no multiple of the first.
    private static let readingFactors = (first: 2.0, second: 2.5)
    /// Readings of one limit differ by no more: whole requests make out half the tolerance each, and without a burst it is a sixth.
    private var agreement: Double { min(0.1, 2 * tolerance) }

    /// - Parameters:
    ///   - first: the rate to begin with.
    ///   - tolerance: the search ends when what is between is less than this part of the rate.
    init(first: Double, tolerance: Double, rateMax: Double = 1_000_000) {
        precondition(first > 0 && tolerance > 0 && rateMax >= first, "\(first)/s to \(rateMax)/s within \(tolerance)")
        self.first = first
        self.tolerance = tolerance
        self.rateMax = rateMax
    }

    /// The rate to offer next; nil when the search is over.
    func next() -> Double? {
        guard trials.count < Self.trialsMax else { return nil }
        if let hint { return hint }
        if let limit, let passed, passed >= limit * (1 - tolerance) { return nil }
        switch (passed, failed) {
        case (nil, nil): return first
        case (let low?, nil): return low >= rateMax ? nil : min(rateMax, low * 2)
        case (let low, let high?):
            let low = low ?? 0
            guard high - low > tolerance * high, high > 0.1 else { return nil }
            return (low + high) / 2
        }
    }

    /// The rate that the coming trial is about, to choose its length by: less than what is offered where that is to be too much.
    var aim: Double? { limit ?? estimate }

    mutating func take(_ trial: Trial) {
        trials.append(trial)
        hint = nil
        // Just below the limit a jitter of arrivals is refused now and then.
        let lostMax = limit == nil ? Self.lostMax : max(Self.lostMax, tolerance / 2)
        if trial.lostShare <= lostMax {
            passed = max(passed ?? 0, trial.offered)
            reading = nil
            // A rate may pass that failed before, by a hair; the last word counts.
            if let failed, failed <= trial.offered { self.failed = nil }
        } else {
            failed = min(failed ?? .infinity, trial.offered)
            if let passed, passed >= trial.offered { self.passed = nil }
            if trial.wasThrottled, trial.accepted > 0 { take(throttled: trial) }
        }
    }

    private mutating func take(throttled trial: Trial) {
        guard limit == nil, isSteady else { return }
        let isFirst = estimate == nil
        estimate = trial.accepted
        // The trial that met the limit was short, as nobody knew of it; so it is not a reading.
        guard !isFirst, trial.offered >= Self.saturation * trial.accepted else {
            reading = nil
            hint = min(rateMax, trial.accepted * Self.readingFactors.first)
            return
        }
        guard let first = reading else {
            reading = trial.accepted
            hint = min(rateMax, trial.accepted * Self.readingFactors.second)
            return
        }
        guard abs(trial.accepted / first - 1) <= agreement else {
            isSteady = false
            return
        }
        let limit = (first + trial.accepted) / 2
        self.limit = limit
        // What passed above it passed by the burst.
        if let passed, passed > limit { self.passed = nil }
        hint = limit * (1 - tolerance * 0.75)
    }

    /// Whether the limit is one that was set, rather than what the cluster can do.
    var isThrottling: Bool { trials.contains { $0.wasThrottled } }
}
