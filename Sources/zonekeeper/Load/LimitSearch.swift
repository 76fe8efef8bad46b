import RecordModel
import ServiceClient

/// Searches for the highest rate that is accepted: doubles until a trial fails, then halves what is between.
///
/// Where requests are throttled there is a shorter way: while much more is offered, what is accepted is the limit. It
/// is read off twice, without the trial's beginning, in which the burst is used up, and then tried by a rate a little
/// below. The two readings are made at twice and at two and a half times the limit: a limiter that keeps no burst
/// accepts every second of even arrivals at 1.6 times its limit, and every third at 2.4 times. Then what is accepted
/// follows what is offered, the readings differ, and halving goes on.
struct LimitSearch: Sendable {
    struct Trial: Hashable, Sendable {
        var offered: Double
        /// Accepted a second after the beginning of the trial.
        var accepted: Double
        /// The part of the requests that was not accepted in time, 0 to 1; of the whole trial.
        var lostShare: Double
        var wasThrottled: Bool
    }

    /// The highest rate that passed, and the lowest that did not.
    private(set) var passed: Double?
    private(set) var failed: Double?
    /// The limit that was set, as what was accepted while much more was offered; nil where nothing was throttled, or
    /// not yet.
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
    /// The two readings offer these multiples of the estimate; the second is not a multiple of the first.
    private static let readingFactors = (first: 2.0, second: 2.5)
    /// Readings of one limit differ by no more: whole requests make out half the tolerance each, and without a burst it
    /// is a sixth.
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

    /// The rate that the coming trial is about, to choose its length by: less than what is offered where that is to be
    /// too much.
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

/// Searches for the highest rate that a cluster accepts, with a run for each rate tried.
struct LimitFinder: Sendable {
    let settings: LoadSettings
    let targets: [LoadTarget]
    let sessions: [LoadTokens]
    let authority: String?
    let stop: LoadStop
    /// How long each rate is tried; nil: long enough for the tolerance, as far as a search can wait.
    let seconds: Double?
    /// The rate to begin with, in requests a second.
    let first: Double
    let tolerance: Double
    /// Between two trials: what one has used up is there again for the next.
    var pause = Duration.seconds(1)

    struct Found: Sendable {
        var search: LimitSearch
        /// Why the highest rate is the tester's and not the cluster's; nil where it is the cluster's.
        var testerIsLimit: String?
        var wasInterrupted: Bool
    }

    func find(tell: (LimitSearch.Trial) -> Void) async throws -> Found {
        var search = LimitSearch(first: first, tolerance: tolerance)
        var testerIsLimit: String?
        while let rate = search.next(), !stop.isSet {
            if !search.trials.isEmpty { try? await Task.sleep(for: pause) }
            let seconds = seconds ?? Self.seconds(for: search.aim, tolerance: tolerance)
            let result = try await run(rate, seconds: seconds)
            if result.wasInterrupted { break }
            let trial = Self.trial(result, offered: rate, seconds: seconds)
            search.take(trial)
            tell(trial)
            if trial.lostShare > LimitSearch.lostMax, !trial.wasThrottled {
                let tester = TesterShare(result)
                testerIsLimit = tester.limitReason ?? tester.connectionReason ?? testerIsLimit
            }
        }
        return Found(search: search, testerIsLimit: testerIsLimit, wasInterrupted: stop.isSet)
    }

    /// The shortest trial: of a shorter one what a container had saved up would count as its limit.
    static let secondsMin = 5.0

    /// How long a rate is tried: briefly until requests are throttled, then as long as the tolerance asks for.
    ///
    /// Requests come whole: a limit of 3/s is known to 2 % when a hundred of them were counted.
    static func seconds(for aim: Double?, tolerance: Double) -> Double {
        guard let aim, aim > 0 else { return secondsMin }
        return min(60, warmUpMax + max(3, 0.5 / tolerance, 2 / (tolerance * aim)))
    }

    /// So much of a trial is not counted, or less of a short one: the burst of a second's requests is used up where
    /// half as much again is offered, and what nodes have of a limit goes where it is asked for.
    private static let warmUpMax = 2.0

    private func run(_ rate: Double, seconds: Double) async throws -> LoadResult {
        var settings = settings
        // Even arrivals: bursts of independent clients would be refused below the limit, and the limit is what is asked
        // for.
        settings.pace = .open(rate: rate, spacing: .even, outstandingMax: 4_096)
        settings.bound = LoadBound(seconds: seconds)
        settings.behaviours = WeightedChoice([(.ignore, 1)])
        let run = LoadRun(settings: settings, targets: targets, sessions: sessions, authority: authority, stop: stop)
        return try await run.run()
    }

    static func trial(_ result: LoadResult, offered: Double, seconds: Double) -> LimitSearch.Trial {
        let begin = Int(min(warmUpMax, seconds * 0.4) * 10)
        let end = max(begin + 1, Int(seconds * 10))
        let accepted = Double(result.measurement.timeline.accepted(inTenths: begin..<end))
        let tally = result.measurement.tally
        let due = result.measurement.sent + tally.notIssued
        // Requests that queue up are as good as lost: at a rate that the cluster can do, answers keep up.
        let late = tally.latencies.nanoseconds(atPercentile: 90) > 1_000_000_000
        let lost = due > 0 ? Double(due - tally.succeeded) / Double(due) : 1
        return LimitSearch.Trial(
            offered: offered, accepted: accepted / Double(end - begin) * 10,
            lostShare: late ? max(lost, 0.5) : lost, wasThrottled: tally.throttled > 0)
    }
}

extension LimitFinder.Found {
    var text: String {
        if let limit = search.limit { return limitText(limit) }
        guard let passed = search.passed else {
            let why = wasInterrupted ? "the search was stopped" : "even the lowest rate tried was not accepted"
            return "No rate was found: \(why)."
        }
        var text = "The highest rate accepted is \(String(passed, digits: 1))/s"
        if let failed = search.failed { text += "; \(String(failed, digits: 1))/s was not" }
        text +=
            search.isThrottling
            ? ". Beyond it requests are throttled, so it may be a limit that was set."
            : ". It is what the cluster can do: nothing was throttled."
        if let testerIsLimit { text += " But \(testerIsLimit)." }
        if wasInterrupted { text += " The search was stopped before its end." }
        return text
    }

    private func limitText(_ limit: Double) -> String {
        var text =
            "The limit is \(String(limit, digits: 1)) requests a second: so many were accepted while more were "
            + "offered, and the others were throttled."
        if let passed = search.passed { text += " \(String(passed, digits: 1))/s were accepted whole." }
        if wasInterrupted { text += " The search was stopped before its end." }
        return text
    }

    var json: [UInt8] {
        let trials = search.trials.map { trial in
            JSONValue.members([
                "offered": .number(trial.offered), "accepted": .number(trial.accepted),
                "lostShare": .number(trial.lostShare), "throttled": .bool(trial.wasThrottled),
            ])
        }
        return JSONValue.members([
            "limit": search.limit.map { .number($0) }, "highestAccepted": search.passed.map { .number($0) },
            "lowestRefused": search.failed.map { .number($0) }, "isThrottling": .bool(search.isThrottling),
            "testerIsLimit": .given(testerIsLimit), "interrupted": .bool(wasInterrupted), "trials": .array(trials),
        ]).serialized()
    }
}

extension LimitSearch.Trial {
    /// For people, while the search goes.
    var text: String {
        "\(String(offered, digits: 1))/s offered: \(String(accepted, digits: 1))/s accepted, "
            + "\(String(percent: (lostShare * 10_000).rounded() / 10_000)) lost"
    }
}
