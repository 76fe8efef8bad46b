import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore

/// The other nodes as a lane sees them: where they are, which of them count, and the way to them.
final class PeerLinks: @unchecked Sendable {
    // Touched on the lane's event loop only, which makes it safe to share.
    private let eventLoop: any EventLoop
    private let logger: Logger
    /// Nil until `connect`.
    private(set) var transport: (any PeerNetwork)?
    private var book: PeerBook?
    var trust = PeerTrust()
    /// The cluster's map; nil while this node is of no cluster.
    private(set) var map: ClusterMap?
    /// The newest that a peer came with by itself; it tells only whom to ask.
    private var heard: ClusterMap?

    init(on eventLoop: any EventLoop, _ logger: Logger) {
        self.eventLoop = eventLoop
        self.logger = logger
    }

    func connect(_ transport: any PeerNetwork, by book: PeerBook, _ trust: PeerTrust) {
        (self.transport, self.book, self.trust) = (transport, book, trust)
    }

    /// Takes a new map.
    func take(_ map: ClusterMap) {
        self.map = map
        dial()
        // Whose folder counts may have changed.
        for objection in trust.judgeAgain(rejectedOnly: false, by: map) { logger.warning("\(objection)") }
    }

    /// Looks for the cluster at the nodes of a peer's map, too, until one that is as new is taken.
    func hear(_ map: ClusterMap) {
        heard = map
        dial()
    }

    private func dial() { transport?.update(peers: book?.addresses(by: map, heard: heard) ?? []) }

    func judge(_ peer: PeerIdentity, isDialled: Bool) {
        if let objection = trust.judge(peer, isDialled: isDialled, by: map) { logger.warning("\(objection)") }
    }

    func judgeRejectedAgain() {
        for objection in trust.judgeAgain(rejectedOnly: true, by: map) { logger.warning("\(objection)") }
    }

    func isConnected(_ node: NodeID) -> Bool { transport?.isConnected(node, channel: .raft) == true }

    /// Whether a node is connected right now with the data folder that counts, which is not this one.
    func isRunningElsewhere(_ node: NodeID, than incarnation: UInt64) -> Bool {
        eventLoop.preconditionInEventLoop()
        guard let counting = map?.node(node.rawValue)?.incarnation, counting != 0, counting != incarnation else {
            return false
        }
        return trust.dialledIncarnation(of: node) == counting && isConnected(node)
    }

    func send(_ messages: [Message], of group: GroupID) {
        guard let transport else { return }
        for message in messages where !trust.rejects(message.to.node) {
            transport.send([PeerMessage(group: group, message: message)], to: message.to.node)
        }
    }
}
