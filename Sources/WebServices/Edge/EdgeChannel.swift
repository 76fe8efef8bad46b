import HTTPTypes
package import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import NIOTLS
import PeerTransport
import RecordModel
import Synchronization

/// Says of a request whose connection is beyond a limit whether it is served all the same, by its target and what
/// follows `Authorization:`. It must be quick.
typealias EdgePass = @Sendable (_ target: String, _ authorization: String?) -> Bool

/// What the connections of a client port have in common.
final class Edge: Sendable {
    let limits: EdgeLimits
    let book: ConnectionBook
    let certificates: ServerCertificates
    let counters: EdgeCounters
    let logger: Logger
    let pass: EdgePass
    private let onRefusal: EdgeRefusal.Listener
    private let quietLog = Mutex(QuietLog())

    /// - Parameters:
    ///   - pass: which requests are served though their connection is beyond a limit.
    ///   - onRefusal: hears of each request that is refused.
    init(
        limits: EdgeLimits, certificates: ServerCertificates, counters: EdgeCounters, logger: Logger,
        pass: @escaping EdgePass, onRefusal: @escaping EdgeRefusal.Listener
    ) {
        self.pass = pass
        self.onRefusal = onRefusal
        self.limits = limits
        book = ConnectionBook(limits: limits)
        self.certificates = certificates
        self.counters = counters
        self.logger = logger
    }

    /// A request is refused.
    /// - Returns: its id, for the answer.
    func refused(_ refusal: EdgeRefusal, on channel: any Channel) -> String {
        let id = EdgeRefusal.newID()
        onRefusal(refusal, id, EdgeContext.text(of: channel.remoteAddress ?? channel.parent?.remoteAddress))
        return id.text
    }

    /// Writes a part of an answer's body, and counts it until the connection has taken it.
    /// - Returns: the end of the count; nil where nothing is counted, or the connection is closed as too much waits.
    @discardableResult
    func send(
        _ data: NIOAny, _ count: Int, for load: AddressLoad?, on context: ChannelHandlerContext,
        _ promise: EventLoopPromise<Void>?
    ) -> EventLoopFuture<Void>? {
        guard let load else {
            context.write(data, promise: promise)
            return nil
        }
        guard book.beginSending(count, to: load) else {
            counters.count(.unsent)
            promise?.fail(ChannelError.ioOnClosedChannel)
            context.close(promise: nil)
            return nil
        }
        let taken = promise ?? context.eventLoop.makePromise(of: Void.self)
        taken.futureResult.whenComplete { [book] _ in book.taken(count, by: load) }
        context.write(data, promise: taken)
        return taken.futureResult
    }

    /// Has the clock looked at after a tick.
    func afterTick(
        of context: ChannelHandlerContext, _ look: @escaping (ChannelHandlerContext) -> Void
    ) -> Scheduled<Void> {
        context.eventLoop.assumeIsolated().scheduleTask(in: limits.tick) { look(context) }
    }

    /// A connection was beyond a limit, which the operator should hear of, once a minute.
    func overLimit(_ refusal: EdgeRefusal) {
        counters.count(.overLimit)
        let reason = refusal.error.reason
        quietLog.withLock { $0.log(logger, .warning, "a client was told: \(reason)", key: reason) }
    }
}

/// The channel of one client's connection: TLS, the watch, HTTP/1.1 or HTTP/2 as both sides can, the rules, and then
/// Hummingbird.
struct EdgeChannel: ServerChildChannel {
    /// A connection whose sides agree on a protocol during the handshake.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let spoken: EventLoopFuture<Spoken>
    }

    enum Spoken: Sendable {
        case http1(HTTP1Channel.Value)
        case http2(EdgeHTTP2.Value)
    }

    private let http1: HTTP1Channel
    private let http2: EdgeHTTP2
    private let edge: Edge

    init(responder: @escaping HTTPChannelHandler.Responder, edge: Edge) {
        var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
        let bytesMax = RequestRules(limits: edge.limits).parserBytesMax
        decoder.maxHeaderFieldSize = bytesMax
        decoder.maxHeaderListSize = bytesMax
        decoder.maxHeaderFieldCount = edge.limits.headerFieldsMax
        let responder: HTTPChannelHandler.Responder = { request, writer, channel in
            try await responder(request.tellingClient(on: channel), writer, channel)
        }
        // Without idle time-outs of their own: the watch has them.
        http1 = HTTP1Channel(
            responder: responder,
            configuration: HTTP1Channel.Configuration(idleTimeout: nil, httpDecoderConfiguration: decoder))
        http2 = EdgeHTTP2(responder: responder, edge: edge)
        self.edge = edge
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        // All of it happens at once, on the loop: the connection does not begin before.
        channel.eventLoop.makeCompletedFuture {
            let tls = NIOSSLServerHandler(context: edge.certificates.context(now: .now()))
            let watcher = ConnectionTimeoutHandler(edge: edge, tls: tls)
            let bound = NIOLoopBound(watcher, eventLoop: channel.eventLoop)
            let negotiation = NIOTypedApplicationProtocolNegotiationHandler<Spoken> { result, channel in
                if case .negotiated("h2") = result { return speakHTTP2(channel, bound.value, logger) }
                return speakHTTP1(channel, bound.value, logger)
            }
            try channel.pipeline.syncOperations.addHandlers([tls, watcher, negotiation])
            return Value(channel: channel, spoken: negotiation.protocolNegotiationResult)
        }
    }

    private func speakHTTP1(
        _ channel: any Channel, _ watcher: ConnectionTimeoutHandler, _ logger: Logger
    ) -> EventLoopFuture<Spoken> {
        let bound = NIOLoopBound(watcher, eventLoop: channel.eventLoop)
        return http1.setup(channel: channel, logger: logger).flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(HTTP1RequestGuard(edge: edge, watcher: bound.value), position: .after(decoder))
            return .http1(value)
        }
    }

    private func speakHTTP2(
        _ channel: any Channel, _ watcher: ConnectionTimeoutHandler, _ logger: Logger
    ) -> EventLoopFuture<Spoken> {
        watcher.watch.multiplexed(now: .now())
        return http2.setup(channel: channel, logger: logger).map { .http2($0) }
    }

    func handle(value: Value, logger: Logger) async {
        do {
            let spoken = try await value.spoken.get()
            await withTaskExecutorPreference(EventLoopExecutor(value.channel.eventLoop)) {
                switch spoken {
                case .http1(let connection): await http1.handle(value: connection, logger: logger)
                case .http2(let connection): await http2.handle(value: connection, logger: logger)
                }
            }
        } catch {
            logger.debug("a client's connection ended before it was one: \(error)")
            value.channel.close(promise: nil)
        }
    }
}

/// Runs a connection's tasks on its event loop: a request that is read there wakes no other thread, and its answer none
/// to be written.
final class EventLoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}

/// Has requests whose bodies may take long to decode answered outside of their connection's event loop, where other
/// connections wait.
struct LargeRequestsElsewhere<Responder: HTTPResponder>: HTTPResponder {
    /// The most bytes of a body that are decoded on the event loop: about a millisecond.
    static var bytesMax: Int { 65_536 }

    let responder: Responder

    func respond(to request: Request, context: Responder.Context) async throws -> Response {
        if request.method == .get || request.method == .head {
            return try await responder.respond(to: request, context: context)
        }
        // Of a body whose length is not said everything may come.
        let length = request.headers[.contentLength].flatMap { Int($0) } ?? .max
        return try await withTaskExecutorPreference(length > Self.bytesMax ? globalConcurrentExecutor : nil) {
            try await responder.respond(to: request, context: context)
        }
    }
}

/// What is known of a request beside the request: the logger, and where it came from.
package struct EdgeContext: RequestContext {
    /// Hummingbird's own part of the context, with the logger of the request.
    package var coreContext: CoreRequestContextStorage
    /// The address at the other end of the connection, without port; IPv4 in its own form also where the socket is an
    /// IPv6 one. Headers that proxies set are not believed: anyone can send them.
    package var remoteAddress: String?
    /// Tells where the client goes away.
    var clientDisconnect: ClientDisconnect?

    /// For a request that comes over no connection.
    package init(core: CoreRequestContextStorage) { coreContext = core }

    package init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        clientDisconnect = ClientDisconnect(of: source.channel)
        remoteAddress = Self.text(of: source.channel.remoteAddress)
    }

    static func text(of address: SocketAddress?) -> String? {
        guard let text = address?.ipAddress else { return nil }
        let mapped = "::ffff:"
        return text.hasPrefix(mapped) && text.contains(".") ? String(text.dropFirst(mapped.count)) : text
    }
}
