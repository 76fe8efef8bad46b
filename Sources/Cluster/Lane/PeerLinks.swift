import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel

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

    init(on eventLoop: any EventLoop, _ logger: Logger) { (self.eventLoop, self.logger) = (eventLoop, logger) }

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

/// Which peers count for this node's replicas, and whether the node itself does.
struct PeerTrust {
    /// True until peers confirmed that this node's data folder is the newest. Until then nothing is sent, and what is
    /// received is dropped.
    var isHeld = false
    /// Peers that confirmed this node's data folder; what any other one sends is dropped. Nil where the folder cannot
    /// be an old one.
    var met: Set<NodeID>?
    private let known: KnownPeers?
    /// Who the peers said they are, at their last connection, and at the last one that this node dialled.
    private var peers: [NodeID: PeerIdentity] = [:]
    private var dialled: [NodeID: PeerIdentity] = [:]
    /// Nodes whose data folder is not the one that is known of them: nothing of theirs counts.
    private var rejected: Set<NodeID> = []

    /// - Parameters:
    ///   - known: nil for a node without peers.
    ///   - mayBeOld: whether this node's folder may be an old one.
    init(known: KnownPeers? = nil, mayBeOld: Bool = false) {
        self.known = known
        (isHeld, met) = (mayBeOld, mayBeOld ? [] : nil)
    }

    /// Whether what a node sends counts here.
    func accepts(_ node: NodeID) -> Bool { !isHeld && !rejects(node) && met?.contains(node) != false }

    func rejects(_ node: NodeID) -> Bool { rejected.contains(node) }

    /// The feature levels of the build that a node runs; nil where it has not said.
    func levels(of node: NodeID) -> ClosedRange<UInt64>? { peers[node]?.build.levels }

    /// Whether a node's build can apply commands of a feature level.
    func canFollow(_ level: FeatureLevel, _ node: NodeID) -> Bool {
        levels(of: node).map { $0.contains(level.rawValue) } ?? true
    }

    /// Which data folder answered when this node dialled another.
    func dialledIncarnation(of node: NodeID) -> UInt64? { dialled[node]?.incarnation }

    /// Takes a peer for the one that is known, or not. Writes a small file when the peer was restarted, which is rare
    /// enough to be done on the lane: nothing of the peer may count before it is durable.
    /// - Returns: what speaks against the peer, where nothing did before.
    mutating func judge(_ peer: PeerIdentity, isDialled: Bool = false, by map: ClusterMap?) -> String? {
        peers[peer.node] = peer
        if isDialled { dialled[peer.node] = peer }
        var objection: String?
        do {
            objection = try known?.judge(peer, by: map).objection(to: peer.node)
        } catch {
            objection = "what is known of node \(peer.node) cannot be kept: \(error)"
        }
        guard let objection else {
            rejected.remove(peer.node)
            return nil
        }
        return rejected.insert(peer.node).inserted ? objection : nil
    }

    /// Judges the peers again that said who they are.
    /// - Returns: what speaks against peers that nothing spoke against before.
    mutating func judgeAgain(rejectedOnly: Bool, by map: ClusterMap?) -> [String] {
        let nodes = rejectedOnly ? rejected : Set(peers.keys)
        return nodes.sorted().compactMap { peers[$0] }.compactMap { judge($0, by: map) }
    }
}
