package import Logging
import NIOCore

/// What links and the acceptor have in common. Bound to the event loop.
final class TransportShared {
    let configuration: PeerTransportConfiguration
    let eventLoop: any EventLoop
    let logger: Logger
    let counters: CounterBox
    /// The owner of the transport owns the delegate too, so the transport must not.
    weak var delegate: (any PeerTransportDelegate)?
    let wire: any PeerWire
    let random: @Sendable () -> UInt64

    init(
        configuration: PeerTransportConfiguration, eventLoop: any EventLoop, delegate: (any PeerTransportDelegate)?,
        logger: Logger, counters: CounterBox, wire: any PeerWire, random: @escaping @Sendable () -> UInt64
    ) {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.delegate = delegate
        self.logger = logger
        self.counters = counters
        self.wire = wire
        self.random = random
    }
}

/// The transport's state. Bound to the event loop.
final class TransportCore {
    let shared: TransportShared
    private let acceptor: PeerAcceptor
    private var links: [PeerLink] = []
    private var isStarted = false
    private var isStopped = false

    init(shared: TransportShared) {
        self.shared = shared
        acceptor = PeerAcceptor(shared: shared)
    }

    /// Listens, then dials every peer. The future has the port.
    func start() -> EventLoopFuture<Int> {
        precondition(!isStarted, "a transport is started once")
        isStarted = true
        let bound = NIOLoopBound(self, eventLoop: shared.eventLoop)
        return acceptor.listen().map { port in
            bound.value.update(peers: bound.value.shared.configuration.peers)
            return port
        }
    }

    /// Dials new and moved peers, and drops removed ones.
    func update(peers: [PeerAddress]) {
        guard !isStopped else { return }
        let wanted = peers.filter { $0.node != shared.configuration.nodeID }
        let gone = links.filter { !wanted.contains($0.address) }
        links.removeAll { link in gone.contains { $0 === link } }
        for link in gone { link.stop(saying: "the node is no longer a peer at this address") }
        for address in wanted where !links.contains(where: { $0.address == address }) {
            for channel in PeerChannel.allCases {
                let link = PeerLink(address: address, channel: channel, shared: shared)
                links.append(link)
                link.dial()
            }
        }
    }

    private func link(to node: NodeID, _ channel: PeerChannel) -> PeerLink? {
        links.first { $0.address.node == node && $0.channel == channel }
    }

    func send(_ messages: [PeerMessage], to node: NodeID) {
        guard let link = link(to: node, .raft) else {
            return shared.counters.update { $0.messagesDroppedNotConnected += UInt64(messages.count) }
        }
        for message in messages { link.send(message) }
    }

    func request(
        _ payload: [UInt8], to node: NodeID, channel: PeerChannel, timeout: TimeAmount
    ) -> EventLoopFuture<[UInt8]> {
        precondition(channel != .raft, "requests go over the request or the bulk channel")
        guard let link = link(to: node, channel) else {
            return shared.eventLoop.makeFailedFuture(PeerTransportError.notConnected)
        }
        return link.request(payload, timeout: timeout)
    }

    func isConnected(_ node: NodeID, channel: PeerChannel) -> Bool {
        link(to: node, channel)?.ready != nil
    }

    /// Closes everything. The future succeeds when every channel is closed.
    func shutdown() -> EventLoopFuture<Void> {
        isStopped = true
        var ends = acceptor.stop(saying: "the node stops")
        for link in links {
            if let channel = link.openChannel { ends.append(channel.closeFuture) }
            link.stop(saying: "the node stops")
        }
        return EventLoopFuture.andAllComplete(ends, on: shared.eventLoop)
    }
}

/// Says a thing that repeats every second or two once, and again after a minute with the number of times it went
/// unsaid.
package struct QuietLog: Sendable {
    /// The most different things remembered; beyond it, all are forgotten and said again.
    static let entriesMax = 64
    static let pause: TimeAmount = .seconds(60)

    private var said: [String: (at: NIODeadline, unsaid: Int)] = [:]

    package init() {}

    /// - Parameter key: what makes two messages the same; the message itself unless given.
    package mutating func log(_ logger: Logger, _ level: Logger.Level, _ message: String, key: String? = nil) {
        let now = NIODeadline.now()
        let key = key ?? message
        if let last = said[key], now < last.at + Self.pause {
            said[key] = (last.at, last.unsaid + 1)
            logger.trace("\(message)")
            return
        }
        let unsaid = said[key]?.unsaid ?? 0
        if said.count >= Self.entriesMax { said.removeAll() }
        said[key] = (now, 0)
        logger.log(level: level, "\(message)\(unsaid > 0 ? " (and \(unsaid) times before)" : "")")
    }

    /// The matter is settled: say it at once if it comes back.
    mutating func forget() { said.removeAll() }
}
