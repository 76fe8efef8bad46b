import RecordModel
import Service
import Telemetry
import TestSupport
import Testing
import Tracing

@testable import WebServices

@Suite("Traces of requests")
struct TraceHTTPTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let at = "container=\(ConsoleWorld.container)"
    private static let zones = "/database/1/\(ConsoleWorld.container)/development/public/zones/list"

    private static func tracer() -> NodeTracer {
        NodeTracer(
            ratio: 0, queue: SpanQueue(MetricsRegistry()), random: { .random(in: 1 ... .max) }, clock: { 1_000_000 })
    }

    @Test("a client's trace goes on in the node, and the log of requests names it, recorded or not")
    func joined() async throws {
        let tracer = Self.tracer()
        let world = try await ConsoleWorld(tracer: tracer)
        func ask(_ traceparent: String?, _ target: String = Self.zones) async throws -> SignInWorld.Page {
            var headers = [("Authorization", "Bearer \(SingleNode.administratorToken)")]
            if let traceparent { headers.append(("traceparent", traceparent)) }
            return try await world.send("GET", target, headers: headers)
        }
        _ = tracer.queue.takeAll()
        let answer = try await ask("00-\(Self.trace)-00f067aa0ba902b7-01")
        #expect(answer.status == 200)
        let spans = tracer.queue.takeAll()
        let request = try #require(spans.first { $0.name == "zones/list" })
        #expect(request.kind == .server && request.parent == 0x00f0_67aa_0ba9_02b7)
        #expect(spans.allSatisfy { $0.context.trace.text == Self.trace })
        #expect(
            request.attributes["zonekeeper.request"]?.toSpanAttribute()
                == .string(try #require(answer["x-apple-request-uuid"])))
        let parts = spans.filter { $0.parent == request.context.span }.map(\.name)
        #expect(parts.contains("admission") && parts.contains("read"), "\(parts)")
        let reads = spans.filter { $0.name == "read" }.map(\.context.span)
        #expect(spans.contains { $0.name == "query" && reads.contains($0.parent ?? 0) })

        // Of a trace that is not recorded there is the name only; without one, nothing; health is nobody's.
        _ = try await ask("00-\(Self.trace)-00f067aa0ba902b7-00")
        _ = try await ask(nil)
        _ = try await ask("00-\(Self.trace)-00f067aa0ba902b7-01", "/health/live")
        #expect(!tracer.queue.takeAll().contains { $0.kind == .server })
        let log = try await world.admin("GET", "requests?\(Self.at)&clients=true")
        let traces = (log["requests"]?.array ?? []).map { $0["trace"]?.string }
        // Requests of one millisecond are in no order.
        #expect(traces.count == 3 && traces.filter { $0 == Self.trace }.count == 2 && traces.contains(nil))
        let found = try await world.admin("GET", "requests?\(Self.at)&clients=true&trace=\(Self.trace)")
        #expect(found["requests"]?.array?.count == 2)
        let id = try #require(answer["x-apple-request-uuid"])
        let shown = try await world.admin("GET", "requests/trace?id=\(id)")
        #expect(shown["request"]?["trace"] == .string(Self.trace))
        #expect(try await world.token("GET", "requests?trace=xyz").status == 400)
        try await world.node.stop()
    }
}
