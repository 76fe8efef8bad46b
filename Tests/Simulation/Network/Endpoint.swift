import NIOCore
import PeerTransport
import RaftCore

/// A process's end of the network: what a `PeerTransport` is in production.
final class Endpoint: PeerNetwork, @unchecked Sendable {
    // Touched on the simulation's thread only.
    let network: SimulatedNetwork
    let process: ProcessLife
    let loop: SimulatedLoop
    private let configuration: PeerTransportConfiguration
    private weak var delegate: (any PeerTransportDelegate)?
    private var links: [Link] = []
    private var nextRequestID: UInt64 = 1
    private var isClosed = false
    private var isListening = false

    /// The outgoing side to one peer on one channel.
    private final class Link {
        let peer: NodeID
        let channel: PeerChannel
        var connection: Connection?
        var waiting: [(id: UInt64, promise: EventLoopPromise<[UInt8]>)] = []
        var backoffMilliseconds: UInt64 = 50
        var isDialling = false
        var isGone = false

        init(peer: NodeID, channel: PeerChannel) {
            self.peer = peer
            self.channel = channel
        }
    }

    init(
        network: SimulatedNetwork, configuration: PeerTransportConfiguration, process: ProcessLife, loop: SimulatedLoop,
        delegate: any PeerTransportDelegate
    ) {
        self.network = network
        self.process = process
        self.loop = loop
        self.delegate = delegate
        self.configuration = configuration
        addLinks(to: configuration.peers.map(\.node))
    }

    private var world: World { network.world }

    /// What a hello says.
    private var identity: PeerIdentity {
        PeerIdentity(
            node: configuration.nodeID, incarnation: configuration.incarnation, bootCounter: configuration.bootCounter,
            build: configuration.presence().build)
    }

    private var wallMilliseconds: Int64 { configuration.presence().wallMilliseconds }

    private func addLinks(to nodes: [NodeID]) {
        for node in nodes where node != identity.node {
            for channel in PeerChannel.allCases { links.append(Link(peer: node, channel: channel)) }
        }
    }

    private func link(to node: NodeID, _ channel: PeerChannel) -> Link? {
        links.first { $0.peer == node && $0.channel == channel }
    }

    // MARK: PeerNetwork

    var counters: PeerTransportCounters { PeerTransportCounters() }

    func start() -> EventLoopFuture<Void> {
        if !process.isDead, !isClosed {
            isListening = true
            network.listens(self)
            for link in links { dial(link) }
        }
        return loop.makeSucceededVoidFuture()
    }

    func update(peers: [PeerAddress]) {
        let nodes = peers.map(\.node)
        for link in links where !nodes.contains(link.peer) { drop(link) }
        links.removeAll { $0.isGone }
        addLinks(to: nodes.filter { node in !links.contains { $0.peer == node } })
        if isListening { for link in links where link.connection == nil { dial(link) } }
    }

    func send(_ messages: [PeerMessage], to node: NodeID) {
        guard let connection = link(to: node, .raft)?.connection else { return }
        let (acceptor, sender) = (connection.acceptor, identity.node)
        for message in messages {
            network.countMessage()
            network.observer?(message, process)
            world.mark(message.group.rawValue, message.message.term.rawValue, message.message.to.rawValue)
        }
        guard network.conditions.looseRaftMessages else {
            return connection.carry(.forth) { acceptor.receive(messages, from: sender) }
        }
        for message in messages where !world.chance(network.conditions.lossPercent) {
            for _ in 0..<(world.chance(network.conditions.duplicatePercent) ? 2 : 1) {
                let delay = network.delay(from: process.node, to: acceptor.process.node)
                world.schedule(after: delay, .message, for: acceptor.process, on: acceptor.loop) { [self] in
                    guard !connection.hasEnded, !network.isCut(from: process.node, to: acceptor.process.node) else {
                        return
                    }
                    acceptor.receive([message], from: sender)
                }
            }
        }
    }

    func request(
        _ payload: [UInt8], to node: NodeID, channel: PeerChannel, timeout: TimeAmount
    ) -> EventLoopFuture<[UInt8]> {
        let promise = loop.makePromise(of: [UInt8].self)
        guard let link = link(to: node, channel), let connection = link.connection else {
            promise.fail(PeerTransportError.notConnected)
            return promise.futureResult
        }
        let id = nextRequestID
        nextRequestID += 1
        link.waiting.append((id, promise))
        let after = process.clock.trueDuration(of: UInt64(max(0, timeout.nanoseconds)))
        world.schedule(after: after, .timer, for: process, on: loop) { [self] in
            finish(id, on: link, .failure(.timedOut))
        }
        let (acceptor, sender) = (connection.acceptor, identity.node)
        connection.carry(.forth) { [self] in
            acceptor.serve(payload, from: sender, channel: channel) { result in
                connection.carry(.back) { [self] in finish(id, on: link, result) }
            }
        }
        return promise.futureResult
    }

    func isConnected(_ node: NodeID, channel: PeerChannel) -> Bool { link(to: node, channel)?.connection != nil }

    func shutdown() -> EventLoopFuture<Void> {
        isClosed = true
        network.left(self)
        network.crashed(process, isSilent: false)
        for link in links { drop(link) }
        links = []
        return loop.makeSucceededVoidFuture()
    }

    // MARK: Incoming

    private func receive(_ messages: [PeerMessage], from node: NodeID) {
        guard !isClosed, !process.isDead else { return }
        delegate?.receiveRaft(messages, from: node)
    }

    private func serve(
        _ payload: [UInt8], from node: NodeID, channel: PeerChannel,
        reply: @escaping (Result<[UInt8], PeerTransportError>) -> Void
    ) {
        guard !isClosed, !process.isDead, let delegate else { return }
        let once = OneReply(reply)
        delegate.serve(payload, from: node, channel: channel) { once.give($0) }
    }

    private final class OneReply: @unchecked Sendable {
        // Touched on the simulation's thread only.
        private var reply: ((Result<[UInt8], PeerTransportError>) -> Void)?
        init(_ reply: @escaping (Result<[UInt8], PeerTransportError>) -> Void) { self.reply = reply }

        func give(_ result: Result<[UInt8], PeerTransportError>) {
            guard let reply else { return }
            self.reply = nil
            // As the transport does: the asking side learns whether the outcome is known.
            reply(result.mapError { $0.isOutcomeUnknown ? .responseLost("\($0)") : .refused("\($0)") })
        }
    }

    // MARK: Connections

    private func dial(_ link: Link) {
        guard !link.isDialling, link.connection == nil, !link.isGone, !isClosed, !process.isDead else { return }
        link.isDialling = true
        let delay = network.delay(from: process.node, to: Int(link.peer.rawValue)) * 3
        world.schedule(after: delay, .dial, for: process, on: loop) { [self] in
            link.isDialling = false
            guard !isClosed, !process.isDead, !link.isGone, link.connection == nil else { return }
            if !connect(link) { dialLater(link) }
        }
    }

    private func dialLater(_ link: Link) {
        guard !isClosed, !process.isDead else { return }
        let delay = world.milliseconds(link.backoffMilliseconds / 2...link.backoffMilliseconds)
        link.backoffMilliseconds = min(link.backoffMilliseconds * 2, 1_000)
        world.schedule(after: delay, .dial, for: process, on: loop) { [self] in dial(link) }
    }

    private func connect(_ link: Link) -> Bool {
        guard let acceptor = network.endpoint(of: link.peer), !acceptor.process.isDead, !acceptor.isClosed,
            acceptor.process.pausedUntil <= world.now,
            network.isOpenBothWays(process.node, acceptor.process.node)
        else { return false }
        let builds = (identity.build, acceptor.identity.build)
        if let refusal = builds.0.refusal(of: builds.1) ?? builds.1.refusal(of: builds.0) {
            world.note("  node \(identity.node) and node \(link.peer) part: \(refusal)")
            return false
        }
        link.backoffMilliseconds = 50
        let connection = Connection(network: network, dialler: self, acceptor: acceptor, channel: link.channel)
        network.opened(connection)
        let (own, channel) = (identity, link.channel)
        connection.carry(.forth) { acceptor.delegate?.peerIntroduced(own, channel: channel) }
        link.connection = connection
        delegate?.peerConnected(acceptor.identity, channel: channel)
        ask(over: connection, of: link)
        return true
    }

    /// Compares clocks, as pings do, now and again while the connection stands.
    private func ask(over connection: Connection, of link: Link) {
        guard link.channel == .raft, link.connection === connection, !isClosed, !process.isDead else { return }
        let (acceptor, asked) = (connection.acceptor, wallMilliseconds)
        connection.carry(.forth) {
            guard !acceptor.isClosed, !acceptor.process.isDead else { return }
            let peer = acceptor.wallMilliseconds
            connection.carry(.back) { [self] in
                guard !isClosed, !process.isDead else { return }
                let ahead = PeerClockComparison.ahead(peer: peer, asked: asked, heard: wallMilliseconds)
                delegate?.peerClock(of: link.peer, ahead: ahead)
            }
        }
        world.schedule(after: 2 * World.second, .dial, for: process, on: loop) { [self] in
            ask(over: connection, of: link)
        }
    }

    /// The connection has ended, and this side knows it now.
    func lost(_ connection: Connection) {
        guard let link = links.first(where: { $0.connection === connection }) else { return }
        link.connection = nil
        failWaiting(link)
        guard !isClosed, !process.isDead else { return }
        delegate?.peerDisconnected(link.peer, channel: link.channel)
        dialLater(link)
    }

    private func drop(_ link: Link) {
        link.isGone = true
        link.connection?.end(after: 0)
        link.connection = nil
        failWaiting(link)
    }

    private func failWaiting(_ link: Link) {
        let waiting = link.waiting
        link.waiting = []
        for request in waiting { request.promise.fail(PeerTransportError.disconnected) }
    }

    private func finish(_ id: UInt64, on link: Link, _ result: Result<[UInt8], PeerTransportError>) {
        guard let place = link.waiting.firstIndex(where: { $0.id == id }) else { return }
        link.waiting.remove(at: place).promise.completeWith(result.mapError { $0 })
    }
}
