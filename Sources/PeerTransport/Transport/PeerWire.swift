import Logging
package import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What connections between nodes run on: sockets with TLS (`SocketWire`), or what stands in for them where many nodes
/// share a thread. Everything is called on the event loop.
package protocol PeerWire: AnyObject {
    /// Adds what handles a connection to the pipeline of its channel, which is not active yet.
    typealias Prepare = @Sendable (PeerWireEnd) throws -> Void

    /// Connects to a peer. A name may stand for several addresses, each tried with a channel that is prepared.
    /// - Returns: the channel of the address that answered; fails where none did.
    func dial(_ peer: PeerAddress, prepare: @escaping Prepare) -> EventLoopFuture<any Channel>
    /// Begins to take the connections of peers.
    /// - Returns: the port; fails with `PeerTransportError.cannotListen`.
    func listen(prepare: @escaping Prepare) -> EventLoopFuture<Int>
    /// Takes no more connections; those that stand are left alone.
    func stopListening() -> EventLoopFuture<Void>
}

/// One end of a connection between nodes.
package struct PeerWireEnd {
    /// Reads and writes what the other end is to see, as `ByteBuffer`s.
    package let channel: any Channel
    /// The nodes that the other end has proved to be; none until something was read.
    package let nodes: () -> [NodeID]

    package init(channel: any Channel, nodes: @escaping () -> [NodeID]) {
        self.channel = channel
        self.nodes = nodes
    }
}

/// TCP with mutual TLS, bound to the event loop.
final class SocketWire: PeerWire {
    private let configuration: PeerTransportConfiguration
    private let eventLoop: any EventLoop
    private let counters: CounterBox
    private let logger: Logger
    private var certificates: PeerCertificates
    private var listener: (any Channel)?

    /// Reads the certificates; opens no socket.
    /// - Throws: `PeerTransportError.badCertificate`, naming the file.
    init(
        _ configuration: PeerTransportConfiguration, eventLoop: any EventLoop, counters: CounterBox, logger: Logger
    ) throws(PeerTransportError) {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.counters = counters
        self.logger = logger
        certificates = try PeerCertificates(configuration)
    }

    func dial(_ peer: PeerAddress, prepare: @escaping Prepare) -> EventLoopFuture<any Channel> {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        let bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(configuration.handshakeTimeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = try NIOSSLClientHandler(context: bound.value.tls().client, serverHostname: nil)
                    try Self.secure(channel, tls, prepare)
                }
            }
        guard let literal = try? SocketAddress(ipAddress: peer.host, port: peer.port) else {
            return bootstrap.connect(host: peer.host, port: peer.port)
        }
        return bootstrap.connect(to: literal)
    }

    func listen(prepare: @escaping Prepare) -> EventLoopFuture<Int> {
        let (host, port) = (configuration.listenHost, configuration.listenPort)
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        return ServerBootstrap(group: eventLoop)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try Self.secure(channel, NIOSSLServerHandler(context: bound.value.tls().server), prepare)
                }
            }
            .bind(host: host, port: port)
            .flatMapThrowing { channel in
                bound.value.listener = channel
                return channel.localAddress?.port ?? port
            }
            .flatMapErrorThrowing { error in
                throw PeerTransportError.cannotListen(
                    host: host, port: port, problem: ListenProblem.describe(error))
            }
    }

    func stopListening() -> EventLoopFuture<Void> {
        listener?.close(promise: nil)
        return listener?.closeFuture ?? eventLoop.makeSucceededVoidFuture()
    }

    private static func secure(_ channel: any Channel, _ tls: NIOSSLHandler, _ prepare: Prepare) throws {
        try setOptions(of: channel)
        try channel.pipeline.syncOperations.addHandler(tls)
        try prepare(PeerWireEnd(channel: channel) { tls.peerCertificate.map(PeerCertificate.nodes) ?? [] })
    }

    /// How long sent bytes may stay unacknowledged before the kernel drops the connection, in milliseconds.
    private static let userTimeoutMilliseconds: SocketOptionValue = 5_000

    /// Small frames go out at once, and a peer whose machine vanished while bytes were in flight is noticed in
    /// seconds instead of the kernel's quarter of an hour.
    private static func setOptions(of channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        #if os(Linux)
            // TCP_USER_TIMEOUT, which NIO has no name for.
            try options.setOption(.tcpOption(NIOBSDSocket.Option(rawValue: 18)), value: userTimeoutMilliseconds)
        #endif
    }

    /// What the next connection does TLS with: the certificate files as they are, looked at once a second at most.
    private func tls() -> TLSContexts {
        switch certificates.refresh(now: .now()) {
        case .unchanged: break
        case .renewed:
            counters.update { $0.certificateReloads += 1 }
            logger.info("the peer certificates have changed; new connections use them")
        case .unusable(let problem):
            logger.warning("the peer certificates have changed and cannot be used; the old ones stay: \(problem)")
        }
        return certificates.contexts
    }
}

/// Says why a port cannot be listened on, and what to do.
enum ListenProblem {
    static func describe(_ error: any Error) -> String {
        guard let error = error as? IOError else { return String(describing: error) }
        switch error.errnoCode {
        case EADDRINUSE: return "another process uses the port; stop it or choose another port"
        case EADDRNOTAVAIL: return "this machine does not have the address; listen on one it has, or on 0.0.0.0"
        case EACCES: return "this user may not use the port; choose one above 1023"
        default: return error.description
        }
    }
}
