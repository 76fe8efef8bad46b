import Directory
import PeerTransport
import RaftCore
import RecordModel

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
