/// How true `retryAfter` was: what became of requests that were sent again exactly when it said.
struct RetryTruth: Hashable, Sendable {
    /// Refusals, of all clients, and those of them that named a time.
    private(set) var refusals = 0
    private(set) var refusalsWithTime = 0
    /// Times that were named.
    private(set) var asked = LatencySketch()
    /// Retries sent exactly then that were answered, by what the answer was.
    private(set) var accepted = 0
    private(set) var refusedAgain = 0
    private(set) var failed = 0
    /// How much later than told the retries were sent; the tester never sends one early.
    private(set) var lateness = LatencySketch()

    var answered: Int { accepted + refusedAgain + failed }

    /// The share of exact retries that were accepted, of those accepted or refused; nil where there was none.
    var share: Double? { accepted + refusedAgain > 0 ? Double(accepted) / Double(accepted + refusedAgain) : nil }

    mutating func recordRefusal(retryAfter: UInt64?) {
        refusals += 1
        guard let retryAfter else { return }
        refusalsWithTime += 1
        asked.record(retryAfter)
    }

    mutating func recordRetrySent(lateNanoseconds: UInt64) { lateness.record(lateNanoseconds) }

    mutating func recordRetry(_ outcome: LoadOutcome) {
        switch outcome {
        case .succeeded: accepted += 1
        case .throttled: refusedAgain += 1
        case .failed, .unanswered: failed += 1
        }
    }
}
