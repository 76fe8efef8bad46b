import HTTPTypes
import HummingbirdCore
import RecordModel
import Service
import Telemetry
import Tracing

/// A request's span, from its head to the head of its answer.
struct RequestSpan: Sendable {
    /// The client's place in a trace, if it told one.
    let client: TraceContext?
    /// Nil where the request is not recorded.
    let span: RecordedSpan?

    /// What is no work of this node's for anybody: a prober or a page's files would fill a trace.
    private static let quiet: Set<String> = ["health", "console", "openapi.json"]

    /// - Parameter tracer: nil: nothing is recorded, and no header looked at.
    init(_ call: WebCall, _ tracer: NodeTracer?) {
        guard let tracer, !Self.quiet.contains(call.url.segments.first ?? "") else {
            (client, span) = (nil, nil)
            return
        }
        (client, span) = tracer.request(call.url.metricName, below: call.request.headers[.traceparent])
    }

    /// Says what the log of requests has of it, and ends it.
    func end(_ call: WebCall, _ reply: Reply, _ entry: RequestEntry?) {
        guard let span else { return }
        var attributes: [String: SpanAttribute] = [
            "http.request.method": .string(call.request.method.rawValue),
            "http.response.status_code": .int64(Int64(reply.status)), "zonekeeper.request": .string(call.uuid),
        ]
        if let entry {
            span.operationName = entry.operation
            for (name, text) in [
                ("zonekeeper.container", entry.container),
                ("zonekeeper.environment", entry.environment?.rawValue ?? ""),
                ("zonekeeper.database", entry.database?.rawValue ?? ""), ("zonekeeper.zone", entry.zone),
                ("zonekeeper.record_type", entry.recordType), ("error.type", entry.firstCode?.rawValue ?? ""),
            ] where !text.isEmpty { attributes[name] = .string(text) }
        }
        span.attributes = SpanAttributes(attributes)
        span.finish(isFailed: reply.status >= 500)
    }
}
