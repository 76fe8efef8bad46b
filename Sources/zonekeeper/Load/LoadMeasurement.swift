import Histogram

/// Times from a nanosecond to an hour. Percentiles are within the precision of the histogram; the longest time is
/// exact.
struct LatencyHistogram: Sendable {
    private var histogram: Histogram<UInt64>
    private(set) var maxNanoseconds: UInt64 = 0

    private static let hour: UInt64 = 3_600_000_000_000

    /// - Parameter digits: significant ones. Two are enough for the share of a second or a node, and take a tenth of
    ///   the memory.
    init(digits: SignificantDigits = .two) {
        histogram = Histogram(highestTrackableValue: Self.hour, numberOfSignificantValueDigits: digits)
    }

    var count: Int { Int(histogram.totalCount) }
    var meanMilliseconds: Double { histogram.mean / 1_000_000 }

    mutating func record(_ nanoseconds: UInt64) {
        _ = histogram.record(min(max(1, nanoseconds), Self.hour))
        maxNanoseconds = max(maxNanoseconds, nanoseconds)
    }

    mutating func add(_ other: LatencyHistogram) {
        histogram.add(other.histogram)
        maxNanoseconds = max(maxNanoseconds, other.maxNanoseconds)
    }

    mutating func removeAll() {
        guard count > 0 else { return }
        histogram.reset()
        maxNanoseconds = 0
    }

    /// The time that so many percent did not take longer than, in nanoseconds; 0 when nothing was recorded.
    func nanoseconds(atPercentile percentile: Double) -> UInt64 {
        percentile < 100 ? min(histogram.valueAtPercentile(percentile), maxNanoseconds) : maxNanoseconds
    }

    /// The same in milliseconds; nil when nothing was recorded.
    func milliseconds(atPercentile percentile: Double) -> Double? {
        count > 0 ? Double(nanoseconds(atPercentile: percentile)) / 1_000_000 : nil
    }

    /// The times as they would have been had requests kept coming while one was slow: for each that took longer than
    /// the interval, those that a client sending at that interval would have had waiting behind it are added.
    ///
    /// A closed loop stops sending while it waits ("coordinated omission"); an open one needs no correction.
    /// - Parameter interval: nanoseconds; the median time is the usual choice for a closed loop.
    func corrected(interval: UInt64) -> LatencyHistogram {
        var corrected = LatencyHistogram(digits: histogram.numberOfSignificantValueDigits)
        for entry in histogram.recordedValues() {
            _ = corrected.histogram.recordCorrectedValue(
                entry.value, count: entry.count, expectedInterval: max(1, interval))
        }
        corrected.maxNanoseconds = maxNanoseconds
        return corrected
    }
}

/// What was counted and measured in a run. Times are in nanoseconds.
struct LoadTally: Sendable {
    /// Times of requests that succeeded. In an open loop they count from when a request was due, so a stall shows in
    /// each request that was due meanwhile.
    private(set) var latencies = LatencyHistogram(digits: .three)
    private(set) var failureLatencies = LatencyHistogram(digits: .three)
    /// How late the generator itself was: from when a request was due until it was handed to the client.
    var lateness = LatencyHistogram(digits: .three)
    private(set) var errorsByCode: [String: Int] = [:]
    private(set) var reasonsByCode: [String: String] = [:]
    private(set) var errorsByStatus: [Int: Int] = [:]
    private(set) var errorsByTransport: [String: Int] = [:]
    /// Due, but not sent: as many requests as allowed were under way.
    var notIssued = 0
    /// Failures that asked the client to slow down.
    private(set) var throttled = 0

    /// Errors without `serverErrorCode` are counted under this name.
    static let noCode = "(no code)"

    var succeeded: Int { latencies.count }
    var failed: Int { failureLatencies.count }
    var unanswered: Int { errorsByTransport.values.reduce(0, +) }

    mutating func record(_ outcome: LoadOutcome, nanoseconds: UInt64) {
        switch outcome {
        case .succeeded: return latencies.record(nanoseconds)
        case .throttled(let status, _):
            throttled += 1
            errorsByCode[LoadAnswer.throttledCode, default: 0] += 1
            errorsByStatus[status, default: 0] += 1
        case .failed(let status, let code, let reason):
            let code = code ?? Self.noCode
            errorsByCode[code, default: 0] += 1
            if let reason, reasonsByCode[code] == nil { reasonsByCode[code] = reason }
            errorsByStatus[status, default: 0] += 1
        case .unanswered(let reason): errorsByTransport[reason, default: 0] += 1
        }
        failureLatencies.record(nanoseconds)
    }

}

/// How exact `retryAfter` was: what became of requests that were sent again exactly when it said.
struct RetryAfterAccuracy: Sendable {
    /// Of all clients.
    private(set) var refusals = 0
    private(set) var refusalsWithTime = 0
    private(set) var asked = LatencyHistogram()
    /// Retries sent exactly then that were answered, by what the answer was.
    private(set) var accepted = 0
    private(set) var refusedAgain = 0
    private(set) var failed = 0
    /// How late the retries were sent; the tester never sends one early.
    var lateness = LatencyHistogram()

    var answered: Int { accepted + refusedAgain + failed }

    /// The share of exact retries that were accepted, of those accepted or refused; nil where there was none.
    var share: Double? { accepted + refusedAgain > 0 ? Double(accepted) / Double(accepted + refusedAgain) : nil }

    mutating func recordRefusal(retryAfter: UInt64?) {
        refusals += 1
        guard let retryAfter else { return }
        refusalsWithTime += 1
        asked.record(retryAfter)
    }

    mutating func recordRetry(_ outcome: LoadOutcome) {
        switch outcome {
        case .succeeded: accepted += 1
        case .throttled: refusedAgain += 1
        case .failed, .unanswered: failed += 1
        }
    }
}

/// What one node, operation or kind of client got out of a run.
struct LoadShare: Sendable {
    private(set) var accepted = 0
    private(set) var throttled = 0
    private(set) var failed = 0
    private(set) var unanswered = 0
    /// Of the accepted, from when the attempt was due.
    private(set) var latencies = LatencyHistogram()
    /// Of the accepted, from when the first attempt was due: what a client waits that tries again.
    private(set) var waits = LatencyHistogram()
    /// Requests whose last attempt ended: accepted, failed or given up.
    private(set) var requests = 0

    var attempts: Int { accepted + throttled + failed + unanswered }

    /// The share of requests that were accepted in the end; nil where none ended.
    var acceptedShare: Double? { requests > 0 ? Double(accepted) / Double(requests) : nil }

    mutating func record(_ end: LoadAttempt) {
        switch end.outcome {
        case .succeeded:
            accepted += 1
            latencies.record(end.ended - min(end.due, end.ended))
            waits.record(end.ended - min(end.firstDue, end.ended))
        case .throttled: throttled += 1
        case .failed: failed += 1
        case .unanswered: unanswered += 1
        }
        if !end.isTriedAgain { requests += 1 }
    }

    /// A request that waited to be sent again when the run ended: it was not accepted.
    mutating func recordGivenUp() { requests += 1 }
}

/// How one attempt of a request ended. Times are nanoseconds since the start.
struct LoadAttempt: Sendable {
    var outcome: LoadOutcome
    /// Indices into the kinds of clients, the nodes and the operations of the run.
    var behaviour: Int
    var target: Int
    var operation: Int
    /// When the first attempt was due, when this one was, when a connection took it (nil: none did), and when its
    /// answer came.
    var firstDue: UInt64
    var due: UInt64
    var sent: UInt64?
    var ended: UInt64
    /// Whether it was sent exactly when a refusal had said.
    var isExactRetry: Bool
    var isTriedAgain: Bool
}

struct LoadMeasurement: Sendable {
    private(set) var tally = LoadTally()
    private(set) var timeline = LoadTimeline()
    private(set) var retryAfter = RetryAfterAccuracy()
    private(set) var byBehaviour: [LoadShare]
    private(set) var byTarget: [LoadShare]
    private(set) var byOperation: [LoadShare]
    /// What the last answer that spoke of a limit said.
    var budget: RateBudget?
    /// When the first request was sent and the last answer came; nil before.
    private(set) var firstSent: UInt64?
    private(set) var lastAnswer: UInt64?
    /// When the last request that was answered had been sent.
    private(set) var lastSent: UInt64?
    /// From when an attempt was sent until it was accepted or throttled.
    private(set) var answerTimes = LatencyHistogram()
    private(set) var connectionWaits = LatencyHistogram()
    /// Attempts to send, including those that found no connection.
    private(set) var sent = 0
    /// Requests that waited to be sent again when the run ended.
    private(set) var givenUp = 0

    init(behaviours: Int, targets: Int, operations: Int) {
        byBehaviour = [LoadShare](repeating: LoadShare(), count: behaviours)
        byTarget = [LoadShare](repeating: LoadShare(), count: targets)
        byOperation = [LoadShare](repeating: LoadShare(), count: operations)
    }

    /// - Parameters:
    ///   - due: when it should have been sent; not after `now`.
    ///   - countsLateness: not in a closed loop, where nothing is due.
    mutating func recordSubmitted(due: UInt64, now: UInt64, countsLateness: Bool) {
        sent += 1
        timeline.recordSent(at: now)
        if countsLateness { tally.lateness.record(now - min(due, now)) }
    }

    /// A connection took an attempt.
    /// - Parameter submitted: when it was to be sent; from then on it waited for the connection.
    mutating func recordSent(due: UInt64, submitted: UInt64, now: UInt64, isExactRetry: Bool) {
        if firstSent == nil { firstSent = now }
        connectionWaits.record(now - min(submitted, now))
        if isExactRetry { retryAfter.lateness.record(now - min(due, now)) }
    }

    mutating func record(_ attempt: LoadAttempt) {
        let latency = attempt.ended - min(attempt.due, attempt.ended)
        tally.record(attempt.outcome, nanoseconds: latency)
        timeline.record(attempt.outcome, latencyNanoseconds: latency, at: attempt.ended)
        byBehaviour[attempt.behaviour].record(attempt)
        byTarget[attempt.target].record(attempt)
        byOperation[attempt.operation].record(attempt)
        if case .throttled(_, let pause) = attempt.outcome { retryAfter.recordRefusal(retryAfter: pause) }
        if attempt.isExactRetry { retryAfter.recordRetry(attempt.outcome) }
        if case .unanswered = attempt.outcome { return }
        lastAnswer = attempt.ended
        guard let sent = attempt.sent else { return }
        timeline.recordAnswered(sentAt: sent)
        lastSent = max(lastSent ?? 0, sent)
        switch attempt.outcome {
        case .succeeded, .throttled: answerTimes.record(attempt.ended - min(sent, attempt.ended))
        case .failed, .unanswered: break
        }
    }

    mutating func countNotIssued() { tally.notIssued += 1 }

    mutating func recordGivenUp(behaviour: Int) {
        givenUp += 1
        byBehaviour[behaviour].recordGivenUp()
    }

    mutating func finish(at now: UInt64) { timeline.finish(at: now) }
}

/// What happened when: counts of each second, and of each tenth of one what was accepted.
///
/// Requests count when they are sent, answers when they arrive. Times are nanoseconds since the start.
struct LoadTimeline: Sendable {
    struct Second: Hashable, Sendable {
        /// Attempts that were sent, repeats included.
        var sent = 0
        /// Attempts that a connection took in this second and that were answered, whenever and however.
        var answered = 0
        var accepted = 0
        var throttled = 0
        var failed = 0
        var unanswered = 0
        /// Of the accepted, in milliseconds; nil where there was none.
        var p50: Double?
        var p90: Double?
        var p99: Double?
        var max: Double?
    }

    private(set) var seconds: [Second] = []
    /// Accepted requests in each tenth of a second.
    private(set) var acceptedTenths: [UInt32] = []
    /// The accepted of the last second that an answer fell into.
    private var current = LatencyHistogram()
    private var currentSecond = 0

    private static let second: UInt64 = 1_000_000_000

    mutating func recordSent(at nanoseconds: UInt64) { seconds[reach(nanoseconds)].sent += 1 }

    /// - Parameter nanoseconds: not after what was recorded last.
    mutating func recordAnswered(sentAt nanoseconds: UInt64) { seconds[reach(nanoseconds)].answered += 1 }

    /// - Parameters:
    ///   - latencyNanoseconds: since the request was due.
    ///   - nanoseconds: never before that of the call before.
    mutating func record(_ outcome: LoadOutcome, latencyNanoseconds: UInt64, at nanoseconds: UInt64) {
        let index = reach(nanoseconds)
        if index != currentSecond { close(movingTo: index) }
        switch outcome {
        case .succeeded:
            seconds[index].accepted += 1
            acceptedTenths[Int(nanoseconds / (Self.second / 10))] += 1
            current.record(latencyNanoseconds)
        case .throttled: seconds[index].throttled += 1
        case .failed: seconds[index].failed += 1
        case .unanswered: seconds[index].unanswered += 1
        }
    }

    /// Ends the last second; to be called once, at the end.
    mutating func finish(at nanoseconds: UInt64) {
        _ = reach(nanoseconds)
        close(movingTo: currentSecond)
    }

    private mutating func close(movingTo next: Int) {
        if current.count > 0 {
            seconds[currentSecond].p50 = current.milliseconds(atPercentile: 50)
            seconds[currentSecond].p90 = current.milliseconds(atPercentile: 90)
            seconds[currentSecond].p99 = current.milliseconds(atPercentile: 99)
            seconds[currentSecond].max = Double(current.maxNanoseconds) / 1_000_000
            current.removeAll()
        }
        currentSecond = next
    }

    private mutating func reach(_ nanoseconds: UInt64) -> Int {
        let index = Int(nanoseconds / Self.second)
        while seconds.count <= index {
            seconds.append(Second())
            acceptedTenths.append(contentsOf: repeatElement(0, count: 10))
        }
        return index
    }

    /// What was accepted from one tenth of a second on and before another.
    func accepted(inTenths tenths: Range<Int>) -> Int {
        acceptedTenths[tenths.clamped(to: 0..<acceptedTenths.count)].reduce(0) { $0 + Int($1) }
    }

    /// The most that was accepted in any span of so many tenths of a second; nil for a run that is shorter.
    ///
    /// Spans begin on tenths: a span between may hold up to what one tenth more holds.
    func acceptedMax(inTenths span: Int) -> Int? {
        guard acceptedTenths.count >= span else { return nil }
        var sum = acceptedTenths[..<span].reduce(0) { $0 + Int($1) }
        var most = sum
        for index in span..<max(span, acceptedTenths.count) {
            sum += Int(acceptedTenths[index]) - Int(acceptedTenths[index - span])
            most = max(most, sum)
        }
        return most
    }
}
