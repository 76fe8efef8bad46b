import NIOCore
import NIOSSL
import NIOTLS

/// What a connection tells of itself; called on its event loop.
protocol LoadConnectionOwner: AnyObject {
    func connectionBecameReady(_ connection: LoadConnection)
    func connection(_ connection: LoadConnection, received answer: HTTPAnswer)
    /// It cannot be used any more; called once.
    func connection(_ connection: LoadConnection, wasLost reason: String)
}

/// A TLS connection to a node with at most one request under way. It lives on one event loop, as all that touches it does.
final class LoadConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Index of the node.
    let target: Int
    /// What is under way on it: the owner's, nil while it is idle.
    var flight: LoadFlight?
    /// Who is told; it may be handed over.
    weak var owner: (any LoadConnectionOwner)?
    private var context: ChannelHandlerContext?
    private var reader = HTTPAnswerReader()
    private(set) var isLost = false
    /// Whether requests can be sent on it: the handshake is over.
    private(set) var isReady = false
    /// Ends a connection that is never made; cancelled when it is.
    var handshakeTimeout: Scheduled<Void>?

    init(target: Int, owner: any LoadConnectionOwner) {
        self.target = target
        self.owner = owner
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelActive(context: ChannelHandlerContext) {
        // It may have been given up before there was a channel to close.
        if isLost { context.close(promise: nil) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            handshakeTimeout?.cancel()
            // It may have been given up before.
            guard !isLost else { return context.close(promise: nil) }
            isReady = true
            owner?.connectionBecameReady(self)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func send(_ request: ByteBuffer) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(request), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        reader.append(&bytes)
        do throws(HTTPAnswerError) {
            while let answer = try reader.next() {
                owner?.connection(self, received: answer)
                if answer.closes { return close("closed by the server") }
            }
        } catch {
            close(error.problem)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        lose(reader.isInsideAnswer ? "closed inside an answer" : "closed by the server")
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { close(LoadClient.name(of: error)) }

    /// Closes it; what was under way counts as unanswered for the reason.
    func close(_ reason: String) {
        lose(reason)
        context?.close(promise: nil)
    }

    /// To be told of a connection that never was.
    func lose(_ reason: String) {
        guard !isLost else { return }
        isLost = true
        handshakeTimeout?.cancel()
        owner?.connection(self, wasLost: reason)
    }
}

/// One attempt of a request on its way. Times are nanoseconds since the start.
struct LoadFlight: Sendable {
    var card: LoadDeck.Card
    /// Index into the kinds of clients.
    var behaviour: Int
    /// Number of the request, or in a closed loop of the worker that sends it.
    var turn: Int
    /// How often it was refused before.
    var attempt = 0
    var firstDue: UInt64
    var due: UInt64
    /// When it was handed over; it counts as unanswered some seconds after.
    var submitted: UInt64 = 0
    /// When a connection took it; nil while it waits for one.
    var sent: UInt64?
    var isExactRetry = false
}
