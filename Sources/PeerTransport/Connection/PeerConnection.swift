import NIOCore
import RaftCore
import Wire

/// The events of a connection, for its owner. Called on the event loop.
protocol PeerConnectionOwner: AnyObject {
    /// The connection stands, and `remote` is known; nothing is known of the peer yet. Called once.
    func connectionBegan(_ connection: PeerConnection)
    /// The peer has proved who it is. Called once, before any frame.
    func connectionReady(_ connection: PeerConnection, peer: PeerIdentity, channel: PeerChannel)
    /// A frame of kind raft, request or response.
    func connection(_ connection: PeerConnection, received frame: Frame) throws(PeerProtocolError)
    /// A peer that was dialled has told its clock.
    func connection(_ connection: PeerConnection, heardClockOf node: NodeID, ahead: ClosedRange<Int64>)
    /// The connection is gone. Called once, whether or not it was ready.
    func connectionEnded(_ connection: PeerConnection, end: ConnectionEnd)
}

/// One TLS connection to or from a peer: greets, cuts bytes into frames, gathers frames into writes, notices silence.
///
/// Bound to its channel's event loop. The owner decides what frames mean.
final class PeerConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Phase {
        case greeting
        case ready(PeerIdentity, PeerChannel)
        /// A goodbye is being sent; input is ignored.
        case closing
        case closed
    }

    /// Whom this node dialled; nil on an incoming connection.
    let dialled: (node: NodeID, channel: PeerChannel)?
    let configuration: PeerTransportConfiguration
    let counters: CounterBox
    /// Held until the end is told, so that an owner that is being let go still hears of it.
    private(set) var owner: (any PeerConnectionOwner)?
    private let wireEnd: PeerWireEnd
    private let processor: NIOSingleStepByteToMessageProcessor<FrameDecoder>
    var context: ChannelHandlerContext?
    var phase = Phase.greeting
    /// Set by the first thing that went wrong, and by what this node wants.
    var end: ConnectionEnd? {
        didSet { if case .refused = end { counters.update { $0.connectionsRefused += 1 } } }
    }
    var outbound: OutboundBuffer
    /// Bytes handed to the channel and not yet written to the socket.
    var unwrittenBytes = 0
    var isFlushScheduled = false
    /// Whether a byte came since the last look at the clock.
    var hasHeard = false
    var silentIntervals = 0
    var timer: Scheduled<Void>?
    /// Requests being served; emptied when the connection ends, so that late replies find nothing.
    var serving: Set<UInt64> = []

    init(
        dialled: (node: NodeID, channel: PeerChannel)?, configuration: PeerTransportConfiguration, end: PeerWireEnd,
        counters: CounterBox, owner: any PeerConnectionOwner
    ) {
        self.dialled = dialled
        self.configuration = configuration
        wireEnd = end
        self.counters = counters
        self.owner = owner
        outbound = OutboundBuffer(frameBytesMax: configuration.frameBytesMax)
        processor = NIOSingleStepByteToMessageProcessor(FrameDecoder(frameBytesMax: configuration.frameBytesMax))
    }

    /// Who the peer is, once it has proved it; kept after the end.
    private(set) var peer: PeerIdentity?
    /// The other end's address, for logs.
    private(set) var remote: SocketAddress?

    var isEnded: Bool {
        if case .closed = phase { true } else { false }
    }

    /// Whether it serves a node on a channel.
    func serves(_ node: NodeID, _ channel: PeerChannel) -> Bool {
        if case .ready(let peer, channel) = phase { peer.node == node } else { false }
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        hasHeard = true
        counters.update { $0.bytesReceived += UInt64(buffer.readableBytes) }
        guard isListening else { return }
        do {
            try processor.process(buffer: buffer) { frame in try received(frame) }
        } catch {
            refuse(String(describing: error))
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if end == nil { end = ConnectionEnd(error) }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        finish()
        self.context = nil
    }

    // MARK: Greeting

    private func begin(_ context: ChannelHandlerContext) {
        guard timer == nil, case .greeting = phase else { return }
        remote = context.channel.remoteAddress
        owner?.connectionBegan(self)
        guard isListening else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: configuration.handshakeTimeout) { [weak self] in
            self?.giveUp("no TLS handshake and hello within \(self?.configuration.handshakeTimeout ?? .zero)")
        }
        // TLS holds it back until the handshake is done, the other side's certificate verified.
        if let dialled { write(.hello) { Hello(self.configuration, channel: dialled.channel).encode(to: &$0) } }
    }

    private var isListening: Bool {
        switch phase {
        case .greeting, .ready: true
        case .closing, .closed: false
        }
    }

    private func received(_ frame: Frame) throws(PeerProtocolError) {
        guard isListening else { return }
        counters.update { $0.framesReceived += 1 }
        if frame.kind == .goodbye {
            let reason = (try? Goodbye(decoding: frame.payload))?.reason ?? "it gave no reason"
            close(.refusedByPeer(reason))
            return
        }
        guard case .ready = phase else {
            guard frame.kind == .hello else { throw .unexpected("a \(frame.kind) frame before its hello") }
            return try greeted(frame.payload)
        }
        switch frame.kind {
        case .ping: answerPing(frame.payload)
        case .pong: compareClocks(frame.payload)
        case .hello: throw .unexpected("a second hello")
        default: try owner?.connection(self, received: frame)
        }
    }

    private func greeted(_ payload: [UInt8]) throws(PeerProtocolError) {
        let hello: Hello
        do { hello = try Hello(decoding: payload) } catch { throw .malformed("hello (\(error))") }
        let greeting = Greeting(
            node: configuration.nodeID, clusterID: configuration.clusterID, build: configuration.presence().build,
            dialled: dialled)
        if let reason = greeting.refusal(of: hello, certificateNodes: wireEnd.nodes()) { return refuse(reason) }
        if dialled == nil {
            write(.hello) { Hello(self.configuration, channel: hello.channel, asked: hello.clock).encode(to: &$0) }
        }
        phase = .ready(hello.identity, hello.channel)
        peer = hello.identity
        timer?.cancel()
        watch()
        owner?.connectionReady(self, peer: hello.identity, channel: hello.channel)
        if let clock = hello.clock { compare(clock, of: hello.node) }
    }

    private func finish() {
        if case .closed = phase { return }
        phase = .closed
        timer?.cancel()
        serving = []
        owner?.connectionEnded(self, end: end ?? .broken("the other side closed the connection"))
        owner = nil
    }
}

extension PeerConnection {
    /// What may still wait for this connection, counting what the buffer holds already.
    private var roomBytes: Int { configuration.outboundBytesMax - unwrittenBytes }

    /// Queues a frame that limits do not apply to: small, and bounded in number by what the peer does.
    func write(_ kind: FrameKind, _ body: (inout WireWriter) -> Void = { _ in }) {
        _ = outbound.append(kind, body)
        scheduleFlush()
    }

    /// Queues a frame unless that would exceed a limit.
    func writeWithinLimits(_ kind: FrameKind, _ body: (inout WireWriter) -> Void) -> OutboundBuffer.Outcome {
        let outcome = outbound.append(kind, roomBytes: roomBytes, body)
        if outcome == .appended { scheduleFlush() }
        return outcome
    }

    /// Queues a Raft message, in one frame with those queued just before.
    func write(_ message: PeerMessage) -> OutboundBuffer.Outcome {
        let outcome = outbound.append(message, roomBytes: roomBytes)
        if outcome == .appended { scheduleFlush() }
        return outcome
    }

    /// Everything that is queued in one tick of the loop goes out in one write.
    private func scheduleFlush() {
        guard !isFlushScheduled, let context else { return }
        isFlushScheduled = true
        context.eventLoop.assumeIsolated().execute { self.flush() }
    }

    private func flush() {
        isFlushScheduled = false
        guard let context, outbound.count > 0 else { return }
        let frameCount = outbound.frameCount
        let bytes = outbound.take()
        unwrittenBytes += bytes.count
        counters.update {
            $0.framesSent += UInt64(frameCount)
            $0.bytesSent += UInt64(bytes.count)
        }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in self.unwrittenBytes -= bytes.count }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: promise)
    }

    // MARK: Ending

    /// Refuses the peer: tells it why, then closes.
    func refuse(_ reason: String) {
        if end == nil { end = .refused(reason) }
        goodbye(reason)
    }

    /// Closes for a reason of this node's own, which the peer is told.
    func close(saying reason: String) {
        if end == nil { end = .wanted(reason) }
        goodbye(reason)
    }

    /// Closes without a word.
    func close(_ end: ConnectionEnd) {
        if self.end == nil { self.end = end }
        if isEnded { return }
        phase = .closing
        context?.close(promise: nil)
    }

    /// Drops a connection on which nothing comes back.
    func giveUp(_ reason: String) { close(.broken(reason)) }

    private func goodbye(_ reason: String) {
        switch phase {
        case .closing, .closed: return
        case .greeting, .ready: break
        }
        phase = .closing
        _ = outbound.append(.goodbye) { Goodbye(reason).encode(to: &$0) }
        flush()
        context?.close(promise: nil)
    }

    // MARK: Silence

    /// Looks every interval whether the peer is still there. The dialling side asks, the other answers, so bytes flow
    /// both ways on a healthy connection.
    func watch() {
        guard let context else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: configuration.pingInterval) { [weak self] in
            self?.tick()
        }
    }

    private func tick() {
        guard case .ready = phase else { return }
        // While bytes wait in the socket the answer to a ping may be behind a long frame; the kernel watches that case
        // (TCP user timeout: see `SocketWire`).
        silentIntervals = hasHeard || unwrittenBytes > 0 ? 0 : silentIntervals + 1
        hasHeard = false
        guard silentIntervals < configuration.silentIntervalsMax else {
            return giveUp("nothing came for \(silentIntervals) intervals of \(configuration.pingInterval)")
        }
        if dialled != nil { write(.ping) { self.reading().encode(to: &$0) } }
        watch()
    }

    // MARK: Clocks

    private func reading(asked: Int64? = nil) -> ClockReading {
        ClockReading(wallMilliseconds: configuration.presence().wallMilliseconds, asked: asked)
    }

    func answerPing(_ payload: [UInt8]) {
        let asked = (try? ClockReading(decoding: payload))?.wallMilliseconds
        write(.pong) { self.reading(asked: asked).encode(to: &$0) }
    }

    func compareClocks(_ payload: [UInt8]) {
        guard case .ready(let peer, _) = phase, let clock = try? ClockReading(decoding: payload) else { return }
        compare(clock, of: peer.node)
    }

    /// Only who dialled compares: nothing tells the other how long a hello was on its way. Each node dials all others.
    func compare(_ clock: ClockReading, of node: NodeID) {
        guard dialled != nil, let ahead = clock.ahead(heard: configuration.presence().wallMilliseconds) else { return }
        owner?.connection(self, heardClockOf: node, ahead: ahead)
    }
}
