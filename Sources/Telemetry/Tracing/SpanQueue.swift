import CoreMetrics
import Synchronization

/// Spans that have ended and wait for the exporter: so many at most; what comes on top is dropped and counted, as no
/// request waits for an exporter. Any thread.
package final class SpanQueue: Sendable {
    /// Some 8 MB.
    package static let spansMax = 10_000

    private let spans = Mutex<[FinishedSpan]>([])
    private let exported: Counter
    private let dropped: Counter
    private let unwritten: Counter

    /// - Parameter metrics: where it is shown what was exported and what was not.
    package init(_ metrics: MetricsRegistry) {
        func counter(_ name: String, _ dimensions: [(String, String)] = []) -> Counter {
            Counter(label: "zonekeeper_spans_\(name)_total", dimensions: dimensions, factory: metrics)
        }
        exported = counter("exported")
        dropped = counter("dropped", [("reason", "queue")])
        unwritten = counter("dropped", [("reason", "file")])
        for counter in [exported, dropped, unwritten] { counter.increment(by: 0) }
    }

    func add(_ span: FinishedSpan) {
        let isFull = spans.withLock { spans in
            guard spans.count < Self.spansMax else { return true }
            spans.append(span)
            return false
        }
        if isFull { dropped.increment() }
    }

    /// Everything that waits, which then waits no longer.
    package func takeAll() -> [FinishedSpan] {
        spans.withLock { spans in
            defer { spans = [] }
            return spans
        }
    }

    /// Counts what an exporter did with spans that it took.
    /// - Parameter isWritten: if not, they are lost.
    package func count(_ spans: Int, isWritten: Bool) { (isWritten ? exported : unwritten).increment(by: spans) }
}
