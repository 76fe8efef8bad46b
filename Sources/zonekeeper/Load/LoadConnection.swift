import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOTLS

/// One answer as far as a load needs it.
struct HTTPAnswer: Sendable {
    var status: Int
    var body: ByteBuffer
    /// Seconds, of the header `Retry-After`.
    var retryAfterSeconds: Double?
    /// nil where neither of the two headers is there.
    var budget: RateBudget?
    var closes: Bool

    /// - Returns: nil where the end of the answer would be that of the connection, or it is not of HTTP/1.1: nodes send
    ///   neither.
    fileprivate init?(_ head: HTTPResponseHead) {
        let hasLength =
            head.headers.contains(name: "Content-Length") || head.headers.contains(name: "Transfer-Encoding")
        guard head.version == .http1_1, hasLength || [204, 304].contains(head.status.code) else { return nil }
        status = Int(head.status.code)
        body = ByteBuffer()
        retryAfterSeconds = head.headers.first(name: "Retry-After").flatMap(Double.init)
        closes = !head.isKeepAlive
        for name in ["RateLimit-Policy", "RateLimit"] {
            guard let value = head.headers.first(name: name) else { continue }
            var budget = budget ?? RateBudget()
            budget.take(value.utf8)
            self.budget = budget
        }
    }

    fileprivate mutating func append(_ part: inout ByteBuffer) {
        // Most answers come in one piece, which needs no copy.
        if body.readableBytes == 0 { body = part } else { body.writeBuffer(&part) }
    }
}

/// A TLS connection to a node with at most one request under way. It lives on one event loop, as all that touches it
/// does.
final class LoadConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    let target: Int
    /// What is under way on it; nil while it is idle.
    var flight: LoadFlight?
    private weak var engine: LoadEngine?
    private var context: ChannelHandlerContext?
    private var answer: HTTPAnswer?
    private(set) var isLost = false
    /// Whether requests can be sent on it: the handshake is over.
    private(set) var isReady = false
    /// Ends a connection that is never made; cancelled when it is.
    var handshakeTimeout: Scheduled<Void>?

    private static let bodyBytesMax = 64 << 20

    init(target: Int, engine: LoadEngine) {
        self.target = target
        self.engine = engine
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
            engine?.connectionBecameReady(self)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func send(_ request: LoadRequest) {
        guard let context else { return }
        context.write(wrapOutboundOut(.head(request.head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(request.body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isLost else { return }
        switch unwrapInboundIn(data) {
        case .head(let head):
            answer = HTTPAnswer(head)
            if answer == nil { close("an answer that is not of HTTP/1.1, or without a length") }
        case .body(var part):
            answer?.append(&part)
            if let answer, answer.body.readableBytes > Self.bodyBytesMax {
                close("an answer of more than \(Self.bodyBytesMax) bytes")
            }
        case .end:
            guard let answer else { return }
            self.answer = nil
            engine?.connection(self, received: answer)
            if answer.closes { close("closed by the server") }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        lose(answer != nil ? "closed inside an answer" : "closed by the server")
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? HTTPParserError {
            close(error == .invalidEOFState ? "closed inside an answer" : "no answer of HTTP/1.1: \(error)")
        } else {
            close(LoadClient.name(of: error))
        }
    }

    func close(_ reason: String) {
        lose(reason)
        context?.close(promise: nil)
    }

    /// Reports the connection as lost, also one that was never made.
    func lose(_ reason: String) {
        guard !isLost else { return }
        isLost = true
        handshakeTimeout?.cancel()
        engine?.connection(self, wasLost: reason)
    }
}

struct LoadConnector: Sendable {
    let loop: any EventLoop
    let tls: NIOSSLContext
    /// A node that takes connections and does not shake hands would hold up what waits for it.
    var handshakeTimeout: TimeAmount
    static let usualHandshakeTimeout = TimeAmount.seconds(5)
    static let handshakeTimedOut = "TLS handshake timed out"

    /// Makes a connection on the loop, and tells the engine within the time-out whether it is ready or lost.
    func connect(_ connection: LoadConnection, to target: LoadTarget) {
        let bound = NIOLoopBound(connection, eventLoop: loop)
        connection.handshakeTimeout = loop.assumeIsolated().scheduleTask(in: handshakeTimeout) {
            if !connection.isReady { connection.close(Self.handshakeTimedOut) }
        }
        ClientBootstrap(group: loop)
            .connectTimeout(.seconds(3))
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { [tls] channel in
                channel.eventLoop.makeCompletedFuture {
                    // Addresses have no place in the name that a client sends (RFC 6066).
                    let isAddress = (try? SocketAddress(ipAddress: target.host, port: 0)) != nil
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(
                        NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : target.host))
                    // The requests are ours, so their headers need no second look.
                    try pipeline.addHTTPClientHandlers(enableOutboundHeaderValidation: false)
                    try pipeline.addHandler(bound.value)
                }
            }
            .connect(host: target.host, port: target.port)
            .whenFailure { error in bound.value.lose(LoadClient.name(of: error)) }
    }
}

/// One attempt of a request on its way. Times are nanoseconds since the start.
struct LoadFlight: Sendable {
    var card: LoadDeck.Card
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

/// The connections to one node: requests that find none free wait in order.
struct LoadPool {
    let target: LoadTarget
    let connectionsMax: Int
    var idle: [LoadConnection] = []
    var busy = 0
    var connecting = 0
    var waiting = CircularBuffer<LoadFlight>()

    var open: Int { idle.count + busy + connecting }
}
