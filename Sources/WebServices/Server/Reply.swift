import Directory
import Hummingbird
import KeyValueStore
import OpenAPIFile
import RecordModel
import Service

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
