import NIOCore
import PeerTransport

/// One end of a simulated connection: what a socket is to the handlers of a `PeerTransport`.
final class SimulatedChannel: Channel, ChannelCore, @unchecked Sendable {
    // Touched on the simulation's thread only.
    let wire: SimulatedWire
    let side: Connection.Side
    let remoteAddress: SocketAddress?
    /// Until it is closed.
    private var connection: Connection?
    private let closePromise: EventLoopPromise<Void>
    private(set) lazy var pipeline = ChannelPipeline(channel: self)
    private(set) var isActive = false
    private(set) var isClosed = false
    /// What was written and not flushed yet.
    private var written: [Written] = []

    /// Bytes, and what is told when the wire has taken all of them.
    struct Written {
        var bytes: ByteBuffer
        let promise: EventLoopPromise<Void>?
    }

    init(_ connection: Connection, of wire: SimulatedWire, side: Connection.Side, to peer: SimulatedWire) {
        self.connection = connection
        self.wire = wire
        self.side = side
        remoteAddress = try? SocketAddress(ipAddress: "10.0.0.\(peer.process.node)", port: 1)
        closePromise = wire.loop.makePromise()
    }

    var eventLoop: any EventLoop { wire.loop }
    var allocator: ByteBufferAllocator { ByteBufferAllocator() }
    var closeFuture: EventLoopFuture<Void> { closePromise.futureResult }
    var localAddress: SocketAddress? { nil }
    var parent: (any Channel)? { nil }
    var isWritable: Bool { isActive }
    var _channelCore: any ChannelCore { self }

    // MARK: What comes from the connection, on the loop

    /// The connection stands.
    func open() {
        guard !isClosed else { return }
        isActive = true
        connection?.opened(side)
        pipeline.fireChannelActive()
    }

    func read(_ bytes: ByteBuffer) {
        guard isActive else { return }
        pipeline.fireChannelRead(bytes)
        pipeline.fireChannelReadComplete()
    }

    /// The other end, or the way to it, has failed.
    func fail(_ error: IOError) {
        guard !isClosed else { return }
        pipeline.fireErrorCaught(error)
        close(promise: nil)
    }

    // MARK: What handlers ask for

    func write0(_ data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosed else { return promise?.fail(ChannelError.ioOnClosedChannel) ?? () }
        written.append(Written(bytes: unwrapData(data), promise: promise))
    }

    func flush0() {
        let flushed = written
        written = []
        guard let connection else {
            for write in flushed { write.promise?.fail(ChannelError.ioOnClosedChannel) }
            return
        }
        connection.send(flushed, from: side)
    }

    func close0(error: any Error, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard !isClosed else { return promise?.fail(ChannelError.alreadyClosed) ?? () }
        isClosed = true
        isActive = false
        let lost = written + (connection?.close(side) ?? [])
        (written, connection) = ([], nil)
        for write in lost { write.promise?.fail(error) }
        promise?.succeed()
        pipeline.fireChannelInactive()
        eventLoop.execute { [self] in
            removeHandlers(pipeline: pipeline)
            closePromise.succeed()
        }
    }

    func channelRead0(_ data: NIOAny) {}
    func errorCaught0(error: any Error) {}
    func read0() {}
    func localAddress0() throws -> SocketAddress { throw ChannelError.operationUnsupported }
    func remoteAddress0() throws -> SocketAddress { throw ChannelError.operationUnsupported }
    func register0(promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func registerAlreadyConfigured0(promise: EventLoopPromise<Void>?) { promise?.succeed() }
    func bind0(to: SocketAddress, promise: EventLoopPromise<Void>?) { refuse(promise) }
    func connect0(to: SocketAddress, promise: EventLoopPromise<Void>?) { refuse(promise) }
    func triggerUserOutboundEvent0(_ event: Any, promise: EventLoopPromise<Void>?) { refuse(promise) }

    func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
        eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }

    func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
        eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }

    private func refuse(_ promise: EventLoopPromise<Void>?) { promise?.fail(ChannelError.operationUnsupported) }
}
