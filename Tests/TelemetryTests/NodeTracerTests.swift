import Synchronization
import Testing
import Tracing

@testable import Telemetry

@Suite("Traces of a node")
struct NodeTracerTests {
    /// Time and chance as a test wants them.
    private final class World: Sendable {
        let now = Mutex<UInt64>(1_000_000_000)
        /// What chance says next, first to last; then it counts.
        let numbers = Mutex<[UInt64]>([])
        let counter = Mutex<UInt64>(0)
        let metrics = MetricsRegistry()
        let queue: SpanQueue

        init() { queue = SpanQueue(metrics) }

        func tracer(_ ratio: Double) -> NodeTracer {
            NodeTracer(
                ratio: ratio, queue: queue,
                random: { [self] in
                    let next = numbers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                    return next
                        ?? counter.withLock { counter in
                            counter += 1
                            return counter
                        }
                }, clock: { [self] in now.withLock(\.self) })
        }
    }

    private static let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test("traceparent is read as W3C has it, and what is malformed is none")
    func traceparent() throws {
        let place = try #require(TraceContext(traceparent: Self.header))
        #expect(place.trace.text == "4bf92f3577b34da6a3ce929d0e0e4736" && place.isSampled)
        #expect(place.traceparent == Self.header)
        #expect(TraceID(place.trace.text) == place.trace)
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what-comes"
        #expect(TraceContext(traceparent: later)?.isSampled == false)
        for wrong in [
            "", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g", Self.header + ", " + Self.header,
        ] { #expect(TraceContext(traceparent: wrong) == nil, "\(wrong)") }
    }

    @Test("chance decides on requests of clients that say nothing, and clients on their own, so many a second")
    func sampling() throws {
        let world = World()
        #expect(world.tracer(0).request("r", below: nil).span == nil)
        #expect(world.tracer(1).request("r", below: nil).span != nil)
        let half = world.tracer(0.5)
        world.numbers.withLock { $0 = [1 << 63] }
        #expect(half.request("r", below: nil).span == nil)
        world.numbers.withLock { $0 = [1 << 63 - 1] }
        let root = try #require(half.request("r", below: nil).span)
        #expect(root.isRecording && root.place.span != 0)

        let never = world.tracer(0)
        let found = never.request("r", below: Self.header)
        #expect(found.span?.place.trace == found.client?.trace)
        let unsampled = world.tracer(1).request("r", below: String(Self.header.dropLast()) + "0")
        #expect(unsampled.span == nil && unsampled.client?.trace == found.client?.trace)
        for _ in 1..<NodeTracer.clientTracesPerSecond { #expect(never.request("r", below: Self.header).span != nil) }
        let over = never.request("r", below: Self.header)
        #expect(over.span == nil && over.client?.isSampled == false, "its trace is still known by name")
        world.now.withLock { $0 += 1_000_000_000 }
        #expect(never.request("r", below: Self.header).span != nil)
    }

    @Test("parts stand below the span that they are of, or that is at work; what is not recorded has none")
    func parts() throws {
        let world = World()
        let tracer = world.tracer(0)
        #expect(tracer.part("p", of: nil) == nil)
        let request = try #require(tracer.request("r", below: Self.header).span)
        world.now.withLock { $0 += 5 }
        let part = try #require(ServiceContext.$current.withValue(request.context) { tracer.part("p", of: nil) })
        let inner = try #require(tracer.part("q", of: part.place, .client))
        inner.attributes["n"] = 3
        world.now.withLock { $0 += 7 }
        inner.finish(isFailed: true)
        inner.finish()
        inner.attributes["late"] = true
        part.finish()
        request.finish()
        let spans = world.queue.takeAll()
        #expect(spans.map(\.name) == ["q", "p", "r"])
        #expect(Set(spans.map(\.context.trace)).count == 1)
        #expect(spans.map(\.parent) == [part.place.span, request.place.span, 0x00f0_67aa_0ba9_02b7])
        #expect(spans.map { $0.end - $0.begin } == [7, 7, 12])
        #expect(spans[0].attributes == ["n": 3] && spans[0].status?.code == .error && spans[1].status == nil)
        var unsampled = part.place
        unsampled.isSampled = false
        #expect(tracer.part("p", of: unsampled) == nil)
    }

    @Test("libraries use it as any tracer: withSpan, inject and extract")
    func ecosystem() throws {
        struct Carrier: Extractor, Injector {
            func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
            func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
                carrier[key] = value
            }
        }
        let world = World()
        let tracer = world.tracer(1)
        var context = ServiceContext.topLevel
        tracer.extract(["traceparent": Self.header], into: &context, using: Carrier())
        struct Failure: Error {}
        var carrier: [String: String] = [:]
        #expect(throws: Failure.self) {
            try tracer.withSpan("outer", context: context) { span in
                tracer.inject(span.context, into: &carrier, using: Carrier())
                tracer.withSpan("inner") { $0.addEvent("moment") }
                throw Failure()
            }
        }
        let spans = world.queue.takeAll()
        #expect(spans.map(\.name) == ["inner", "outer"])
        #expect(spans[0].parent == spans[1].context.span && spans[1].parent == context.trace?.span)
        #expect(spans[0].events.map(\.name) == ["moment"] && spans[1].events.map(\.name) == ["exception"])
        #expect(carrier["traceparent"] == spans[1].context.traceparent)
        // Of a trace that is not recorded, nothing is kept.
        let none = world.tracer(0)
        none.withSpan("outer", context: .topLevel) { span in
            #expect(!span.isRecording)
            none.withSpan("inner") { _ in }
        }
        #expect(world.queue.takeAll().isEmpty)
    }

    @Test("what nobody takes is dropped and counted, and a span keeps so much only")
    func bounds() throws {
        let world = World()
        let tracer = world.tracer(1)
        for _ in 0...SpanQueue.spansMax { tracer.request("r", below: nil).span?.finish() }
        #expect(world.metrics.text.contains(#"zonekeeper_spans_dropped_total{reason="queue"} 1"#))
        #expect(world.queue.takeAll().count == SpanQueue.spansMax)
        world.queue.count(2, isWritten: true)
        world.queue.count(3, isWritten: false)
        #expect(world.metrics.text.contains("zonekeeper_spans_exported_total 2\n"))
        #expect(world.metrics.text.contains(#"zonekeeper_spans_dropped_total{reason="file"} 3"#))
        let span = try #require(tracer.request("r", below: nil).span)
        for number in 0..<1_000 {
            span.addEvent(SpanEvent(name: "e"))
            span.attributes["\(number)"] = number
        }
        span.finish()
        let kept = try #require(world.queue.takeAll().first)
        #expect(kept.events.count == RecordedSpan.partsMax && kept.attributes.count == RecordedSpan.partsMax)
    }
}
