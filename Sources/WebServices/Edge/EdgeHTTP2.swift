import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP2
import NIOHTTPTypes
import NIOHTTPTypesHTTP2

/// A client's connection once both sides have agreed on HTTP/2: each request on it is a channel, and Hummingbird's.
///
/// Hummingbird's own channel for HTTP/2 ends a connection at its fourth ping, whenever those came, with the requests on
/// it; and browsers ping before they use a connection that was quiet for ten seconds. It also leaves no way to set its
/// library's bounds.
struct EdgeHTTP2: Sendable {
    typealias Stream = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    /// The requests that come on a connection.
    typealias Value = NIOHTTP2Handler.AsyncStreamMultiplexer<Stream>

    private let requests: HTTP1Channel
    private let edge: Edge

    init(responder: @escaping HTTPChannelHandler.Responder, edge: Edge) {
        // A request's channel is served as an HTTP/1.1 connection with one request.
        requests = HTTP1Channel(responder: responder)
        self.edge = edge
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            let requests = try channel.pipeline.syncOperations.configureAsyncHTTP2Pipeline(
                mode: .server,
                // Without time-outs of its own: the watch has them. It says goodbye where the node stops.
                connectionManagerConfiguration: .init(
                    maxIdleTime: nil, maxAge: nil, maxGraceTime: nil, keepalive: nil),
                http2HandlerConfiguration: edge.limits.http2
            ) { stream in
                stream.eventLoop.makeCompletedFuture {
                    try stream.pipeline.syncOperations.addHandlers(
                        HTTP2FramePayloadToHTTPServerCodec(), HTTP2StreamGuard(edge: edge),
                        HTTPConnectionStateHandler(logger: logger))
                    return try Stream(
                        wrappingChannelSynchronously: stream, configuration: .init(isOutboundHalfClosureEnabled: true))
                }
            }
            try channel.pipeline.syncOperations.addHandler(HTTP2EndHandler())
            return requests
        }
    }

    func handle(value: Value, logger: Logger) async {
        do {
            try await withThrowingDiscardingTaskGroup { group in
                for try await stream in value.inbound {
                    group.addTask { await requests.handle(value: stream, logger: logger) }
                }
            }
        } catch {
            logger.debug("a client's HTTP/2 connection failed: \(error)")
        }
    }
}

/// Closes a connection that failed, or whose client has closed its side: in HTTP/2 that is the end of both.
private final class HTTP2EndHandler: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed = event as? ChannelEvent { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }
}

extension EdgeLimits {
    /// What the HTTP/2 library is told of these limits.
    fileprivate var http2: NIOHTTP2Handler.Configuration {
        var configuration = NIOHTTP2Handler.Configuration()
        configuration.connection.controlFrameRateLimit.maximumCount = controlFramesMax
        configuration.connection.controlFrameRateLimit.windowLength = controlFramesWindow
        configuration.stream.streamResetFrameRateLimit.maximumCount = resetsMax
        configuration.stream.streamResetFrameRateLimit.windowLength = controlFramesWindow
        return configuration
    }
}
