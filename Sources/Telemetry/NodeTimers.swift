import CoreMetrics

/// How long the parts of a node's work take, as histograms of its metrics.
package struct NodeTimers: Sendable {
    /// From a command's way to its leader, on this node or another, to its outcome.
    package let commit: Stopwatch
    /// A read on the leader, with its wait for the index and for a thread.
    package let read: Stopwatch
    /// A transaction in which committed entries are applied.
    package let apply: Stopwatch
    /// A sync of the log's file.
    package let logSync: Stopwatch
    /// A request to another node and its answer.
    package let peerRoundTrip: Stopwatch

    /// - Parameter metrics: where they are shown.
    package init(_ metrics: MetricsRegistry) {
        func stopwatch(_ name: String) -> Stopwatch { Stopwatch("zonekeeper_\(name)_seconds", in: metrics) }
        commit = stopwatch("commit")
        read = stopwatch("read")
        apply = stopwatch("apply")
        logSync = stopwatch("log_sync")
        peerRoundTrip = stopwatch("peer_round_trip")
    }
}

/// Records how long something took.
package struct Stopwatch: Sendable {
    private let timer: CoreMetrics.Timer

    fileprivate init(_ label: String, in metrics: MetricsRegistry) {
        timer = Timer(label: label, dimensions: [], factory: metrics)
    }

    /// Takes note of a duration; what lies before its beginning counts as no time.
    package func record(nanoseconds: UInt64) { timer.recordNanoseconds(Int64(clamping: nanoseconds)) }

    /// Does something that blocks its thread, and takes note of how long that was, also where it failed.
    package func time<Value, Failure: Error>(
        _ body: () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let begin = ContinuousClock.now
        defer { timer.recordNanoseconds(Int64(begin.duration(to: .now) / .nanoseconds(1))) }
        return try body()
    }
}
