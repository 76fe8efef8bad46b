import Directory
import Hummingbird
import KeyValueStore
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

    /// A member that is left out where there is no value.
    mutating func optional(_ key: String, integer value: Int64?) {
        if let value { member(key, integer: value) }
    }

    mutating func object(_ key: String, _ write: (inout JSONWriter) -> Void) {
        self.key(key)
        object(write)
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
}

/// An answer on its way to the client.
struct Reply: Sendable {
    var status: Int
    var body: [UInt8]
    var contentType = "application/json; charset=UTF-8"
    /// For the `Retry-After` header, which has whole seconds.
    var retryAfterSeconds: Int64?
    /// Whether the request's body was not read to its end.
    var isBodyUnread = false
    /// More headers, in this order.
    var headers: [(name: String, value: String)] = []
    /// Writes the body as long as it goes on, in place of `body`.
    var stream: Stream?
    /// What the stream comes to, where that is known.
    var streamBytes: Int?

    typealias Stream = @Sendable (inout any ResponseBodyWriter) async throws -> Void

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
        case .limit, .expiredToken, .outcomeUnknown, .leastRole, .freshSignIn, .missingIndex, nil:
            error.code.httpStatus
        }
    }
}

extension RequestFailure.Details {
    /// Writes what it says to programs into an error's object.
    func write(to writer: inout JSONWriter) {
        switch self {
        case .limit(let name, let actual, let max, let key):
            writer.member("limit", name)
            writer.member("actual", integer: actual)
            writer.member("max", integer: max)
            if let key { writer.member("key", key) }
        case .expiredToken(let expiry): writer.member("syncTokenExpired", expiry.rawValue)
        case .leastRole(let role): writer.member("leastRole", role.rawValue)
        case .freshSignIn: writer.member("needsFreshSignIn", true)
        case .missingIndex(let missing):
            writer.key("missingIndex")
            writer.object { writer in
                writer.member("type", missing.recordType)
                writer.member("field", missing.field)
                writer.member("index", missing.index)
            }
        case .outcomeUnknown, .notBuilt, .methods, .requestTooLarge, .bodyTooLarge, .bodyTooSlow, .expiredURL: break
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
