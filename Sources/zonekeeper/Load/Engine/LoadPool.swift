import NIOCore
import NIOPosix
import NIOSSL

/// The connections to one node: requests that find none free wait in order.
struct LoadPool {
    let target: LoadTarget
    let connectionsMax: Int
    var idle: [LoadConnection] = []
    var busy = 0
    var connecting = 0
    var waiting = CircularBuffer<LoadFlight>()

    var open: Int { idle.count + busy + connecting }

    init(target: LoadTarget, connectionsMax: Int) {
        self.target = target
        self.connectionsMax = connectionsMax
    }
}

/// How connections of a run are made.
struct LoadConnector: Sendable {
    let loop: any EventLoop
    let tls: NIOSSLContext
    /// A node that takes connections and does not shake hands would hold up what waits for it.
    var handshakeTimeout: TimeAmount
    static let usualHandshakeTimeout = TimeAmount.seconds(5)
    static let handshakeTimedOut = "TLS handshake timed out"

    /// Makes a connection on the loop; what becomes of it is told to its owner, in any case within the time-out.
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
                    let handler = try NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : target.host)
                    try channel.pipeline.syncOperations.addHandlers([handler, bound.value] as [any ChannelHandler])
                }
            }
            .connect(host: target.host, port: target.port)
            .whenFailure { error in bound.value.lose(LoadClient.name(of: error)) }
    }
}
