import Admission
import Directory
import HTTPTypes
import HummingbirdCore
import RecordModel
import Service
import Telemetry
import Tracing

// What the log of requests is told.
extension WebCall {
    /// Takes note of the answer.
    func note(_ reply: Reply, microseconds: UInt64) {
        note.note { entry in
            entry.address = address ?? ""
            entry.status = reply.status
            entry.microseconds = microseconds
            entry.bytesOut = reply.stream == nil ? reply.body.count : reply.streamBytes ?? 0
        }
    }

    /// Writes the request to the node's log.
    func log(_ entry: RequestEntry, in service: RecordService) {
        let isKnown = entry.container.isEmpty || service.directory.hasContainer(entry.container)
        service.requests.take(entry, isKnown: isKnown)
    }

    /// Takes note of what a request for data is about.
    func note(_ route: DataRoute) {
        note.asks(route.name, route.group)
        note.note { entry in
            entry.container = route.target.container
            entry.environment = route.target.environment
            if case .database(let database, _) = route.action { entry.database = database }
        }
    }

    func note(_ caller: AdministratorAccess?, bodyBytes: Int) {
        note.note { entry in
            entry.container = url.text("container") ?? ""
            entry.environment = url["environment"].flatMap { Environment(rawValue: $0) }
            entry.credential = caller?.actor ?? ""
            entry.bytesIn = bodyBytes
            entry.isRefresh = isSafe && request.headers[Self.refresh] != nil
        }
    }

    /// What a page sends with what it asks for by itself, again and again. A valid header name, so never nil.
    private static let refresh = HTTPField.Name("X-Zonekeeper-Refresh")!
}

extension RequestEntry {
    /// What the edge refused before it was a request for the service.
    init(_ refusal: EdgeRefusal, id: UUIDv7, address: String?) {
        self.init(id: id, operation: "edge", group: .other)
        self.address = address ?? ""
        status = refusal.status
        code = refusal.error.code
        var rule = RequestRefusal(rule: refusal.rule, limit: refusal.limit.map { Int64($0) })
        rule.freeAfterMilliseconds = refusal.error.retryAfterMilliseconds
        rule.reason = String(refusal.error.reason.prefix(300))
        self.refusal = rule
    }
}

extension RequestNote {
    /// Takes note of what a path is about, before more is known. A node's own health, the console's files, and this
    /// API's description are not logged.
    func asks(ofPath segments: [String]) {
        switch segments.first {
        case "health", "console", "openapi.json", nil: break
        case "admin": asks("admin", .administration)
        case "assets": asks(segments.dropFirst(2).first == "upload" ? "assets/put" : "assets/get", .assets)
        case "aps": asks("push/courier", .notifications)
        case "database", "kv", "push", "device": asks("other", .other)
        default: if SignInRequest.isPath(segments) { asks("sign-in", .signIn) }
        }
    }
}

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
