import Histogram
import RecordModel

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

    /// What was found.
    struct Found: Sendable {
        var search: LimitSearch
        /// Why the highest rate is the tester's and not the cluster's; nil where it is the cluster's.
        var testerIsLimit: String?
        var wasInterrupted: Bool
    }

    /// - Parameter tell: is told of each trial.
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

    /// How long a rate is tried: briefly until requests are throttled, then as long as the tolerance asks for.
    ///
    /// Requests come whole: a limit of 3/s is known to 2 % when a hundred of them were counted. And a burst is a tenth of a second's
    /// requests: of 0.5 / tolerance seconds it is a fifth of the tolerance.
    static func seconds(for aim: Double?, tolerance: Double) -> Double {
        guard let aim, aim > 0 else { return 5 }
        return min(60, warmUpMax + max(3, 0.5 / tolerance, 2 / (tolerance * aim)))
    }

    /// So much of a trial is not counted, or less of a short one: the burst is used up, and what nodes have of a limit goes where it is
    /// asked for.
    private static let warmUpMax = 2.0

    private func run(_ rate: Double, seconds: Double) async throws -> LoadResult {
        var settings = settings
        // Even arrivals: bursts of independent clients would be refused below the limit, and the limit is what is asked for.
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
        let late = tally.succeeded > 0 && tally.latencies.valueAtPercentile(90) > 1_000_000_000
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
            "The limit is \(String(limit, digits: 1)) requests a second: so many were accepted while more were offered, and the others were "
            + "throttled."
        if let passed = search.passed { text += " \(String(passed, digits: 1))/s were accepted whole." }
        if wasInterrupted { text += " The search was stopped before its end." }
        return text
    }

    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            if let limit = search.limit { writer.member("limit", number: limit) }
            if let passed = search.passed { writer.member("highestAccepted", number: passed) }
            if let failed = search.failed { writer.member("lowestRefused", number: failed) }
            writer.member("isThrottling", search.isThrottling)
            if let testerIsLimit { writer.member("testerIsLimit", testerIsLimit) }
            writer.member("interrupted", wasInterrupted)
            writer.key("trials")
            writer.array { writer in
                for trial in search.trials {
                    writer.object { writer in
                        writer.member("offered", number: trial.offered)
                        writer.member("accepted", number: trial.accepted)
                        writer.member("lostShare", number: trial.lostShare)
                        writer.member("throttled", trial.wasThrottled)
                    }
                }
            }
        }
        return writer.bytes
    }
}

extension LimitSearch.Trial {
    /// For people, while the search goes.
    var text: String {
        "\(String(offered, digits: 1))/s offered: \(String(accepted, digits: 1))/s accepted, "
            + "\(String(percent: (lostShare * 10_000).rounded() / 10_000)) lost"
    }
}

extension Calibration {
    var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("perSecond", number: perSecond)
            writer.member("threadCapacityPerSecond", number: threadCapacityPerSecond)
            writer.member("p50", number: latencyP50Milliseconds)
            writer.member("p99", number: latencyP99Milliseconds)
        }
        return writer.bytes
    }
}
