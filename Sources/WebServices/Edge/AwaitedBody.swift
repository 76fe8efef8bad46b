import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOHTTPTypes

/// The body of a request whose client does not send it before it is told to (RFC 9110, section 10.1.1). Whoever reads
/// it first tells the client so: what is refused by its head alone costs no body.
private struct AwaitedBody: AsyncSequence, Sendable {
    let body: RequestBody
    let channel: any Channel

    func makeAsyncIterator() -> Iterator { Iterator(parts: body.makeAsyncIterator(), untold: channel) }

    struct Iterator: AsyncIteratorProtocol {
        var parts: RequestBody.AsyncIterator
        /// The request's channel, until the client was told.
        var untold: (any Channel)?

        mutating func next() async throws -> ByteBuffer? {
            untold.take()?.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue)), promise: nil)
            return try await parts.next()
        }
    }
}

extension Request {
    /// The request as the service is to have it, so that a client that waits is told once its body is read.
    /// - Parameter channel: what the answer goes to.
    func tellingClient(on channel: any Channel) -> Request {
        guard headers[.expect]?.lowercased() == "100-continue" else { return self }
        var request = self
        request.body = RequestBody(asyncSequence: AwaitedBody(body: body, channel: channel))
        return request
    }
}
