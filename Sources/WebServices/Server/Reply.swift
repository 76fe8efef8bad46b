import Directory
import Hummingbird
import RecordModel

/// An answer on its way to the client.
struct Reply: Sendable {
    var status: Int
    var body: [UInt8]
    var contentType = "application/json; charset=UTF-8"
    /// For the `Retry-After` header, which has whole seconds.
    var retryAfterSeconds: Double?
    /// Whether the request's body was not read to its end.
    var isBodyUnread = false
    /// More headers, in this order.
    var headers: [(name: String, value: String)] = []
    /// Writes the body as long as it goes on, in place of `body`.
    var stream: Stream?

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
        retryAfterSeconds = error.retryAfterSeconds
    }
}

/// A request whose whole answer is an error, sometimes under another status than its code has.
struct RequestFailure: Error {
    var error: ServiceError
    var status: Int?
    /// Whether the request's body was not read to its end.
    var isBodyUnread = false
    /// The API token whose user is to sign in; the answer says where.
    var signIn: Token?
    /// More of it, for programs.
    var details: FailureDetails?

    init(_ error: ServiceError, status: Int? = nil) {
        self.error = error
        self.status = status
    }

    init(_ code: ErrorCode, _ reason: String, status: Int? = nil) {
        self.init(ServiceError(code, reason), status: status)
    }

    /// Something CloudKit has and this server does not have yet.
    static func notBuilt(_ what: String) -> RequestFailure {
        RequestFailure(.badRequest, "\(what) is not built yet in this version of Zonekeeper", status: 501)
    }
}
