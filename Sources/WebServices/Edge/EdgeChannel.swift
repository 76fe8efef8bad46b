import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import PeerTransport
import RecordModel
import Synchronization

/// What the connections of a client port have in common.
final class Edge: Sendable {
    let limits: EdgeLimits
    let book: ConnectionBook
    let certificates: ServerCertificates
    let counters: EdgeCounters
    let logger: Logger
    private let quietLog = Mutex(QuietLog())

    init(limits: EdgeLimits, certificates: ServerCertificates, counters: EdgeCounters, logger: Logger) {
        self.limits = limits
        book = ConnectionBook(limits: limits)
        self.certificates = certificates
        self.counters = counters
        self.logger = logger
    }

    /// A connection was beyond a limit, which the operator should hear of, once a minute.
    func overLimit(_ refusal: EdgeRefusal) {
        counters.count(.overLimit)
        let reason = refusal.error.reason
        quietLog.withLock { $0.log(logger, .warning, "a client was told: \(reason)", key: reason) }
    }
}

/// The channel of one client's connection: TLS, the watch, HTTP/1.1, the rules, and then Hummingbird.
struct EdgeChannel: ServerChildChannel {
    typealias Value = HTTP1Channel.Value

    private let http: HTTP1Channel
    private let edge: Edge

    init(responder: @escaping HTTPChannelHandler.Responder, edge: Edge) {
        var decoder = HTTP1Channel.Configuration.DecoderConfiguration()
        let bytesMax = RequestRules(limits: edge.limits).parserBytesMax
        decoder.maxHeaderFieldSize = bytesMax
        decoder.maxHeaderListSize = bytesMax
        decoder.maxHeaderFieldCount = edge.limits.headerFieldsMax
        // Without an idle time-out of its own: the watch has it.
        http = HTTP1Channel(
            responder: responder,
            configuration: HTTP1Channel.Configuration(idleTimeout: nil, httpDecoderConfiguration: decoder))
        self.edge = edge
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        // All of it happens at once, on the loop: the connection does not begin before.
        channel.eventLoop.makeCompletedFuture {
            let tls = NIOSSLServerHandler(context: edge.certificates.context(now: .now()))
            try channel.pipeline.syncOperations.addHandlers([tls, WatchHandler(edge: edge, tls: tls)])
        }.flatMap {
            http.setup(channel: channel, logger: logger)
        }.flatMapThrowing { value in
            let pipeline = channel.pipeline.syncOperations
            let watcher = try pipeline.handler(type: WatchHandler.self)
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(RequestHandler(edge: edge, watcher: watcher), position: .after(decoder))
            return value
        }.flatMapError { error in
            channel.close(promise: nil)
            return channel.eventLoop.makeFailedFuture(error)
        }
    }

    func handle(value: Value, logger: Logger) async { await http.handle(value: value, logger: logger) }
}
