import RecordModel
import Testing

@testable import zonekeeper

@Suite("Load: statistics, limits, and how exact retryAfter is")
struct LoadMeasureTests {
    private static let second: UInt64 = 1_000_000_000

    @Test("a histogram's percentiles are within two percent of the exact ones")
    func percentiles() throws {
        var random = LoadRandom(seed: 2)
        var histogram = LatencyHistogram()
        var exact: [UInt64] = []
        for _ in 0..<20_000 {
            let value = UInt64(1_000 + random.below(1 << (10 + random.below(24))))
            histogram.record(value)
            exact.append(value)
        }
        exact.sort()
        for percentile in [1.0, 50, 90, 99, 99.9] {
            let value = try #require(histogram.milliseconds(atPercentile: percentile)) * 1_000_000
            let right = Double(exact[Int((percentile / 100 * 20_000).rounded(.up)) - 1])
            #expect(abs(value / right - 1) < 0.02, "p\(percentile): \(value) for \(right)")
        }
        #expect(histogram.milliseconds(atPercentile: 100) == Double(exact[19_999]) / 1_000_000)
        var both = histogram
        both.add(histogram)
        #expect(both.count == 40_000 && both.milliseconds(atPercentile: 50) == histogram.milliseconds(atPercentile: 50))
        histogram.record(.max)
        histogram.record(0)
        #expect(histogram.count == 20_002)
        #expect(LatencyHistogram().milliseconds(atPercentile: 50) == nil)
    }

    /// A run that offers `offered` requests in each second, of which the first ones are accepted.
    private func measurement(offered: [Int], accepted: [Int], announced: Double? = nil) -> LoadMeasurement {
        var measurement = LoadMeasurement(behaviours: 1, targets: 1, operations: 1)
        for (index, count) in offered.enumerated() {
            for number in 0..<count {
                let time = UInt64(index) * Self.second + UInt64(number) * (Self.second / UInt64(count))
                measurement.recordSubmitted(due: time, now: time, countsLateness: true)
                measurement.recordSent(due: time, submitted: time, now: time, isExactRetry: false)
                let outcome: LoadOutcome =
                    number < accepted[index] ? .succeeded : .throttled(status: 429, retryAfter: Self.second / 2)
                measurement.record(
                    LoadAttempt(
                        outcome: outcome, behaviour: 0, target: 0, operation: 0, firstDue: time, due: time, sent: time,
                        ended: time,
                        isExactRetry: false, isTriedAgain: false))
            }
        }
        if let announced { measurement.budget = RateBudget(quota: announced, windowSeconds: 1) }
        measurement.finish(at: UInt64(offered.count) * Self.second)
        return measurement
    }

    @Test("a limit is compared over the whole run where more than it was offered throughout, burst included")
    func wholeRun() throws {
        let run = measurement(offered: [400, 400, 400, 400], accepted: [44, 40, 40, 40])
        let measure = try #require(LimitMeasure(run, limit: 40))
        #expect(measure.isWholeRun && measure.accepted == 164 && measure.source == .given)
        #expect(abs(measure.seconds - 3.9975) < 0.0001)
        #expect(abs(measure.ratio - 164 / (40 * 3.9975)) < 0.0001)
        #expect(measure.acceptedInOneSecondMax == 44)
        #expect(abs(measure.allowedMax - measure.allowed - 40) < 0.001)
    }

    @Test(
        "where the load rises past the limit, only the seconds above it count, and the nodes' word serves as the limit")
    func pressed() throws {
        let run = measurement(
            offered: [10, 20, 80, 100, 30, 90, 90, 90, 20], accepted: [10, 20, 40, 40, 30, 40, 41, 39, 20],
            announced: 40)
        let measure = try #require(LimitMeasure(run, limit: nil))
        #expect(measure.begin == 5 && measure.seconds == 3 && measure.accepted == 120 && !measure.isWholeRun)
        #expect(measure.source == .announced && measure.ratio == 1)
    }

    @Test(
        "a limit that was not reached is not judged, and too little is not held against a cluster when the tester was slow"
    )
    func notReached() throws {
        let run = measurement(offered: [30, 30, 30], accepted: [30, 30, 30])
        #expect(LimitMeasure(run, limit: 40) == nil)
        #expect(LimitVerdict(nil, limit: 40, tolerance: 0.02, testerIsLimit: nil).exitCode == 3)
        let low = try #require(LimitMeasure(measurement(offered: [400, 400, 9], accepted: [20, 20, 0]), limit: 40))
        #expect(LimitVerdict(low, limit: 40, tolerance: 0.02, testerIsLimit: nil).exitCode == 1)
        #expect(LimitVerdict(low, limit: 40, tolerance: 0.02, testerIsLimit: "slow").exitCode == 3)
        let unknown = try #require(
            LimitMeasure(measurement(offered: [99, 99, 99], accepted: [50, 50, 50]), limit: nil))
        #expect(unknown.source == .estimated && abs(unknown.limit - 50) < 0.5)
    }

    @Test("the most in any ten tenths is found across the borders of seconds")
    func sliding() {
        var timeline = LoadTimeline()
        for tenth in [0, 7, 8, 9, 10, 11, 12, 25] as [UInt64] {
            timeline.record(.succeeded, latencyNanoseconds: 1, at: tenth * Self.second / 10)
        }
        timeline.finish(at: 3 * Self.second - 1)
        #expect(timeline.acceptedMax(inTenths: 10) == 6)
        #expect(timeline.acceptedMax(inTenths: 100) == nil)
        #expect(timeline.seconds.map(\.accepted) == [4, 3, 1])
        #expect(timeline.seconds[0].p50 != nil && timeline.seconds[2].p99 != nil)
    }

    @Test("retryAfter is as exact as the share of exact retries that were accepted; others do not count")
    func accuracy() {
        var measurement = LoadMeasurement(behaviours: 2, targets: 1, operations: 1)
        func attempt(_ outcome: LoadOutcome, exact: Bool, again: Bool, behaviour: Int = 0) -> LoadAttempt {
            LoadAttempt(
                outcome: outcome, behaviour: behaviour, target: 0, operation: 0, firstDue: 0, due: Self.second,
                ended: Self.second, isExactRetry: exact, isTriedAgain: again)
        }
        let refused = LoadOutcome.throttled(status: 429, retryAfter: 500_000_000)
        for _ in 0..<4 { measurement.record(attempt(refused, exact: false, again: true)) }
        for _ in 0..<3 { measurement.record(attempt(.succeeded, exact: true, again: false)) }
        measurement.record(attempt(refused, exact: true, again: false))
        measurement.record(attempt(.succeeded, exact: false, again: false, behaviour: 1))
        measurement.record(attempt(.throttled(status: 429, retryAfter: nil), exact: false, again: false, behaviour: 1))
        let retryAfter = measurement.retryAfter
        #expect(retryAfter.refusals == 6 && retryAfter.refusalsWithTime == 5)
        #expect(retryAfter.accepted == 3 && retryAfter.refusedAgain == 1 && retryAfter.share == 0.75)
        #expect(measurement.byBehaviour.map(\.requests) == [4, 2])
        #expect(measurement.byBehaviour.map(\.acceptedShare) == [0.75, 0.5])
        #expect(measurement.byBehaviour[0].waits.maxNanoseconds == Self.second)
        #expect(RetryAfterAccuracy().share == nil)
    }

    @Test("a refusal's time is read from the body, to a fraction, else from the header, and is rounded up")
    func retryAfter() {
        func judge(_ status: Int, _ body: String, header: Double? = nil) -> LoadOutcome {
            Array(body.utf8).withUnsafeBytes {
                LoadAnswer.judge(status: status, body: $0, proof: nil, retryAfterHeader: header)
            }
        }
        #expect(
            judge(429, #"{"serverErrorCode":"THROTTLED","retryAfter":1,"retryAfterMilliseconds":26}"#, header: 1)
                == .throttled(status: 429, retryAfter: 26_000_000))
        #expect(
            judge(429, #"{"serverErrorCode":"THROTTLED","retryAfter":0.0250001}"#, header: 1)
                == .throttled(status: 429, retryAfter: 25_000_100))
        #expect(
            judge(429, #"{"serverErrorCode":"THROTTLED","retryAfter":1,"retryAfterMilliseconds":26}"#, header: 1)
                == .throttled(status: 429, retryAfter: 26_000_000))
        #expect(judge(429, "slow down", header: 3) == .throttled(status: 429, retryAfter: 3_000_000_000))
        #expect(judge(503, #"{"serverErrorCode":"THROTTLED"}"#) == .throttled(status: 503, retryAfter: nil))
        #expect(judge(429, #"{"retryAfter":-1}"#) == .throttled(status: 429, retryAfter: nil))
        #expect(judge(200, #"{"retryAfter":1}"#) == .succeeded)
        let other = Array(#"{"serverErrorCode":"THROTTLED","reason":"this address"}"#.utf8).withUnsafeBytes {
            LoadAnswer.judge(status: 429, body: $0, proof: nil, namesLimit: false)
        }
        #expect(
            other == .failed(status: 429, code: LoadAnswer.otherThrottledCode, reason: "this address"),
            "a refusal without RateLimit headers is not the container's limit")
    }

    @Test("the machine's idle share is that of the first line of /proc/stat")
    func machine() {
        let first = MachineTime(stat: "cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3 4 5\n")
        let second = MachineTime(stat: "cpu  400 0 200 1000 100 0 0 0 0 0\n")
        #expect(MachineTime.idleShare(from: first, to: second) == 300.0 / 700)
        #expect(MachineTime(stat: "intr 5") == nil && MachineTime.idleShare(from: second, to: second) == nil)
    }
}
