import Logging
import NIOCore
import PeerTransport
import RaftCore

/// Where a process's connections come from.
final class SimulatedWire: PeerWire, @unchecked Sendable {
    // Touched on the simulation's thread only.
    let network: SimulatedNetwork
    let process: ProcessLife
    let loop: SimulatedLoop
    private let node: NodeID
    private var mayAccept: @Sendable () -> Bool = { false }
    private var prepare: Prepare?

    init(network: SimulatedNetwork, process: ProcessLife, loop: SimulatedLoop, node: NodeID) {
        self.network = network
        self.process = process
        self.loop = loop
        self.node = node
    }

    func dial(_ peer: PeerAddress, prepare: @escaping Prepare) -> EventLoopFuture<any Channel> {
        let promise = loop.makePromise(of: (any Channel).self)
        dial(peer.node, attempts: 3, promise, prepare)
        return promise.futureResult
    }

    /// Asks once more where nothing comes back, and is refused at once where nobody listens.
    private func dial(
        _ peer: NodeID, attempts: Int, _ promise: EventLoopPromise<any Channel>, _ prepare: @escaping Prepare
    ) {
        let world = network.world
        let delay = network.delay(from: process.node, to: Int(peer.rawValue)) * 3
        world.schedule(after: delay, .dial, for: process, on: loop) { [self] in
            if !process.isDead, !network.isOpenBothWays(process.node, Int(peer.rawValue)), attempts > 1 {
                world.schedule(after: world.milliseconds(1_000...2_000), .dial, for: process, on: loop) { [self] in
                    dial(peer, attempts: attempts - 1, promise, prepare)
                }
                return
            }
            promise.completeWith(Result { try connect(to: peer, prepare) })
        }
    }

    private func connect(to peer: NodeID, _ prepare: Prepare) throws -> any Channel {
        guard !process.isDead, network.isOpenBothWays(process.node, Int(peer.rawValue)),
            let other = network.endpoint(of: Int(peer.rawValue))?.wire
        else { throw ChannelError.connectTimeout(.zero) }
        let connection = Connection(network: network, dialler: self, acceptor: other)
        network.opened(connection)
        let end = connection.end(.dialler)
        try prepare(PeerWireEnd(channel: end) { [peer] })
        connection.carry(from: .dialler) { [node] in other.accept(connection.end(.acceptor), from: node) }
        end.open()
        return end
    }

    private func accept(_ end: SimulatedChannel, from node: NodeID) {
        guard !process.isDead, let prepare, mayAccept(), (try? prepare(PeerWireEnd(channel: end) { [node] })) != nil
        else {
            return end.close(promise: nil)
        }
        end.open()
    }

    func listen(mayAccept: @escaping @Sendable () -> Bool, prepare: @escaping Prepare) -> EventLoopFuture<Int> {
        (self.mayAccept, self.prepare) = (mayAccept, prepare)
        return loop.makeSucceededFuture(process.node)
    }

    func stopListening() -> EventLoopFuture<Void> {
        (mayAccept, prepare) = ({ false }, nil)
        return loop.makeSucceededVoidFuture()
    }
}

/// A process's end of the network: a `PeerTransport` on a simulated wire, and what watches it.
final class Endpoint: PeerNetwork, @unchecked Sendable {
    // Touched on the simulation's thread only.
    let wire: SimulatedWire
    private let transport: PeerTransport
    private let node: NodeID
    private let ear: Ear
    private var isClosed = false
    /// What was sent at this moment, which may wait in the node itself still.
    private var latest: (time: UInt64, bytes: Int) = (0, 0)

    init(
        network: SimulatedNetwork, configuration: PeerTransportConfiguration, process: ProcessLife, loop: SimulatedLoop,
        delegate: any PeerTransportDelegate, logger: Logger
    ) {
        var configuration = configuration
        configuration.outboundBytesMax = network.conditions.outboundBytesMax
        configuration.frameBytesMax = min(configuration.frameBytesMax, configuration.outboundBytesMax)
        let wire = SimulatedWire(network: network, process: process, loop: loop, node: configuration.nodeID)
        self.wire = wire
        ear = Ear(network: network, process: process, delegate: delegate) { configuration.presence().build }
        node = configuration.nodeID
        transport = PeerTransport(
            configuration: configuration, eventLoop: loop, wire: wire, random: { wire.network.world.generator.next() },
            delegate: ear, logger: logger)
    }

    var process: ProcessLife { wire.process }
    private var network: SimulatedNetwork { wire.network }

    func start() -> EventLoopFuture<Void> {
        if process.isDead || isClosed { return wire.loop.makeSucceededVoidFuture() }
        network.listens(self)
        return transport.start()
    }

    func update(peers: [PeerAddress]) { transport.update(peers: peers) }

    func send(_ messages: [PeerMessage], to node: NodeID) {
        guard isConnected(node, channel: .raft) else { return }
        let world = network.world
        for message in messages {
            network.countMessage()
            network.observer?(message, process)
            world.mark(message.group.rawValue, message.message.term.rawValue, message.message.to.rawValue)
        }
        guard network.conditions.looseRaftMessages, let receiver = network.endpoint(of: Int(node.rawValue)) else {
            for message in messages { noteSent(Self.bytesMax(of: message)) }
            let dropped = transport.counters.messagesDroppedFull
            transport.send(messages, to: node)
            if transport.counters.messagesDroppedFull > dropped { judgeFull(node) }
            return
        }
        for message in messages where !world.chance(network.conditions.lossPercent) {
            for _ in 0..<(world.chance(network.conditions.duplicatePercent) ? 2 : 1) { strew(message, to: receiver) }
        }
    }

    /// Sends a message beside the connection, so that others overtake it.
    private func strew(_ message: PeerMessage, to receiver: Endpoint) {
        let delay = network.delay(from: process.node, to: receiver.process.node)
        network.world.schedule(after: delay, .message, for: receiver.process, on: receiver.wire.loop) { [self] in
            guard !receiver.isClosed, !receiver.process.isDead, !process.isDead,
                !network.isCut(from: process.node, to: receiver.process.node)
            else { return }
            receiver.ear.receiveRaft([message], from: node)
        }
    }

    func request(
        _ payload: [UInt8], to node: NodeID, channel: PeerChannel, timeout: TimeAmount
    ) -> EventLoopFuture<[UInt8]> {
        noteSent(payload.count)
        let answer = transport.request(payload, to: node, channel: channel, timeout: timeout)
        answer.whenFailure { [self] error in
            if case .outboundFull? = error as? PeerTransportError { judgeFull(node) }
        }
        return answer
    }

    private func noteSent(_ bytes: Int) {
        let now = network.world.now
        latest = (now, bytes + (latest.time == now ? latest.bytes : 0))
    }

    private static func bytesMax(of message: PeerMessage) -> Int {
        guard case .appendRequest(let request) = message.message.body else { return 1_024 }
        return request.entries.reduce(1_024) { $0 + $1.sizeBytes + 64 }
    }

    /// A connection is full only while bytes wait for it.
    private func judgeFull(_ node: NodeID) {
        let now = network.world.now
        let most = network.conditions.outboundBytesMax
        guard !process.isDead, latest.time < now || latest.bytes < most / 2,
            network.unsentBytes(of: process, to: Int(node.rawValue)) == 0
        else { return }
        network.onViolation?(
            "at \(now / World.millisecond) ms node \(process.node) takes a connection to \(node) for full, and nothing "
                + "waits"
        )
    }

    func isConnected(_ node: NodeID, channel: PeerChannel) -> Bool { transport.isConnected(node, channel: channel) }

    func shutdown() -> EventLoopFuture<Void> {
        isClosed = true
        network.left(self)
        return transport.shutdown()
    }

    var counters: PeerTransportCounters { transport.counters }
}

/// Passes on what a process is told, and has it noted first.
private final class Ear: PeerTransportDelegate, @unchecked Sendable {
    // Touched on the simulation's thread only.
    private let network: SimulatedNetwork
    private let process: ProcessLife
    private weak var delegate: (any PeerTransportDelegate)?
    private let build: () -> PeerBuild

    init(
        network: SimulatedNetwork, process: ProcessLife, delegate: any PeerTransportDelegate,
        build: @escaping () -> PeerBuild
    ) {
        (self.network, self.process, self.delegate, self.build) = (network, process, delegate, build)
    }

    func peerConnected(_ peer: PeerIdentity, channel: PeerChannel) {
        network.greetings?(peer, process, build())
        delegate?.peerConnected(peer, channel: channel)
    }

    func peerDisconnected(_ node: NodeID, channel: PeerChannel) { delegate?.peerDisconnected(node, channel: channel) }

    func peerIntroduced(_ peer: PeerIdentity, channel: PeerChannel) {
        network.greetings?(peer, process, build())
        delegate?.peerIntroduced(peer, channel: channel)
    }

    func peerClock(of node: NodeID, ahead: ClosedRange<Int64>) { delegate?.peerClock(of: node, ahead: ahead) }

    func receiveRaft(_ messages: [PeerMessage], from node: NodeID) {
        for message in messages { network.arrivals?(message, process) }
        delegate?.receiveRaft(messages, from: node)
    }

    func serve(
        _ request: [UInt8], from node: NodeID, channel: PeerChannel,
        reply: @escaping @Sendable (Result<[UInt8], PeerTransportError>) -> Void
    ) {
        guard let delegate else { return reply(.failure(.refused("node \(process.node) is stopping"))) }
        delegate.serve(request, from: node, channel: channel, reply: reply)
    }
}
