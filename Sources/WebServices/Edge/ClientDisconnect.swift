import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOHTTPTypes
import Service

/// Tells of a client that goes away while its answer is waited for: its connection ends, it says that it will send no
/// more, or it gives up its request of an HTTP/2 connection.
struct ClientDisconnect: Sendable {
    private let channel: any Channel

    /// - Parameter channel: a connection, or one request's part of it.
    init(of channel: any Channel) { self.channel = channel }

    var isOver: Bool { !channel.isActive }

    /// Done once the connection's loop has done all that it was given until now.
    fileprivate func caughtUp() -> EventLoopFuture<Void> { channel.eventLoop.submit {} }

    /// Has `body` called when the client goes, perhaps also when the answer has ended; `end` is to be called with what
    /// this returns.
    func begin(_ body: @escaping @Sendable () -> Void) -> String {
        let name = "client-disconnect-\(UInt64.random(in: 0 ... .max))"
        // A request of an HTTP/2 connection is that connection's child, and ends with its own channel.
        guard channel.parent?.parent == nil else {
            channel.closeFuture.whenComplete { _ in body() }
            return name
        }
        channel.eventLoop.execute { [channel] in
            guard channel.isActive else { return body() }
            do { try channel.pipeline.syncOperations.addHandler(DepartureHandler(body), name: name) } catch { body() }
        }
        return name
    }

    func end(_ name: String) {
        // Where the client has gone, so has the handler.
        channel.pipeline.removeHandler(name: name, promise: nil)
    }
}

extension ClientDisconnect? {
    /// Does work that nobody needs once the client has gone: its task is cancelled then.
    func whileClientStays<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(RequestFailure) -> Value
    ) async throws(RequestFailure) -> Value {
        guard let self else { return try await work() }
        let task = Task { () async -> Result<Value, RequestFailure> in
            do throws(RequestFailure) {
                return .success(try await work())
            } catch {
                return .failure(error)
            }
        }
        let name = self.begin { task.cancel() }
        defer { self.end(name) }
        return try await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }.get()
    }

    /// Writes parts, each once the connection's loop has taken the one before: a writer waits for a full socket, but
    /// not for a loop that seals more slowly than parts come, and they would pile up before it.
    /// - Parameter wrote: called with each part's length.
    func write<Parts: AsyncSequence>(
        _ parts: Parts, to writer: inout any ResponseBodyWriter, _ wrote: (Int) -> Void
    ) async throws where Parts.Element == ByteBuffer {
        var sent: EventLoopFuture<Void>?
        for try await part in parts {
            try await sent?.get()
            try await writer.write(part)
            sent = self?.caughtUp()
            wrote(part.readableBytes)
        }
    }
}

/// Stands behind everything else of a channel.
private final class DepartureHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = Any

    private var body: (@Sendable () -> Void)?

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    private func tell() {
        body?()
        body = nil
    }

    func channelInactive(context: ChannelHandlerContext) {
        tell()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { tell() }
        context.fireUserInboundEventTriggered(event)
    }
}

/// The body of a request whose client does not send it before it is told to (RFC 9110, section 10.1.1). The first read
/// tells the client so: what is refused by its head alone costs no body.
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
