import Foundation
import HTTPTypes
import NIOHTTP1
import RecordModel

/// Which requests are taken on at all, by their heads. Pure.
struct RequestRules: Sendable {
    var limits: EdgeLimits

    /// What the parser may gather before it gives up; more than the rules allow, so that they can tell what was too
    /// long.
    var parserBytesMax: Int { limits.headerBytesMax + 4 * limits.targetBytesMax }

    /// Why a request is refused; nil if it is not.
    func refusal(of request: RequestMeasure) -> EdgeRefusal? {
        if request.targetBytes > limits.targetBytesMax {
            return EdgeRefusal(
                414, "the request's target has \(request.targetBytes) bytes; \(limits.targetBytesMax) are allowed")
        }
        if request.headerBytes > limits.headerBytesMax {
            return EdgeRefusal(
                431,
                "the request's header fields have \(request.headerBytes) bytes; \(limits.headerBytesMax) are allowed")
        }
        if request.headerFields > limits.headerFieldsMax {
            return EdgeRefusal(
                431, "the request has \(request.headerFields) header fields; \(limits.headerFieldsMax) are allowed")
        }
        if let hosts = request.hosts, hosts != 1 {
            return EdgeRefusal(400, "the request has \(hosts) Host header fields; one is needed")
        }
        if request.method == "CONNECT" || request.method == "TRACE" {
            return .method(request.method)
        }
        return nil
    }

    /// What is answered to bytes that are no request.
    func refusal(of error: HTTPParserError) -> EdgeRefusal {
        switch error {
        case .headerOverflow:
            EdgeRefusal(
                431,
                "the request's head is too large: \(limits.headerFieldsMax) header fields, \(limits.headerBytesMax) "
                    + "bytes of them, and a target of \(limits.targetBytesMax) bytes are allowed")
        case .invalidVersion:
            EdgeRefusal(400, "this is neither HTTP 1.1 nor 1.0, which this service speaks")
        default:
            EdgeRefusal(400, "this is not a well-formed HTTP request (\(error))")
        }
    }
}

/// What of a request's head the rules look at.
struct RequestMeasure: Sendable {
    var method: String
    var targetBytes: Int
    var headerBytes = 0
    var headerFields = 0
    /// How many Host fields it has, where it must have one.
    var hosts: Int?

    /// Of a request of HTTP/1.
    init(_ head: HTTPRequestHead) {
        method = head.method.rawValue
        targetBytes = head.uri.utf8.count
        var hosts = 0
        for (name, value) in head.headers {
            add(name, value)
            if name.utf8.count == 4, name.lowercased() == "host" { hosts += 1 }
        }
        if (head.version.major, head.version.minor) >= (1, 1) { self.hosts = hosts }
    }

    /// Of a request of HTTP/2, whose authority has a place of its own.
    init(_ request: HTTPRequest) {
        method = request.method.rawValue
        targetBytes = request.path?.utf8.count ?? 0
        for field in request.headerFields { add(field.name.rawName, field.value) }
    }

    /// Counts a field with its colon, its space and the line's end.
    private mutating func add(_ name: String, _ value: String) {
        headerBytes += name.utf8.count + value.utf8.count + 4
        headerFields += 1
    }
}

/// An answer that the edge gives in place of the service, after which the connection ends. It has the form of all
/// errors.
struct EdgeRefusal: Hashable, Sendable {
    var status: Int
    var error: ServiceError
    /// The methods that there are, where it is about the method.
    var methods: [String] = []
    /// What refuses, as the log of requests names it.
    var rule: String
    /// What the rule allows, where that is a number.
    var limit: Int?

    /// Hears of a refusal, the id that its answer has, and the client's address.
    typealias Listener = @Sendable (EdgeRefusal, UUIDv7, String?) -> Void

    init(_ status: Int, _ error: ServiceError, rule: String, limit: Int? = nil) {
        self.status = status
        self.error = error
        self.rule = rule
        self.limit = limit
    }

    /// What is wrong with the request's head.
    init(_ status: Int, _ reason: String, rule: String = "requestHead", limit: Int? = nil) {
        self.init(status, ServiceError(.badRequest, reason), rule: rule, limit: limit)
    }

    /// A new id, of this moment.
    static func newID() -> UUIDv7 {
        UUIDv7(
            milliseconds: Int64(Date().timeIntervalSince1970 * 1_000),
            random: (.random(in: 0 ... .max), .random(in: 0 ... .max)))
    }

    static func tooManyConnections(_ connectionsMax: Int) -> EdgeRefusal {
        .later(
            "this node has \(connectionsMax) connections already; try another node, or this one later",
            after: 5, "connections", limit: connectionsMax)
    }

    static func tooManyConnectionsOfAddress(_ connectionsMax: Int) -> EdgeRefusal {
        .later(
            "your address has \(connectionsMax) connections to this node already; use those that you have",
            after: 5, "connectionsPerAddress", limit: connectionsMax)
    }

    static func tooMuchUnsent(_ bytesMax: Int) -> EdgeRefusal {
        .later(
            "more than \(bytesMax) bytes of answers wait for your address to take them; read those first",
            after: 1, "unsentBytes", limit: bytesMax)
    }

    private static func later(_ reason: String, after seconds: Double, _ rule: String, limit: Int) -> EdgeRefusal {
        let error = ServiceError(.tryAgainLater, reason, retryAfterSeconds: seconds)
        return EdgeRefusal(503, error, rule: rule, limit: limit)
    }

    static func method(_ name: String) -> EdgeRefusal {
        var refusal = EdgeRefusal(405, "\(name) is not a method of this service")
        refusal.methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        return refusal
    }

    static func slowHead(_ seconds: String) -> EdgeRefusal {
        EdgeRefusal(408, "the request's head did not arrive within \(seconds) s of its first byte", rule: "headSpeed")
    }

    static func slowBody(_ bytesPerSecond: Int) -> EdgeRefusal {
        EdgeRefusal(
            408, "the request's body arrived with less than \(bytesPerSecond) bytes a second", rule: "bodySpeed",
            limit: bytesPerSecond)
    }

    static func pipelined(_ requestsMax: Int) -> EdgeRefusal {
        .later(
            "\(requestsMax) requests of this connection wait for answers already; read those first",
            after: 0, "pipelinedRequests", limit: requestsMax)
    }

    /// The head and body of the answer in HTTP/1.
    func response(hasBody: Bool, uuid: String) -> (head: HTTPResponseHead, body: [UInt8]) {
        let (fields, body) = answer(uuid)
        var headers = HTTPHeaders(fields.map { ($0.name.rawName, $0.value) })
        headers.add(name: "Connection", value: "close")
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: headers)
        return (head, hasBody ? body : [])
    }

    /// The head and body of the answer in HTTP/2, where it ends no more than its stream.
    func streamResponse(hasBody: Bool, uuid: String) -> (head: HTTPResponse, body: [UInt8]) {
        let (fields, body) = answer(uuid)
        return (HTTPResponse(status: .init(code: status), headerFields: fields), hasBody ? body : [])
    }

    private func answer(_ uuid: String) -> (fields: HTTPFields, body: [UInt8]) {
        let reply = Reply(error, status: status, uuid: uuid)
        var fields: HTTPFields = [
            .contentType: reply.contentType, .contentLength: String(reply.body.count), .server: "zonekeeper",
            // Nothing in the answer is anyone's, so a page of any origin may read why it was refused.
            .accessControlAllowOrigin: "*", .accessControlExposeHeaders: "X-Apple-Request-UUID,Retry-After",
        ]
        if let name = HTTPField.Name("X-Apple-Request-UUID") { fields[name] = uuid }
        if !methods.isEmpty { fields[.allow] = methods.joined(separator: ", ") }
        if let seconds = reply.retryAfterSeconds { fields[.retryAfter] = String(seconds) }
        return (fields, reply.body)
    }
}
