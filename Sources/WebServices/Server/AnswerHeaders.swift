import Admission
import Directory
import HTTPTypes
import Hummingbird
import NIOCore
import Service

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
        switch readers {
        case .any: headers[.accessControlAllowOrigin] = "*"
        case .only(let origin):
            headers[.accessControlAllowOrigin] = origin
            headers[.vary] = "Origin"
        case .none: headers[.vary] = "Origin"
        }
        if headers[.accessControlAllowOrigin] != nil {
            headers[.accessControlAllowMethods] = "GET, POST, PUT, DELETE"
            headers[.accessControlAllowHeaders] = "Content-Type, Idempotency-Key, If-Range, Last-Event-ID, Range"
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
