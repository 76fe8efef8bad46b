import NIOCore
import NIOPosix
import Synchronization

/// The network from one node to another: a port that passes connections on, and can lose them, refuse them or fall
/// silent.
final class FaultyLink: Sendable {
    enum Mode: Sendable {
        case passing
        /// Connections break, and no others come about.
        case cut
        /// Nothing is heard and nothing breaks: what was sent arrives when it passes again, as after lost packets.
        case silent
    }

    private struct State {
        var mode = Mode.passing
        var channels: [ObjectIdentifier: any Channel] = [:]
        var passed = 0
    }

    private final class Shared: Sendable {
        let target: Int
        let state = Mutex(State())

        init(target: Int) { self.target = target }

        /// Keeps a channel until it closes; false while the link is cut.
        func keep(_ channel: any Channel) -> Bool {
            let isKept = state.withLock { state in
                guard state.mode != .cut else { return false }
                state.channels[ObjectIdentifier(channel)] = channel
                return true
            }
            channel.closeFuture.whenComplete { [self] _ in
                state.withLock { state in _ = state.channels.removeValue(forKey: ObjectIdentifier(channel)) }
            }
            return isKept
        }

        var isPassing: Bool { state.withLock { $0.mode == .passing } }
        func count(_ bytes: Int) { state.withLock { $0.passed += bytes } }
    }

    /// Where the sending node connects to.
    let port: Int
    private let listener: any Channel
    private let shared: Shared

    /// Listens on a port of its own.
    init(to target: Int) async throws {
        let shared = Shared(target: target)
        self.shared = shared
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                guard shared.keep(client) else { return client.close() }
                return Self.join(client, shared)
            }.bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
    }

    private static func join(_ client: any Channel, _ shared: Shared) -> EventLoopFuture<Void> {
        ClientBootstrap(group: client.eventLoop).channelOption(.autoRead, value: false)
            .connectTimeout(.seconds(1)).connect(host: "127.0.0.1", port: shared.target)
            .flatMapThrowing { target in
                guard shared.keep(target) else {
                    target.close(promise: nil)
                    throw ChannelError.ioOnClosedChannel
                }
                for (channel, other) in [(client, target), (target, client)] {
                    try channel.pipeline.syncOperations.addHandler(Passer(to: other) { shared.count($0) })
                    _ = channel.setOption(.autoRead, value: shared.isPassing)
                }
            }.flatMapError { error in
                client.close(promise: nil)
                return client.eventLoop.makeFailedFuture(error)
            }
    }

    /// Bytes that went through, in both directions.
    var passed: Int { shared.state.withLock(\.passed) }

    /// How the link is from now on.
    func set(_ mode: Mode) {
        let channels = shared.state.withLock { state in
            state.mode = mode
            return Array(state.channels.values)
        }
        for channel in channels {
            switch mode {
            case .cut: channel.close(promise: nil)
            case .passing: channel.setOption(.autoRead, value: true).whenSuccess { channel.read() }
            case .silent: _ = channel.setOption(.autoRead, value: false)
            }
        }
    }

    /// Ends it.
    func close() {
        set(.cut)
        listener.close(promise: nil)
    }
}

/// Writes what comes into another channel of the same loop.
private final class Passer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let other: any Channel
    private let count: @Sendable (Int) -> Void

    init(to other: any Channel, count: @escaping @Sendable (Int) -> Void) {
        self.other = other
        self.count = count
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        count(buffer.readableBytes)
        other.writeAndFlush(buffer, promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
