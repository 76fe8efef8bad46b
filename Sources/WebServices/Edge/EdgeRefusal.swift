import NIOHTTP1
import RecordModel

/// An answer that the edge gives in place of the service, after which the connection ends. It has the form of all
/// errors.
struct EdgeRefusal: Hashable, Sendable {
    var status: Int
    var error: ServiceError

    init(_ status: Int, _ error: ServiceError) {
        self.status = status
        self.error = error
    }

    init(_ status: Int, _ reason: String) { self.init(status, ServiceError(.badRequest, reason)) }

    static func tooManyConnections(_ connectionsMax: Int) -> EdgeRefusal {
        EdgeRefusal(
            503,
            ServiceError(
                .tryAgainLater,
                "this node has \(connectionsMax) connections already; try another node, or this one later",
                retryAfterSeconds: 5))
    }

    static func tooManyConnectionsOfAddress(_ connectionsMax: Int) -> EdgeRefusal {
        EdgeRefusal(
            503,
            ServiceError(
                .tryAgainLater,
                "your address has \(connectionsMax) connections to this node already; use those that you have",
                retryAfterSeconds: 5))
    }

    static func slowHead(_ seconds: String) -> EdgeRefusal {
        EdgeRefusal(408, "the request's head did not arrive within \(seconds) s of its first byte")
    }

    static func slowBody(_ bytesPerSecond: Int) -> EdgeRefusal {
        EdgeRefusal(408, "the request's body arrived with less than \(bytesPerSecond) bytes a second")
    }

    static func pipelined(_ requestsMax: Int) -> EdgeRefusal {
        EdgeRefusal(
            503,
            ServiceError(
                .tryAgainLater,
                "\(requestsMax) requests of this connection wait for answers already; read those first",
                retryAfterSeconds: 0))
    }

    /// The head and body of the answer.
    func response(hasBody: Bool) -> (head: HTTPResponseHead, body: [UInt8]) {
        let uuid = UUIDv7.generate(now: WallTime.now)
        let reply = Reply(error, status: status, uuid: uuid)
        var headers = HTTPHeaders([
            ("Content-Type", reply.contentType), ("Content-Length", String(reply.body.count)),
            ("X-Apple-Request-UUID", uuid), ("Connection", "close"), ("Server", "zonekeeper"),
            // Nothing in the answer is anyone's, so a page of any origin may read why it was refused.
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Expose-Headers", "X-Apple-Request-UUID,Retry-After"),
        ])
        if let seconds = reply.retryAfterSeconds {
            headers.add(name: "Retry-After", value: String(Int64(seconds.rounded(.up))))
        }
        let head = HTTPResponseHead(
            version: .http1_1, status: HTTPResponseStatus(statusCode: status), headers: headers)
        return (head, hasBody ? reply.body : [])
    }
}
