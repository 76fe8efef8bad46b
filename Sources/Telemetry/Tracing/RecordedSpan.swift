import Synchronization
package import Tracing

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
