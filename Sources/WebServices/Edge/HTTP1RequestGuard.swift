import NIOCore
import NIOHTTP1

/// Stands behind the HTTP parser: refuses requests by their heads, answers what is refused when its turn comes, and
/// closes the connection after an answer that says so.
///
/// A refusal is the connection's last answer. What is answered before it, by order of the requests, is waited for; what
/// comes in after it is thrown away, for a moment, so that the client gets to read why.
final class HTTP1RequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum Phase {
        case serving
        /// The refusal waits for its turn: until so many requests are open.
        case refusing(EdgeRefusal, requestsOpen: Int)
        /// The last answer is on its way out, or is.
        case ending
    }

    private let edge: Edge
    private let rules: RequestRules
    private let watcher: ConnectionTimeoutHandler
    private var phase = Phase.serving
    private var context: ChannelHandlerContext?
    /// Between a request's head and its end.
    private var isBodyComing = false
    /// Between an answer's head and its end.
    private var isResponding = false
    /// The last request's answer, or the one at hand, is to be the last.
    private var isLast = false
    private var isHeadMethod = false
    private var lingering: Scheduled<Void>?

    init(edge: Edge, watcher: ConnectionTimeoutHandler) {
        self.edge = edge
        self.watcher = watcher
        rules = RequestRules(limits: edge.limits)
        watcher.requests = self
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        lingering?.cancel()
        self.context = nil
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .serving = phase else { return }
        switch unwrapInboundIn(data) {
        case .head(var head):
            // What comes after the last request is not taken.
            guard !isLast else { return }
            isHeadMethod = head.method == .HEAD
            if let refusal = refusal(of: head) { return refuse(refusal, isOpen: false) }
            isLast = !head.isKeepAlive || head.headers.contains(name: "Upgrade")
            isBodyComing = true
            watcher.watch.headEnded(now: .now())
            // Clients of HTTP/1.0 do not know what they would be told.
            if head.version == .http1_0, head.headers.contains(name: "Expect") {
                head.headers.remove(name: "Expect")
                return context.fireChannelRead(wrapInboundOut(.head(head)))
            }
        case .body:
            guard isBodyComing else { return }
        case .end:
            guard isBodyComing else { return }
            isBodyComing = false
            watcher.watch.requestEnded(now: .now())
            if isLast { watcher.watch.inputEnded() }
        }
        context.fireChannelRead(data)
    }

    /// Why a request is not passed on; nil if it is.
    private func refusal(of head: HTTPRequestHead) -> EdgeRefusal? {
        let authorization = head.headers.first(name: "authorization")
        if let refusal = watcher.refusal(ofTarget: head.uri, authorization: authorization) { return refusal }
        if let refusal = rules.refusal(of: RequestMeasure(head)) {
            edge.counters.count(.badRequest)
            return refusal
        }
        if watcher.watch.requestsOpen >= edge.limits.pipelinedRequestsMax {
            edge.counters.count(.pipelined)
            return .pipelined(edge.limits.pipelinedRequestsMax)
        }
        guard let refusal = watcher.load.flatMap(edge.book.refusal) else { return nil }
        edge.counters.count(.unsent)
        return refusal
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        // Nobody behind here takes what is thrown away, so nobody else would ask for more.
        if case .serving = phase { return }
        context.read()
    }

    func channelInactive(context: ChannelHandlerContext) {
        // Otherwise a body that is cut would look like one that has ended.
        if isBodyComing { context.fireErrorCaught(ChannelError.inputClosed) }
        isBodyComing = false
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else {
            context.fireErrorCaught(error)
            return context.close(promise: nil)
        }
        guard case .serving = phase, !isLast || isBodyComing else { return }
        edge.counters.count(.badRequest)
        refuse(rules.refusal(of: error), isOpen: isBodyComing)
    }

    // MARK: Refusing

    func isTooSlow(_ end: EdgeEnd) {
        guard case .serving = phase else { return }
        if end == .slowBody {
            refuse(.slowBody(edge.limits.bytesPerSecondMin), isOpen: true)
        } else {
            let milliseconds = edge.limits.headersTimeout.nanoseconds / 1_000_000
            refuse(
                .slowHead(milliseconds % 1_000 == 0 ? "\(milliseconds / 1_000)" : "0.\(milliseconds)"), isOpen: false)
        }
    }

    /// - Parameter isOpen: whether the request was passed on, and its answer is thus owed by the service.
    private func refuse(_ refusal: EdgeRefusal, isOpen: Bool) {
        phase = .refusing(refusal, requestsOpen: isOpen ? 1 : 0)
        watcher.watch.inputEnded()
        refuseIfTurn()
        context?.read()
    }

    private func refuseIfTurn() {
        guard let context, case .refusing(let refusal, let requestsOpen) = phase, !isResponding,
            watcher.watch.requestsOpen <= requestsOpen
        else { return }
        // The service was faster: it has answered the request that would be refused.
        guard watcher.watch.requestsOpen == requestsOpen else { return end(context, after: nil) }
        let id = edge.refused(refusal, on: context.channel)
        let (head, body) = refusal.response(hasBody: !isHeadMethod, uuid: id)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !body.isEmpty {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
        }
        let promise = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: promise)
        end(context, after: promise.futureResult)
    }

    // MARK: Out

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .ending = phase {
            // The service answers a request that was refused meanwhile. It has done its part.
            promise?.succeed()
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(var head) where !(100..<200).contains(head.status.code):
            isResponding = true
            let says = head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "close" }
            // An answer that says so ends the connection, though a body may still be coming.
            if says { isLast = true }
            if isLast, watcher.watch.requestsOpen == 1, !says {
                head.headers.replaceOrAdd(name: "Connection", value: "close")
            }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            isResponding = false
            watcher.watch.responseEnded(now: .now())
            guard isLast, watcher.watch.requestsOpen == 0 else {
                context.write(data, promise: promise)
                return refuseIfTurn()
            }
            let written = promise ?? context.eventLoop.makePromise(of: Void.self)
            context.writeAndFlush(data, promise: written)
            end(context, after: written.futureResult)
        case .body(.byteBuffer(let buffer)):
            edge.send(data, buffer.readableBytes, for: watcher.load, on: context, promise)
        default: context.write(data, promise: promise)
        }
    }

    /// Closes once the last answer is out, and at once unless something may still be coming in: closing over bytes that
    /// were not taken would take the answer from the client, too.
    private func end(_ context: ChannelHandlerContext, after written: EventLoopFuture<Void>?) {
        let isMoreComing = if case .refusing = phase { true } else { isBodyComing }
        phase = .ending
        watcher.watch.inputEnded()
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let out = written ?? context.eventLoop.makeSucceededVoidFuture()
        out.whenComplete { result in
            guard case .success = result, isMoreComing else { return bound.value.close() }
            bound.value.linger()
        }
        context.read()
    }

    private func linger() {
        guard let context else { return }
        lingering = context.eventLoop.assumeIsolated().scheduleTask(in: edge.limits.lingerTimeout) { [weak self] in
            self?.close()
        }
    }

    /// Says goodbye and waits, as TLS does, for a moment for the client's; nobody else would ask for it.
    private func close() {
        guard let context else { return }
        context.close(promise: nil)
        context.read()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .ending = phase, case .inputClosed = event as? ChannelEvent { close() }
        context.fireUserInboundEventTriggered(event)
    }
}
