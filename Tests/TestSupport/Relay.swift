import NIOCore
import NIOPosix
import Synchronization

/// A port that passes connections on to whichever of some other ports takes them, until it is cut: a client's network.
package final class Relay: Sendable {
    private struct State {
        var isCut = false
        var channels: [ObjectIdentifier: any Channel] = [:]
        var next = 0
        var bytesToClients = 0
    }

    /// What targets sent to clients, as it went over the wire.
    package var bytesToClients: Int { state.state.withLock(\.bytesToClients) }
    /// Where clients connect to.
    package let port: Int
    private let listener: any Channel
    private let state: Shared

    private final class Shared: Sendable {
        let targets: [Int]
        let bytesMax: Int
        let state = Mutex(State())
        init(targets: [Int], bytesMax: Int) {
            self.targets = targets
            self.bytesMax = bytesMax
        }

        /// Keeps a channel until it closes; false while the network is cut.
        func keep(_ channel: any Channel) -> Bool {
            let isKept = state.withLock { state in
                guard !state.isCut else { return false }
                state.channels[ObjectIdentifier(channel)] = channel
                return true
            }
            channel.closeFuture.whenComplete { [self] _ in
                state.withLock { state in _ = state.channels.removeValue(forKey: ObjectIdentifier(channel)) }
            }
            return isKept
        }

        /// Counts bytes that a target sent.
        /// - Returns: how many of them go on to the client.
        func sent(_ bytes: Int) -> Int {
            state.withLock { state in
                let passed = min(bytes, bytesMax - state.bytesToClients)
                state.bytesToClients += passed
                return passed
            }
        }

        /// Connects to the first target that can be connected to, beginning with another one each time.
        func connect(on loop: any EventLoop, attempt: Int = 0) -> EventLoopFuture<any Channel> {
            let start = state.withLock { state in
                if attempt == 0 { state.next += 1 }
                return state.next
            }
            let target = targets[(start + attempt) % targets.count]
            let connection = ClientBootstrap(group: loop).channelOption(.autoRead, value: false)
                .connectTimeout(.milliseconds(500)).connect(host: "127.0.0.1", port: target)
            return connection.flatMapError { [self] error in
                attempt + 1 < targets.count
                    ? connect(on: loop, attempt: attempt + 1) : loop.makeFailedFuture(error)
            }
        }
    }

    /// Listens on a port of its own.
    /// - Parameter bytesMax: what targets send beyond it is held back from clients.
    package init(to targets: [Int], bytesMax: Int = .max) async throws {
        let shared = Shared(targets: targets, bytesMax: bytesMax)
        state = shared
        listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.autoRead, value: false)
            .childChannelInitializer { client in
                guard shared.keep(client) else { return client.close() }
                return shared.connect(on: client.eventLoop).flatMapThrowing { target in
                    guard shared.keep(target) else {
                        target.close(promise: nil)
                        throw ChannelError.ioOnClosedChannel
                    }
                    try client.pipeline.syncOperations.addHandler(Passing(to: target))
                    try target.pipeline.syncOperations.addHandler(Passing(to: client) { shared.sent($0) })
                    _ = client.setOption(.autoRead, value: true)
                    _ = target.setOption(.autoRead, value: true)
                }.flatMapError { error in
                    client.close(promise: nil)
                    return client.eventLoop.makeFailedFuture(error)
                }
            }.bind(host: "127.0.0.1", port: 0).get()
        port = listener.localAddress?.port ?? 0
    }

    /// Breaks all connections and takes no more, or takes them again.
    package func cut(_ isCut: Bool) {
        let channels = state.state.withLock { state in
            state.isCut = isCut
            return isCut ? Array(state.channels.values) : []
        }
        for channel in channels { channel.close(promise: nil) }
    }

    /// Ends it.
    package func close() {
        cut(true)
        listener.close(promise: nil)
    }
}

/// Writes what comes into another channel of the same loop.
private final class Passing: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let other: any Channel
    private let passed: (Int) -> Int

    init(to other: any Channel, passed: @escaping (Int) -> Int = { $0 }) {
        self.other = other
        self.passed = passed
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard let bytes = bytes.readSlice(length: passed(bytes.readableBytes)) else { return }
        other.writeAndFlush(bytes, promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
