import Admission
import Directory
import HTTPTypes
import Hummingbird
import KeyValueStore
import NIOCore
import OpenAPIFile
import RecordModel
import Service

// What answers are written with, besides what JSONWriter has itself.
extension JSONWriter {
    mutating func member(_ key: String, count value: some BinaryInteger) {
        member(key, integer: Int64(clamping: value))
    }

    /// A member that is left out where there is no value.
    mutating func optional(_ key: String, _ value: String?) {
        if let value { member(key, value) }
    }

    mutating func optional(_ key: String, integer value: Int64?) {
        if let value { member(key, integer: value) }
    }

    mutating func object(_ key: String, _ write: (inout JSONWriter) -> Void) {
        self.key(key)
        object(write)
    }

    mutating func array(_ key: String, _ write: (inout JSONWriter) -> Void) {
        self.key(key)
        array(write)
    }

    /// A member whose value is rendered already.
    mutating func raw(_ key: String, _ rendered: [UInt8]) {
        self.key(key)
        raw(rendered)
    }

    /// A member that is an array of objects.
    mutating func list<Element>(
        _ key: String, _ elements: some Sequence<Element>, _ write: (Element, inout JSONWriter) -> Void
    ) {
        self.key(key)
        array { writer in for element in elements { writer.object { write(element, &$0) } } }
    }

    /// A member that is an array of texts.
    mutating func list(_ key: String, _ texts: some Sequence<String>) {
        self.key(key)
        array { writer in for text in texts { writer.string(text) } }
    }

    mutating func members(of key: SchemaKey) {
        member("container", key.container)
        member("environment", key.environment.rawValue)
    }
}

extension [UInt8] {
    /// A request's body as JSON.
    func json() throws(RequestFailure) -> JSONValue {
        do throws(JSONError) { return try JSONParser.parse(self) } catch {
            throw .badRequest("the body is not JSON: \(error)")
        }
    }

    /// A request's body as the members of a JSON object; none where there is no body.
    func jsonMembers() throws(RequestFailure) -> [JSONValue.Member] {
        if isEmpty { return [] }
        let json = try json()
        if case .object(let members) = json { return members }
        throw .badRequest("the body: an object is expected, not \(json.kind)")
    }
}

/// An answer on its way to the client.
struct Reply: Sendable {
    var status: Int
    var body: [UInt8]
    var contentType = "application/json; charset=UTF-8"
    /// For the `Retry-After` header, which has whole seconds.
    var retryAfterSeconds: Int64?
    /// Whether each item of the request was refused, so that nothing of it was done.
    var isAllRefused = false
    /// Whether the request's body was not read to its end.
    var isBodyUnread = false
    /// More headers, in this order.
    var headers: [(name: String, value: String)] = []
    /// Writes the body as long as it goes on, in place of `body`.
    var stream: Stream?
    /// What the stream comes to, where that is known.
    var streamBytes: Int?

    typealias Stream = @Sendable (inout any ResponseBodyWriter) async throws -> Void

    /// A stream of server-sent events. What browsers wait before they come again is told first.
    static func events(_ stream: @escaping Stream) -> Reply {
        var reply = Reply(body: [], contentType: "text/event-stream; charset=UTF-8")
        reply.headers.append(("x-accel-buffering", "no"))
        reply.stream = { writer in
            try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
            try await stream(&writer)
        }
        return reply
    }

    init(status: Int = 200, body: [UInt8], contentType: String = "application/json; charset=UTF-8") {
        self.status = status
        self.body = body
        self.contentType = contentType
    }

    /// A JSON object.
    init(status: Int = 200, _ write: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(write)
        self.init(status: status, body: writer.bytes)
    }

    /// That something was done with what has a name.
    static func done(_ what: String, _ key: String, _ name: String) -> Reply {
        Reply { writer in
            writer.member(key, name)
            writer.member(what, true)
        }
    }

    /// A request that failed as a whole.
    init(_ error: ServiceError, status: Int? = nil, uuid: String, more: (inout JSONWriter) -> Void = { _ in }) {
        var writer = JSONWriter()
        writer.requestError(uuid: uuid, error, more: more)
        self.init(status: status ?? error.code.httpStatus, body: writer.bytes)
        retryAfterSeconds = error.retryAfterWholeSeconds
    }
}

extension RequestFailure {
    /// The status of its answer.
    var status: Int {
        switch details {
        case .notBuilt: 501
        case .methods: 405
        case .bodyTooLarge, .requestTooLarge: 413
        case .bodyTooSlow: 408
        case .expiredURL: 410
        case .limit, .expiredToken, .outcomeUnknown, .leastRole, .freshSignIn, nil:
            error.code.httpStatus
        }
    }

    /// Writes what it says to programs into an error's object.
    func write(to writer: inout JSONWriter) {
        if let missing = error.missingIndex {
            writer.object("missingIndex") { writer in
                writer.member("type", missing.recordType)
                writer.member("field", missing.field)
                writer.member("index", missing.index)
            }
        }
        switch details {
        case .limit(let name, let actual, let max, let key):
            writer.member("limit", name)
            writer.member("actual", integer: actual)
            writer.member("max", integer: max)
            if let key { writer.member("key", key) }
        case .expiredToken(let expiry): writer.member("syncTokenExpired", expiry.rawValue)
        case .leastRole(let role): writer.member("leastRole", role.rawValue)
        case .freshSignIn: writer.member("needsFreshSignIn", true)
        case .outcomeUnknown, .notBuilt, .methods, .requestTooLarge, .bodyTooLarge, .bodyTooSlow, .expiredURL, nil:
            break
        }
    }
}

/// The OpenAPI 3.1 document of the HTTP API: every path, request, answer and error that this version has.
///
/// It is the file `Sources/WebServices/OpenAPI/openapi.json`, which is part of the binary. The conformance tests hold
/// every answer of the server against it, and `OpenAPIRoutesTests` its paths against the tables of routes.
package enum OpenAPIDocument {
    /// The file's bytes.
    package static let json = Array(
        UnsafeBufferPointer(start: openapi_document(), count: openapi_document_size()))
}

/// The headers of an answer, gathered while its request is worked on, so that errors carry them too.
struct AnswerHeaders: Sendable {
    private var fields: [(name: String, value: String)] = []
    /// The page that sends the request, where a browser says so.
    private let origin: String?
    private let apiToken: String?
    /// What pages may read the answer: nil for any, else the one that asked.
    private var readers = Readers.any

    private enum Readers {
        case any
        case only(String)
        case none
    }

    init(_ request: Request, url: RequestURL) {
        origin = request.headers[.origin]
        apiToken = url["ckAPIToken"]
    }

    mutating func add(_ name: String, _ value: String) { fields.append((name, value)) }

    mutating func add(_ notes: RequestNotes) {
        if let token = notes.webAuthToken { add("X-Apple-CloudKit-Web-Auth-Token", token) }
        guard let rate = notes.rate else { return }
        add("RateLimit", "\"\(rate.kind.rawValue)\";r=\(rate.remaining);t=\((rate.resetMilliseconds + 999) / 1_000)")
    }

    /// Lets the pages read the answer that the API token is for.
    mutating func allow(_ token: Token?) {
        guard case .api(_, _, let origins, _) = token?.kind, !origins.isEmpty else { return }
        guard let origin, OriginRule.allows(origin, origins) else {
            readers = .none
            return
        }
        readers = .only(origin)
    }

    /// Answers a browser's question before the request, which carries the API token in its URL as the request will.
    mutating func allowPreflight(in directory: DirectorySnapshot) {
        if let apiToken { allow(directory.token(withSecret: apiToken)) }
    }

    /// For pages, which scripts of other pages have no business with.
    mutating func leaveOutAccessControl() { readers = .none }

    func response(_ reply: Reply, uuid: String) -> Response {
        var headers = HTTPFields()
        headers[.contentType] = reply.contentType
        headers[Self.requestUUID] = uuid
        let pages: String? =
            switch readers {
            case .any: "*"
            case .only(let origin): origin
            case .none: nil
            }
        if pages != "*" { headers[.vary] = "Origin" }
        if let pages {
            headers[.accessControlAllowOrigin] = pages
            headers[.accessControlAllowMethods] = "GET, POST, PUT, DELETE"
            headers[.accessControlAllowHeaders] =
                "Content-Type, Idempotency-Key, If-Range, Last-Event-ID, Range, Traceparent"
            headers[.accessControlExposeHeaders] =
                "X-Apple-Request-UUID,X-Apple-CloudKit-Web-Auth-Token,Retry-After,RateLimit,RateLimit-Policy,"
                + "Accept-Ranges,Content-Range,ETag"
        }
        if let seconds = reply.retryAfterSeconds { headers[.retryAfter] = String(seconds) }
        // The rest of a body that is not wanted is not waited for either.
        if reply.isBodyUnread { headers[.connection] = "close" }
        // Answers have tokens, or what is somebody's own.
        if !reply.headers.contains(where: { $0.name == "cache-control" }) { headers[.cacheControl] = "no-store" }
        for (name, value) in fields + reply.headers {
            if let name = HTTPField.Name(name) { headers.append(HTTPField(name: name, value: value)) }
        }
        return Response(
            status: HTTPResponse.Status(code: reply.status), headers: headers,
            body: reply.stream.map { ResponseBody(contentLength: reply.streamBytes, $0) }
                ?? ResponseBody(byteBuffer: ByteBuffer(bytes: reply.body)))
    }

    // A valid header name, so the optional is never nil.
    private static let requestUUID = HTTPField.Name("X-Apple-Request-UUID")!
}
