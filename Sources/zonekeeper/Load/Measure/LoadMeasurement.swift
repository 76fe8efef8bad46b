/// All that a run counts and measures.
struct LoadMeasurement: Sendable {
    private(set) var tally = LoadTally()
    private(set) var timeline = LoadTimeline()
    private(set) var truth = RetryTruth()
    private(set) var byBehaviour: [LoadShare]
    private(set) var byTarget: [LoadShare]
    private(set) var byOperation: [LoadShare]
    /// What the last answer that spoke of a limit said.
    private(set) var budget: RateBudget?
    /// When the first request was sent and the last answer came; nil before.
    private(set) var firstSent: UInt64?
    private(set) var lastAnswer: UInt64?
    /// When the last request that was answered had been sent.
    private(set) var lastSent: UInt64?
    /// From when an attempt was sent until it was accepted or throttled.
    private(set) var answerTimes = LatencySketch()
    /// How long attempts waited for a connection to be free.
    private(set) var connectionWaits = LatencySketch()
    /// Attempts that were to be sent, those included that found no connection.
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
        if countsLateness { tally.record(latenessNanoseconds: now - min(due, now)) }
    }

    /// A connection took an attempt.
    /// - Parameter submitted: when it was to be sent; from then on it waited for the connection.
    mutating func recordSent(due: UInt64, submitted: UInt64, now: UInt64, isExactRetry: Bool) {
        if firstSent == nil { firstSent = now }
        connectionWaits.record(now - min(submitted, now))
        if isExactRetry { truth.recordRetrySent(lateNanoseconds: now - min(due, now)) }
    }

    mutating func record(_ attempt: LoadAttempt) {
        let latency = attempt.ended - min(attempt.due, attempt.ended)
        tally.record(attempt.outcome, nanoseconds: latency)
        timeline.record(attempt.outcome, latencyNanoseconds: latency, at: attempt.ended)
        byBehaviour[attempt.behaviour].record(attempt)
        byTarget[attempt.target].record(attempt)
        byOperation[attempt.operation].record(attempt)
        if case .throttled(_, let retryAfter) = attempt.outcome { truth.recordRefusal(retryAfter: retryAfter) }
        if attempt.isExactRetry { truth.recordRetry(attempt.outcome) }
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

    mutating func recordBudget(_ budget: RateBudget) { self.budget = budget }

    mutating func countNotIssued() { tally.countNotIssued() }

    mutating func recordGivenUp(behaviour: Int) {
        givenUp += 1
        byBehaviour[behaviour].recordGivenUp()
    }

    mutating func finish(at now: UInt64) { timeline.finish(at: now) }
}
