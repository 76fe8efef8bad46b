import CoreMetrics
import Synchronization
package import Tracing

/// The traces of one node: a backend of swift-distributed-tracing that keeps spans in memory until an exporter takes
/// them. Any thread.
///
/// A node without one records nothing, and asks nothing. With one, only requests that are sampled cost more than the
/// look at their header and one random number.
package final class NodeTracer: Tracer {
    /// A moment by the node's clock.
    package struct Instant: TracerInstant {
        /// Since 1970.
        package let nanosecondsSinceEpoch: UInt64

        /// The earlier one first.
        package static func < (left: Self, right: Self) -> Bool {
            left.nanosecondsSinceEpoch < right.nanosecondsSinceEpoch
        }
    }

    /// How many requests a second are recorded because their clients say that they are; beyond, these count as not
    /// sampled: what anybody may send must not fill a disk.
    package static let clientTracesPerSecond = 50

    private struct Wishes {
        var second: UInt64 = 0
        var count = 0
    }

    /// Where spans go when they have ended.
    package let queue: SpanQueue
    /// Below it, a random number has a request recorded.
    private let threshold: UInt64
    private let isAlways: Bool
    private let random: @Sendable () -> UInt64
    private let clock: @Sendable () -> UInt64
    private let wishes = Mutex(Wishes())

    /// - Parameters:
    ///   - ratio: the part of requests that is recorded where no client says whether, from 0 to 1.
    ///   - random: any number with the same chance.
    ///   - clock: nanoseconds since 1970.
    package init(
        ratio: Double, queue: SpanQueue, random: @escaping @Sendable () -> UInt64,
        clock: @escaping @Sendable () -> UInt64
    ) {
        precondition((0...1).contains(ratio), "a part is from 0 to 1, not \(ratio)")
        isAlways = ratio >= 1
        threshold = isAlways ? .max : UInt64(ratio * 0x1p64)
        self.queue = queue
        self.random = random
        self.clock = clock
    }

    /// What time it is.
    package var now: Instant { Instant(nanosecondsSinceEpoch: clock()) }

    private var isChosen: Bool { isAlways || random() < threshold }

    /// The place of a new request: below the client's span, or as the first of a new trace.
    ///
    /// A client's word on whether its trace is recorded counts, within `clientTracesPerSecond`.
    /// - Parameter traceparent: what the client sent; what is malformed counts as not sent.
    /// - Returns: the client's span, or nil; and the request's own, where it is recorded.
    package func request(
        _ name: String, below traceparent: String?
    ) -> (client: TraceContext?, span: RecordedSpan?) {
        guard var client = traceparent.flatMap({ TraceContext(traceparent: $0) }) else {
            return (nil, isChosen ? span(name, below: nil, .topLevel, .server, at: now) : nil)
        }
        client.isSampled = client.isSampled && isGranted()
        return (client, client.isSampled ? span(name, below: client, .topLevel, .server, at: now) : nil)
    }

    private func isGranted() -> Bool {
        let second = clock() / 1_000_000_000
        return wishes.withLock { wishes in
            if wishes.second != second { wishes = Wishes(second: second) }
            wishes.count += 1
            return wishes.count <= Self.clientTracesPerSecond
        }
    }

    /// A part of what is done by a span; nil where that is not recorded.
    /// - Parameter parent: nil: the span at work in this task.
    package func part(
        _ name: String, of parent: TraceContext?, _ kind: SpanKind = .internal
    ) -> RecordedSpan? {
        let context = parent ?? ServiceContext.current?.trace
        guard let context, context.isSampled else { return nil }
        return span(name, below: context, .topLevel, kind, at: now)
    }

    private func span(
        _ name: String, below parent: TraceContext?, _ context: ServiceContext, _ kind: SpanKind, at begin: Instant,
        isSampled: Bool = true
    ) -> RecordedSpan {
        let place = TraceContext(
            trace: parent?.trace ?? newTrace(), span: newSpan(), isSampled: parent?.isSampled ?? isSampled)
        let span = FinishedSpan(
            context: place, parent: parent?.span, name: name, kind: kind, begin: begin.nanosecondsSinceEpoch,
            end: begin.nanosecondsSinceEpoch, attributes: [:], events: [], links: [], status: nil)
        return RecordedSpan(span, below: context, tracer: self)
    }

    private func newTrace() -> TraceID {
        while true { if let id = TraceID(high: random(), low: random()) { return id } }
    }

    private func newSpan() -> UInt64 {
        while true { if case let id = random(), id != 0 { return id } }
    }
}

// What swift-distributed-tracing asks of a tracer.
extension NodeTracer {
    /// A span below the one of a context; without one, the first of a trace, which chance has recorded or not.
    package func startSpan<Begin: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Begin, function _: String, file _: String, line _: UInt
    ) -> RecordedSpan {
        let context = context()
        let begin = Instant(nanosecondsSinceEpoch: instant().nanosecondsSinceEpoch)
        let isSampled = context.trace?.isSampled ?? isChosen
        return span(operationName, below: context.trace, context, kind, at: begin, isSampled: isSampled)
    }

    /// Nothing: the exporter comes every second.
    package func forceFlush() {}

    /// Takes over `traceparent`.
    package func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let text = extractor.extract(key: "traceparent", from: carrier) else { return }
        context.trace = TraceContext(traceparent: text)
    }

    /// Passes on `traceparent`.
    package func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let trace = context.trace else { return }
        injector.inject(trace.traceparent, forKey: "traceparent", into: &carrier)
    }
}

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
