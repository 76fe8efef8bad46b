import Directory
import RecordModel
import Service
import Telemetry

/// `GET requests`, `requests/trace` and `requests/watch`: the log of requests of all nodes.
struct RequestRoutes {
    let request: AdminRequest
    private var requests: RequestAdministration { request.administration.requests }

    func list() async throws(RequestFailure) -> Reply {
        let url = request.url
        let limit = min(Int(clamping: try url.number("limit") ?? 100), RequestAdministration.requestsPerPageMax)
        guard limit > 0 else { throw .badRequest("limit: at least 1 is expected") }
        let after = try url.text("after").map { text throws(RequestFailure) in
            guard let id = UUIDv7(text) else { throw RequestURL.wrongCursor(text) }
            return id
        }
        let page = try await requests.page(try filter(), before: after, limit: limit, of: try url.number("node"))
        return Reply { writer in
            writer.list("requests", page.requests) { $1.members(of: $0) }
            writer.optional("next", page.next?.text)
            writer.list("nodes", page.nodes) { $1.members(of: $0) }
        }
    }

    /// One request, its way through the nodes, and what refused it.
    func trace() async throws(RequestFailure) -> Reply {
        let text = try request.url.need("id")
        guard let id = UUIDv7(text) else {
            throw .badRequest("id: a request's id is expected, such as answers have in X-Apple-Request-UUID")
        }
        let way = try await requests.way(of: id)
        return Reply { writer in
            writer.object("request") { $0.members(of: way.request) }
            writer.list("hops", way.hops) { hop, writer in
                writer.member("node", count: hop.node)
                writer.member("from", count: hop.from)
                writer.member("work", hop.work)
                writer.member("group", count: hop.group)
                writer.member("time", integer: hop.time)
                writer.milliseconds(hop.microseconds)
                writer.member("done", hop.isDone)
            }
            writer.list("nodes", way.nodes) { $1.members(of: $0) }
        }
    }

    /// The log as it grows.
    func watch() async throws(RequestFailure) -> Reply {
        let url = request.url
        if url["limit"] != nil { throw .badRequest("limit: a stream has none") }
        let token = request.call.lastEventID ?? url.text("after")
        let marks = try token.map { text throws(RequestFailure) in
            guard let marks = RequestMarks(text) else { throw RequestURL.wrongCursor(text) }
            return marks
        }
        let following = RequestFollowing(request.administration, try filter(), marks: marks?.marks ?? [:])
        return try await RequestStream(request: request, following: following).events()
    }

    private func filter() throws(RequestFailure) -> RequestFilter {
        let url = request.url
        var filter = RequestFilter.blank
        filter.container = url.text("container")
        filter.environment = try url.environment()
        filter.database = try url.one(of: "database", Scope.init)
        filter.operation = url.text("operation")
        filter.zone = url.text("zone")
        filter.recordType = url.text("recordType")
        filter.user = url.text("user")
        filter.code = try url.one(of: "code", ErrorCode.init)
        filter.isFailed = try url.flag("failed")
        filter.isOfClients = try url.flag("clients")
        filter.microsecondsMin = try url.number("milliseconds").map { min($0, .max / 1_000) * 1_000 }
        filter.from = try url.number("from").map { Int64(clamping: $0) }
        filter.until = try url.number("until").map { Int64(clamping: $0) }
        filter.trace = try url.text("trace").map { text throws(RequestFailure) in
            guard let trace = TraceID(text) else {
                throw .badRequest("trace: 32 hexadecimal digits in lower case are expected, not all zero")
            }
            return trace
        }
        return filter
    }
}

extension RequestURL {
    /// The environment that is asked for; nil where none is.
    func environment() throws(RequestFailure) -> Environment? {
        guard let text = text("environment") else { return nil }
        return try AdminRequest.environment(text)
    }

    /// A parameter that names a case; nil where it is missing.
    func one<Value: CaseIterable & RawRepresentable<String>>(
        of name: String, _ make: (String) -> Value?
    ) throws(RequestFailure) -> Value? {
        guard let text = text(name) else { return nil }
        if let value = make(text) { return value }
        let names = Value.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        throw .badRequest("\(name): one of \(names) is expected, not '\(text.prefix(64))'")
    }
}

extension JSONWriter {
    /// A node that was asked, and why its part is missing.
    mutating func members(of node: RequestAdministration.AskedNode) {
        member("node", count: node.id)
        optional("problem", node.problem)
    }

    /// Microseconds, as milliseconds with their fraction.
    mutating func milliseconds(_ microseconds: UInt64) { member("milliseconds", number: Double(microseconds) / 1_000) }

    /// A request of the log; what it does not have is left out.
    mutating func members(of request: RequestAdministration.Request) {
        let entry = request.entry
        member("id", entry.id.text)
        member("time", integer: entry.time)
        member("node", count: request.node)
        member("operation", entry.operation)
        for (name, text) in [
            ("container", entry.container), ("environment", entry.environment?.rawValue ?? ""),
            ("database", entry.database?.rawValue ?? ""), ("zone", entry.zone), ("recordType", entry.recordType),
            ("user", entry.user), ("credential", entry.credential), ("address", entry.address),
        ] where !text.isEmpty { member(name, text) }
        member("status", count: entry.status)
        optional("code", entry.code?.rawValue)
        if entry.failedItems > 0 {
            member("failedItems", count: entry.failedItems)
            optional("itemCode", entry.itemCode?.rawValue)
        }
        milliseconds(entry.microseconds)
        member("records", count: entry.records)
        member("bytesIn", count: entry.bytesIn)
        member("bytesOut", count: entry.bytesOut)
        if !entry.nodes.isEmpty {
            array("askedNodes") { writer in for node in entry.nodes { writer.integer(Int64(node)) } }
        }
        optional("trace", entry.trace?.text)
        if entry.isRefresh { member("refresh", true) }
        guard let refusal = entry.refusal else { return }
        object("refusal") { writer in
            writer.member("rule", refusal.rule)
            writer.optional("limit", integer: refusal.limit)
            writer.optional("used", integer: refusal.used)
            writer.optional("freeAt", integer: refusal.freeAfterMilliseconds.map { entry.finished + $0 })
            if !refusal.reason.isEmpty { writer.member("reason", refusal.reason) }
        }
    }
}

extension RequestEntry {
    /// When it was answered, in milliseconds since 1970.
    fileprivate var finished: Int64 { time + Int64(microseconds / 1_000) }
}
