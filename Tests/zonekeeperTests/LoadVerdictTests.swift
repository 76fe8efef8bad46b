import Testing

@testable import zonekeeper

@Suite("Load: when a verdict can be given, and the search for a limit")
struct LoadVerdictTests {
    private static let second: UInt64 = 1_000_000_000

    /// How the requests of one second end, and how many there are: spread evenly, each answered after a millisecond.
    private struct Second {
        var accepted = 0
        var throttled = 0
        var unanswered = 0
        /// Handed over, and taken by no connection.
        var waiting = 0
        var failed = 0
    }

    private func measurement(_ seconds: [Second], latency: UInt64 = 1_000_000) -> LoadMeasurement {
        var measurement = LoadMeasurement(behaviours: 1, targets: 1, operations: 1)
        for (index, second) in seconds.enumerated() {
            let outcomes: [(LoadOutcome, Int)] = [
                (.succeeded, second.accepted), (.throttled(status: 429, retryAfter: nil), second.throttled),
                (.failed(status: 503, code: "TRY_AGAIN_LATER", reason: nil), second.failed),
                (.unanswered("refused"), second.unanswered), (.unanswered("deadlineExceeded"), second.waiting),
            ]
            for (kind, (outcome, count)) in outcomes.enumerated() {
                for number in 0..<count {
                    let time = UInt64(index) * Self.second + UInt64(number) * (Self.second / UInt64(count))
                    measurement.recordSubmitted(due: time, now: time, countsLateness: true)
                    if kind < 4 { measurement.recordSent(due: time, submitted: time, now: time, isExactRetry: false) }
                    measurement.record(
                        LoadAttempt(
                            outcome: outcome, behaviour: 0, target: 0, operation: 0, firstDue: time, due: time,
                            sent: kind < 4 ? time : nil, ended: time + latency, isExactRetry: false,
                            isTriedAgain: false))
                }
            }
        }
        measurement.finish(at: UInt64(seconds.count + 1) * Self.second)
        return measurement
    }

    private func verdict(
        _ seconds: [Second], limit: Double = 40, tolerance: Double = 0.005
    ) -> (LimitVerdict, LimitMeasure?) {
        let measure = LimitMeasure(measurement(seconds), limit: limit)
        return (LimitVerdict(measure, limit: limit, tolerance: tolerance, testerIsLimit: nil), measure)
    }

    @Test("what went to a node that is down, or waited for a connection, was not offered: no miss of the cluster")
    func nodeDown() {
        let down = [Second](repeating: Second(accepted: 33, unanswered: 17), count: 30)
        #expect(verdict(down).0.exitCode == 3)
        #expect(verdict([Second](repeating: Second(accepted: 33, waiting: 400), count: 30)).0.exitCode == 3)
        let refusing = [Second](repeating: Second(accepted: 33, throttled: 17), count: 30)
        #expect(verdict(refusing).0.exitCode == 1, "the nodes got enough, and refused below the limit")
    }

    @Test("a cluster that accepts less than the limit and refuses nothing is slow: no miss of its limiter")
    func slow() {
        #expect(verdict([Second](repeating: Second(accepted: 30, failed: 30), count: 30)).0.exitCode == 3)
        #expect(verdict([Second](repeating: Second(accepted: 50), count: 30)).0.exitCode == 1, "too much is too much")
    }

    @Test("seconds in which nodes failed under pressure count: a failover is in the measure")
    func failover() throws {
        var seconds = [Second](repeating: Second(accepted: 40, throttled: 200), count: 60)
        seconds[20] = Second(accepted: 0, failed: 240)
        let (verdict, measure) = verdict(seconds, tolerance: 0.01)
        #expect(measure?.isWholeRun == true && verdict.exitCode == 1)
        #expect(self.verdict(seconds, tolerance: 0.05).0.kind == .kept)
    }

    @Test("at most limit x (time + 1 s) may be accepted, and half a percent less than limit x time")
    func bounds() {
        func exitCode(_ first: Int, _ others: Int) -> Int32 {
            let rest = [Second](repeating: Second(accepted: others, throttled: 200), count: 29)
            return verdict([Second(accepted: first, throttled: 200)] + rest).0.exitCode
        }
        #expect(exitCode(40, 40) == 0 && exitCode(79, 40) == 0, "what was saved for a second may be used at once")
        #expect(exitCode(83, 40) == 1 && exitCode(40, 42) == 1, "more may not")
        #expect(exitCode(36, 40) == 0 && exitCode(30, 40) == 1, "six requests of 1,200, and whole ones")
        #expect(verdict([Second](repeating: Second(accepted: 42, throttled: 9), count: 60)).0.exitCode == 1)
        #expect(verdict([Second](repeating: Second(accepted: 39, throttled: 9), count: 60)).0.exitCode == 1)
    }

    @Test("too short a run is not judged, unless it is off by more than what may have been saved")
    func tooShort() {
        let pressed = Second(accepted: 40, throttled: 100)
        let (one, _) = verdict([Second(accepted: 10), pressed, Second(accepted: 10)])
        #expect(one.exitCode == 3 && one.reason?.contains("10 s are enough") == true, "\(one)")
        #expect(verdict([Second(accepted: 90, throttled: 100)]).0.exitCode == 1)
        #expect(verdict([Second](repeating: pressed, count: 8)).0.exitCode == 3)
        #expect(verdict([Second](repeating: pressed, count: 8), tolerance: 0.2).0.kind == .kept)
        #expect(verdict([Second](repeating: pressed, count: 10)).0.kind == .kept)
    }

    @Test("one last answer that took long does not stretch the time that the limit is held against")
    func straggler() throws {
        var run = measurement([Second](repeating: Second(accepted: 40, throttled: 60), count: 10))
        let late = LoadAttempt(
            outcome: .succeeded, behaviour: 0, target: 0, operation: 0, firstDue: 9 * Self.second,
            due: 9 * Self.second, sent: 9 * Self.second, ended: 15 * Self.second, isExactRetry: false,
            isTriedAgain: false)
        run.record(late)
        let measure = try #require(LimitMeasure(run, limit: 40))
        #expect(measure.isWholeRun && measure.seconds < 10.1 && abs(measure.ratio - 1) < 0.02)
    }

    @Test("slow answers throughout count until the last: that is how long the nodes took to decide")
    func slowAnswers() throws {
        let run = measurement(
            [Second](repeating: Second(accepted: 40, throttled: 60), count: 10), latency: 1_200_000_000)
        let measure = try #require(LimitMeasure(run, limit: 40))
        #expect(measure.isWholeRun && measure.seconds > 11)
    }

    @Test("requests that wait for a connection are told as the tester's limit")
    func connectionWaits() {
        var run = LoadMeasurement(behaviours: 1, targets: 1, operations: 1)
        for _ in 0..<100 {
            run.recordSubmitted(due: 0, now: 0, countsLateness: true)
            run.recordSent(due: 0, submitted: 0, now: Self.second, isExactRetry: true)
        }
        let share = TesterShare(LoadResult(measurement: run, seconds: 2, wasInterrupted: false, testerCPUSeconds: 0.1))
        #expect(share.limitReason == nil && share.connectionReason?.contains("--connections") == true)
        #expect(run.retryAfter.lateness.maxNanoseconds == Self.second, "a retry is sent when a connection takes it")
    }

    // MARK: The search

    /// A search against a limiter with a burst, as trials see it: even arrivals, of which those after two seconds
    /// count.
    private func search(_ limit: Double, burst: Int, first: Double = 10) -> LimitSearch {
        var search = LimitSearch(first: first, tolerance: 0.02)
        while let rate = search.next() {
            let seconds = LimitFinder.seconds(for: search.aim, tolerance: 0.02)
            var limiter = GCRALimit(perSecond: limit, burst: burst)
            let times = (0..<Int(rate * seconds)).map { UInt64(Double($0) / rate * 1e9) }
            let accepted = times.filter { limiter.decide(now: $0 + Self.second) == nil }
            // Times in `accepted` are the arrivals', from 0.
            let begin = 2 * Self.second
            let share = 1 - Double(accepted.count) / Double(max(1, times.count))
            search.take(
                .init(
                    offered: rate, accepted: Double(accepted.count { $0 >= begin }) / (seconds - 2), lostShare: share,
                    wasThrottled: accepted.count < times.count))
        }
        return search
    }

    @Test(
        "the limit is read off to its tolerance, whatever its burst, in few trials",
        arguments: [1.0, 3, 10, 40, 400, 9_876])
    func limits(limit: Double) throws {
        for burst in [2, max(2, Int(limit / 10)), max(2, Int(limit))] {
            for first in limit < 1_000 ? [10.0, 7, 33] : [10.0] {
                let search = search(limit, burst: burst, first: first)
                let found = try #require(search.limit)
                #expect(abs(found / limit - 1) <= 0.02, "\(found) for \(limit) with a burst of \(burst)")
                #expect(search.isThrottling && search.trials.count <= 16, "\(search.trials.count) trials")
                #expect((search.passed ?? 0) <= limit * 1.02, "what passes by the burst is no rate")
                #expect(search.failed.map { failed in search.trials.contains { $0.offered == failed } } == true)
            }
        }
    }

    @Test(
        "a limiter without a burst accepts every second of even arrivals: that is not taken for its limit, which halving finds",
        arguments: [1.0, 3, 10, 40, 400, 9_876])
    func noBurst(limit: Double) throws {
        for first in limit < 1_000 ? [10.0, 7, 33] : [10.0] {
            let search = search(limit, burst: 1, first: first)
            let found = try #require(search.limit ?? search.passed)
            #expect(abs(found / limit - 1) <= 0.02, "\(found) for \(limit), from \(first)/s on")
            #expect(search.isThrottling && search.trials.count <= 20, "\(search.trials.count) trials")
        }
    }

    @Test("once requests are throttled a trial is as long as the tolerance asks for, but a minute at most")
    func trialLength() {
        #expect(LimitFinder.seconds(for: nil, tolerance: 0.02) == 5)
        #expect([400.0, 40, 3, 1].map { LimitFinder.seconds(for: $0, tolerance: 0.02).rounded() } == [27, 27, 35, 60])
        #expect(LimitFinder.seconds(for: 40, tolerance: 0.5) == 5)
    }

    @Test("where nothing is throttled the rate that a cluster can do is found by halving", arguments: [12.0, 700])
    func capacity(capacity: Double) throws {
        var search = LimitSearch(first: 10, tolerance: 0.02)
        while let rate = search.next() {
            let accepted = min(rate, capacity)
            search.take(.init(offered: rate, accepted: accepted, lostShare: 1 - accepted / rate, wasThrottled: false))
        }
        let passed = try #require(search.passed)
        #expect(passed <= capacity * 1.006 && passed >= capacity * 0.975 && search.limit == nil)
    }

    @Test("GCRA accepts its burst and its rate, and a refusal's wait is exact")
    func gcra() {
        var limit = GCRALimit(perSecond: 10, burst: 3)
        #expect((0..<3).allSatisfy { _ in limit.decide(now: 1_000) == nil })
        let wait = limit.decide(now: 1_000)
        #expect(wait == 100_000_000)
        #expect(limit.decide(now: 1_000 + 99_999_999) == 1)
        #expect(limit.decide(now: 1_000 + 100_000_000) == nil)
        let accepted = (0..<10_000).count { limit.decide(now: 10 * Self.second + UInt64($0) * 1_000_000) == nil }
        #expect(accepted == 3 + 99)
    }
}
