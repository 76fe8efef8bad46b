/// What one node, operation or kind of client got out of a run.
struct LoadShare: Hashable, Sendable {
    /// Attempts that ended, by how.
    private(set) var accepted = 0
    private(set) var throttled = 0
    private(set) var failed = 0
    private(set) var unanswered = 0
    /// Of the accepted, from when the attempt was due.
    private(set) var latencies = LatencySketch()
    /// Of the accepted, from when the first attempt was due: what a client waits that tries again.
    private(set) var waits = LatencySketch()
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
    /// When the first attempt was due, when this one was, when a connection took it (nil: none did), and when its answer came.
    var firstDue: UInt64
    var due: UInt64
    var sent: UInt64?
    var ended: UInt64
    /// Whether it was sent exactly when a refusal had said.
    var isExactRetry: Bool
    /// Whether it will be sent again.
    var isTriedAgain: Bool
}
