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
    package func request(_ name: String, below traceparent: String?) -> (client: TraceContext?, span: RecordedSpan?) {
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
    package func part(_ name: String, of parent: TraceContext?, _ kind: SpanKind = .internal) -> RecordedSpan? {
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

/// What a span came to, for an exporter.
package struct FinishedSpan: Sendable {
    /// The span's own place.
    package var context: TraceContext
    /// The span above it; nil where it is the first of its trace.
    package var parent: UInt64?
    /// What was done.
    package var name: String
    /// Which side of a call it is, if it is one.
    package var kind: SpanKind
    /// Nanoseconds since 1970.
    package var begin: UInt64
    /// Not before `begin`.
    package var end: UInt64
    /// What is said of it.
    package var attributes: SpanAttributes
    /// Moments within it.
    package var events: [SpanEvent]
    /// Other spans that it has to do with.
    package var links: [SpanLink]
    /// How it ended; nil where nothing was said.
    package var status: SpanStatus?
}

/// A span at work. Any thread; what comes after its end is ignored.
package final class RecordedSpan: Span {
    /// What a span has room for, each: a caller in a loop must not fill memory.
    static let partsMax = 64

    private struct State {
        var span: FinishedSpan
        var isOver = false
    }

    private let outer: ServiceContext
    /// Its place, for what is done below it on other threads and nodes.
    package let place: TraceContext
    private let tracer: NodeTracer
    private let state: Mutex<State>

    init(_ span: FinishedSpan, below context: ServiceContext, tracer: NodeTracer) {
        outer = context
        self.tracer = tracer
        place = span.context
        state = Mutex(State(span: span))
    }

    /// With this span as the one at work.
    package var context: ServiceContext {
        var context = outer
        context.trace = place
        return context
    }

    /// Ends it now, by the node's clock.
    package func finish(isFailed: Bool = false) {
        if isFailed { setStatus(SpanStatus(code: .error)) }
        end(at: tracer.now)
    }

    private func change(_ change: (inout FinishedSpan) -> Void) {
        guard place.isSampled else { return }
        state.withLock { state in if !state.isOver { change(&state.span) } }
    }
}

// What swift-distributed-tracing asks of a span.
extension RecordedSpan {
    /// Whether it is exported.
    package var isRecording: Bool { place.isSampled && !state.withLock(\.isOver) }

    /// What is done.
    package var operationName: String {
        get { state.withLock(\.span.name) }
        set { change { $0.name = newValue } }
    }

    /// What is said of it; of many, those that came first.
    package var attributes: SpanAttributes {
        get { state.withLock(\.span.attributes) }
        set { change { if newValue.count <= Self.partsMax { $0.attributes = newValue } } }
    }

    /// How it ends.
    package func setStatus(_ status: SpanStatus) { change { $0.status = status } }

    /// Adds a moment.
    package func addEvent(_ event: SpanEvent) {
        change { if $0.events.count < Self.partsMax { $0.events.append(event) } }
    }

    /// Adds another span that it has to do with.
    package func addLink(_ link: SpanLink) { change { if $0.links.count < Self.partsMax { $0.links.append(link) } } }

    /// Adds that an error came up. Only its type is kept: its words may quote a request.
    package func recordError<Instant: TracerInstant>(
        _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
    ) {
        var attributes = attributes
        attributes["exception.type"] = "\(type(of: error))"
        addEvent(SpanEvent(name: "exception", at: instant(), attributes: attributes))
    }

    /// Ends it, and hands it to the exporter. Only the first end counts.
    package func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
        guard place.isSampled else { return }
        let finished = state.withLock { state -> FinishedSpan? in
            if state.isOver { return nil }
            state.isOver = true
            state.span.end = max(state.span.begin, instant().nanosecondsSinceEpoch)
            return state.span
        }
        if let finished { tracer.queue.add(finished) }
    }
}

/// What all spans of one trace have in common: 16 bytes that are not all zero.
package struct TraceID: Hashable, Sendable {
    /// The first eight bytes and the last eight, each with the most significant byte first.
    package let high: UInt64
    /// The last eight.
    package let low: UInt64

    /// - Returns: nil for zero, which is no id.
    package init?(high: UInt64, low: UInt64) {
        guard high != 0 || low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// Reads 32 hexadecimal digits in lower case.
    package init?(_ text: String) {
        guard text.utf8.count == 32, let high = HexDigits.number(text.utf8.prefix(16)),
            let low = HexDigits.number(text.utf8.dropFirst(16))
        else { return nil }
        self.init(high: high, low: low)
    }

    /// 32 digits in lower case.
    package var text: String { HexDigits.text(high) + HexDigits.text(low) }
}

/// A span's place in a trace, as it goes from a client to a node and from a node to another.
package struct TraceContext: Hashable, Sendable {
    /// The trace.
    package var trace: TraceID
    /// The span; not 0.
    package var span: UInt64
    /// Whether the trace is recorded.
    package var isSampled: Bool

    package init(trace: TraceID, span: UInt64, isSampled: Bool) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
    }

    /// Reads the header `traceparent` of W3C's Trace Context. Of a version that is not known, what version 00 has.
    /// - Returns: nil for what is malformed, which the recommendation has treated as if it were not there.
    package init?(traceparent text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count >= 4, parts[0].count == 2, let version = HexDigits.number(parts[0]), version != 0xFF,
            parts.count == 4 || version > 0, parts[1].count == 32, parts[2].count == 16, parts[3].count == 2,
            let high = HexDigits.number(parts[1].prefix(16)), let low = HexDigits.number(parts[1].dropFirst(16)),
            let trace = TraceID(high: high, low: low), let span = HexDigits.number(parts[2]), span != 0,
            let flags = HexDigits.number(parts[3])
        else { return nil }
        self.init(trace: trace, span: span, isSampled: flags & 1 == 1)
    }

    /// As the header `traceparent` has it.
    package var traceparent: String { "00-\(trace.text)-\(Self.text(ofSpan: span))-\(isSampled ? "01" : "00")" }

    /// 16 digits in lower case.
    package static func text(ofSpan span: UInt64) -> String { HexDigits.text(span) }
}

extension ServiceContext {
    private enum TraceKey: ServiceContextKey {
        typealias Value = TraceContext
    }

    /// The span that is at work.
    package var trace: TraceContext? {
        get { self[TraceKey.self] }
        set { self[TraceKey.self] = newValue }
    }
}

/// Numbers as hexadecimal digits in lower case, which is what trace contexts have.
enum HexDigits {
    /// - Returns: nil for more than 16 digits, and for anything else than digits.
    static func number(_ digits: some Collection<UInt8>) -> UInt64? {
        // Without this, signs and upper case would pass.
        guard digits.count <= 16, digits.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else { return nil }
        return UInt64(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    static func text(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
