package import Directory
package import PeerTransport
package import RaftCore
import Synchronization
package import Wire

/// What a node says of itself, and of the one that asks, when two nodes meet.
package struct Standing: Hashable, Sendable, WireMessage {
    /// What the answering node thinks of the asking one's data folder.
    package enum Verdict: UInt64, Hashable, Sendable, WireValue {
        /// Nothing is known against it.
        case welcome = 1
        /// The answering node knows a later start of the same folder: it is an old copy.
        case outdated = 2
        /// The directory knows another folder of the node: this one is lost, or an old one.
        case otherFolder = 3
        /// The directory knows another folder of the node, and a process runs on that one now.
        case duplicate = 4
        /// The node was removed from the cluster.
        case removed = 5
        /// The node is not in the cluster.
        case stranger = 6
        /// What the directory says cannot be known at the moment.
        case undecided = 7
    }

    /// The answering node's judgement of the asking node's data folder.
    package var verdict: Verdict
    /// The number of the answering node's data folder.
    package var incarnation: UInt64
    /// The map that it promised to found; nil without a promise, after founding, or if the asking node has a map.
    package var promise: ClusterMap?
    /// The map by which it founded; nil if it has not, or joined later, or the asking node has a map.
    package var founding: ClusterMap?
    /// The cluster's map as it knows it; nil if the directory has none yet, or none newer than the asking node's.
    package var map: ClusterMap?
    /// What the asking node has acknowledged to it, in groups that it leads, or said to it as their leader.
    package var acknowledged: [Acknowledged] = []

    /// An entry that a replica said it has on its disk.
    package struct Acknowledged: Hashable, Sendable, WireMessage {
        /// The group whose log has the entry.
        package var group: GroupID
        /// A replica on the asking node.
        package var replica: ReplicaID
        /// Of the leader to whom it was said.
        package var term: Term
        /// The last entry that was acknowledged; all entries before it were, too.
        package var index: LogIndex

        /// Whether a replica of this state has lost what it acknowledged. In a later term than the leader's the entry
        /// may have been replaced rightly; in that term or an earlier one it can only be lost.
        package func isLost(id: ReplicaID, term: Term, durable: LogIndex) -> Bool {
            id == replica && term <= self.term && durable < index
        }

        package static var blank: Self {
            Standing.Acknowledged(group: GroupID(0), replica: ReplicaID(0), term: .zero, index: .zero)
        }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &group)
            try wire.field(2, &replica)
            try wire.field(3, &term)
            try wire.field(4, &index)
        }
    }

    package static var blank: Self { Standing(verdict: .undecided, incarnation: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &verdict)
        try wire.field(2, &incarnation)
        try wire.field(3, &promise)
        try wire.field(4, &founding)
        try wire.field(5, &map)
        try wire.field(6, &acknowledged)
    }
}

/// How a node names itself when it asks for a `Standing`.
package struct Introduction: Hashable, Sendable, WireMessage {
    /// The number of its data folder.
    package var incarnation: UInt64
    /// The number of this start on it.
    package var bootCounter: UInt64
    /// Its map, so that a node without one learns whom else to ask.
    package var map: ClusterMap?

    package static var blank: Self { Introduction(incarnation: 0, bootCounter: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &incarnation)
        try wire.field(2, &bootCounter)
        try wire.field(3, &map)
    }
}

/// What peers said, since the start, that replicas on this node acknowledged to them.
///
/// No replica is made twice under one name, so a folder that is about to make one which has acknowledged something is
/// an old copy.
final class Acknowledgements: Sendable {
    private struct Witness: Sendable {
        var node: NodeID
        var entry: Standing.Acknowledged
    }

    /// For each group the evidence about the latest replica, which covers those before it.
    private let latest = Mutex<[GroupID: Witness]>([:])

    /// Remembers what a peer said.
    func note(_ entries: [Standing.Acknowledged], by node: NodeID) {
        latest.withLock { latest in
            for entry in entries where entry.index > .zero {
                if let known = latest[entry.group], known.entry.replica >= entry.replica { continue }
                latest[entry.group] = Witness(node: node, entry: entry)
            }
        }
    }

    /// - Parameter replica: of this node, about to be made.
    /// - Throws: `OldCopy` where it, or a later one, has acknowledged something.
    func requireNone(of replica: ReplicaID, in group: GroupID) throws(OldCopy) {
        guard let witness = latest.withLock({ $0[group] }), witness.entry.replica >= replica else { return }
        throw OldCopy(
            description:
                "node \(witness.node) knows that a replica of group \(group) on this node acknowledged entry \(witness.entry.index), and none was ever made here: the folder is an old copy"
        )
    }
}

/// The data folder is older than what it acknowledged.
struct OldCopy: Error, CustomStringConvertible {
    var description: String
}

/// What this node remembers of a peer's data folder.
package struct KnownPeer: Codable, Hashable, Sendable {
    /// The number of the peer's data folder when it was last welcome.
    package var incarnation: UInt64
    /// The number of the peer's start on that folder: a count in the upper 32 bits, a random number in the lower.
    package var bootCounter: UInt64
}

extension Standing.Verdict {
    /// Judges a peer's data folder by the map and by what this node remembers of the peer. Pure.
    ///
    /// The map decides which folder counts. What is remembered tells an old copy of that folder from the folder: every
    /// start on it has a greater count, and two starts with one count differ in the lower half.
    package static func of(_ peer: PeerIdentity, map: ClusterMap?, known: KnownPeer?) -> Standing.Verdict {
        var incarnation: UInt64 = 0
        if let map {
            guard let node = map.node(peer.node.rawValue) else {
                return map.removed.contains(peer.node.rawValue) ? .removed : .stranger
            }
            incarnation = node.incarnation
        }
        if incarnation != 0, incarnation != peer.incarnation { return .otherFolder }
        guard let known else { return .welcome }
        guard known.incarnation == peer.incarnation else {
            // The map says that this one counts; where it says nothing, the first one does.
            return incarnation == 0 ? .otherFolder : .welcome
        }
        if known.bootCounter == peer.bootCounter { return .welcome }
        return known.bootCounter >> 32 < peer.bootCounter >> 32 ? .welcome : .outdated
    }

    /// Why the peer may not take part, for the log; nil if it may.
    package func objection(to node: NodeID) -> String? {
        switch self {
        case .welcome: nil
        case .outdated: "node \(node) comes with an old copy of its data folder; it is told to begin anew"
        case .otherFolder, .duplicate:
            "node \(node) comes with another data folder than the one that counts, so what it voted and acknowledged is lost; "
                + "it is told to join anew"
        case .removed: "node \(node) was removed from the cluster"
        case .stranger: "node \(node) is not in the cluster"
        case .undecided: "what the directory says of node \(node) cannot be known at the moment"
        }
    }
}
