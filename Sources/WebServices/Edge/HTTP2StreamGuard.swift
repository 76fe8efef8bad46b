import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Stands at the head of one request of an HTTP/2 connection: refuses it by its head, and ends it when its body comes,
/// or its answer is taken, too slowly. The other requests of the connection go on.
final class HTTP2StreamGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    private let edge: Edge
    /// The connection's; nil once the request has ended.
    private var connection: ConnectionTimeoutHandler?
    /// The address's.
    private var load: AddressLoad?
    private var watch: ConnectionTimeouts
    private var timer: Scheduled<Void>?
    private var isReading = false
    /// Between the request's head and its end.
    private var isBodyComing = false
    private var isHeadMethod = false
    /// Between the answer's first and last part.
    private var isResponding = false
    /// The edge has answered: what the service or the client still says is not passed on.
    private var isRefused = false
    private var pendingBytes = 0
    private var sentBytes = 0

    init(edge: Edge) {
        self.edge = edge
        watch = ConnectionTimeouts(limits: edge.limits, now: .now())
        watch.handshakeCompleted(now: .now())
    }

    func handlerAdded(context: ChannelHandlerContext) {
        connection = try? context.channel.parent?.pipeline.syncOperations.handler(type: ConnectionTimeoutHandler.self)
        connection?.watch.streamBegan()
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        // Otherwise a body that is cut would look like one that has ended.
        if isBodyComing { context.fireErrorCaught(ChannelError.inputClosed) }
        isBodyComing = false
        context.fireChannelInactive()
    }

    private func end() {
        timer?.cancel()
        timer = nil
        connection?.watch.streamEnded(now: .now())
        connection = nil
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        switch unwrapInboundIn(data) {
        case .head(let request):
            isHeadMethod = request.method == .head
            isBodyComing = true
            watch.headEnded(now: .now())
            let authorization = request.headerFields[.authorization]
            if let refusal = connection?.refusal(ofTarget: request.path ?? "/", authorization: authorization) {
                return refuse(context, refusal)
            }
            if let refusal = RequestRules(limits: edge.limits).refusal(of: RequestMeasure(request)) {
                edge.counters.count(.badRequest)
                return refuse(context, refusal)
            }
            load = connection?.load
            if let refusal = load.flatMap(edge.book.refusal) {
                edge.counters.count(.unsent)
                return refuse(context, refusal)
            }
            scheduleLook(context)
        case .body(let buffer):
            watch.bytesArrived(buffer.readableBytes, now: .now())
        case .end:
            isBodyComing = false
            watch.requestEnded(now: .now())
        }
        context.fireChannelRead(data)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) {
        isReading = true
        context.read()
    }

    // MARK: Out

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        // The service answers what was refused meanwhile. It has done its part.
        guard !isRefused else { return promise?.succeed() ?? () }
        switch unwrapOutboundIn(data) {
        case .head(var head):
            isResponding = head.status.kind != .informational
            // What is said of a connection has no place in HTTP/2, and would cost the client its answer.
            head.headerFields[.connection] = nil
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body(let buffer):
            let count = buffer.readableBytes
            guard let taken = edge.send(data, count, for: load, on: context, promise) else { return }
            pendingBytes += count
            let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
            taken.whenComplete { _ in
                bound.value.pendingBytes -= count
                bound.value.sentBytes += count
            }
        case .end: context.write(data, promise: promise)
        }
    }

    /// Answers, and ends the request soon, whether or not the client takes the answer.
    private func refuse(_ context: ChannelHandlerContext, _ refusal: EdgeRefusal) {
        isRefused = true
        watch.inputEnded()
        // The service may be waiting for a body, and hold what came of it.
        context.fireErrorCaught(ChannelError.inputClosed)
        guard !isResponding else { return context.close(promise: nil) }
        let id = edge.refused(refusal, on: context.channel)
        let (head, body) = refusal.streamResponse(hasBody: !isHeadMethod, uuid: id)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !body.isEmpty { context.write(wrapOutboundOut(.body(ByteBuffer(bytes: body))), promise: nil) }
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        written.futureResult.whenComplete { _ in bound.value.close(promise: nil) }
        timer?.cancel()
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: edge.limits.lingerTimeout) {
            bound.value.close(promise: nil)
        }
    }

    // MARK: The clock

    private func scheduleLook(_ context: ChannelHandlerContext) {
        timer = edge.afterTick(of: context) { [weak self] in self?.look($0) }
    }

    private func look(_ context: ChannelHandlerContext) {
        let verdict = watch.looked(
            ConnectionTimeouts.Sight(
                now: .now(), isReading: isReading, unsentBytes: pendingBytes, sentBytes: sentBytes,
                requestsSharing: connection?.watch.requestsOpen ?? 1))
        switch verdict {
        case nil: return scheduleLook(context)
        case .drop(let end):
            edge.counters.count(end)
            context.close(promise: nil)
        case .refuse(let end):
            edge.counters.count(end)
            refuse(context, .slowBody(edge.limits.bytesPerSecondMin))
        }
    }
}
