import Crypto
package import Directory
package import PeerTransport
package import RaftCore
package import RecordModel
import Synchronization
import Wire

extension ZoneKey {
    /// Where the hash puts the zone: the first 8 bytes of the SHA-256 of its key, big-endian, modulo the number of
    /// slots.
    ///
    /// The key's parts are joined by zero bytes, which no name contains, and followed by the stripe number 0.
    package var slot: Int {
        let text = [
            database.container, database.environment.rawValue, database.scope.rawValue, database.owner, name, "0",
        ].joined(separator: "\0")
        var first: UInt64 = 0
        for byte in SHA256.hash(data: Array(text.utf8)).prefix(8) { first = first << 8 | UInt64(byte) }
        return Int(first % UInt64(ClusterMap.slotCount))
    }
}

extension GroupID {
    /// The group of nodes, shard map, containers, schemas, accounts and tokens.
    package static let directory = GroupID(0)

    /// The group that holds a shard.
    package static func shard(_ shard: Int) -> GroupID { GroupID(UInt64(shard) + 1) }

    /// The shard that the group holds; nil for the directory.
    package var shard: Int? { rawValue == 0 ? nil : Int(rawValue) - 1 }
}

extension ReplicaID {
    /// The first replica of a group on a node. A later one, after a loss of the log, gets a higher generation.
    package init(node: NodeID, generation: UInt16 = 0) {
        self.init(node.rawValue << 16 | UInt64(generation))
    }

    /// The replica as the map has it.
    package init(_ replica: ClusterMap.Replica) {
        self.init(node: NodeID(rawValue: replica.node), generation: UInt16(clamping: replica.generation))
    }

    /// How often the node was given a replica before this one, in any group.
    package var generation: UInt64 { rawValue & 0xFFFF }

    /// The node the replica lives on.
    package var node: NodeID { NodeID(rawValue: rawValue >> 16) }
}

extension ClusterMap {
    /// The group that holds a zone.
    package func group(of zone: ZoneKey) -> GroupID { .shard(slots[zone.slot]) }

    /// Every group of the cluster, the directory first.
    package var groups: [GroupID] { [.directory] + shards.indices.map(GroupID.shard) }

    /// The members that a group shall have.
    package func configuration(of group: GroupID) -> Configuration {
        let replicas = replicas(ofShard: group.shard)
        guard group.shard == nil else { return Configuration(voters: replicas.map { ReplicaID($0) }) }
        let voters = directoryVoters
        return Configuration(
            voters: replicas.filter { voters.contains($0.node) }.map { ReplicaID($0) },
            learners: replicas.filter { !voters.contains($0.node) }.map { ReplicaID($0) })
    }

    /// The node that should lead a group when it can, so that leaders are spread.
    package func preferredLeader(of group: GroupID) -> NodeID {
        NodeID(rawValue: preferredLeader(ofShard: group.shard) ?? nodes.first?.id ?? 0)
    }
}

/// Who leads each group. Readable from any thread.
///
/// Whether this node leads is a fact, which only its replica's core states, through the lane. Which other node leads is
/// a guess: the core's, or what the answers of nodes show. Answers are noted late and in any order, so they fill in
/// what is unknown and speak of other nodes only; a guess that is wrong goes with the first denial.
package final class LeaderTable: Sendable {
    private struct State {
        /// Groups that this node leads.
        var led: Set<GroupID> = []
        /// The nodes that are believed to lead others; never this one.
        var guesses: [GroupID: NodeID] = [:]
    }

    private let nodeID: NodeID
    private let state = Mutex(State())

    /// - Parameter nodeID: this node.
    package init(nodeID: NodeID) { self.nodeID = nodeID }

    /// Whether this node leads a group.
    package func leads(_ group: GroupID) -> Bool { state.withLock { $0.led.contains(group) } }

    /// The node that leads a group, as far as this node knows.
    package func leader(of group: GroupID) -> NodeID? {
        state.withLock { $0.led.contains(group) ? nodeID : $0.guesses[group] }
    }

    /// The replica of this node changed its part in a group, or is gone.
    /// - Parameter leader: whom it follows, if that is known.
    package func roleChanged(isLeading: Bool, leader: NodeID?, of group: GroupID) {
        state.withLock { state in
            if isLeading { state.led.insert(group) } else { state.led.remove(group) }
            state.guesses[group] = leader == nodeID ? nil : leader
        }
    }

    /// A node answered as the leader of a group.
    package func answered(by node: NodeID, of group: GroupID) { guess(node, of: group) }

    /// Forgets a leader that turned out not to lead, unless another is known meanwhile.
    package func forget(_ leader: NodeID, of group: GroupID) {
        state.withLock { if $0.guesses[group] == leader { $0.guesses[group] = nil } }
    }

    /// A node says that it does not lead, and perhaps who does.
    package func denied(by node: NodeID, hint: NodeID?, of group: GroupID) {
        forget(node, of: group)
        if let hint, hint != node { guess(hint, of: group) }
    }

    private func guess(_ leader: NodeID, of group: GroupID) {
        guard leader != nodeID else { return }
        state.withLock { state in
            guard !state.led.contains(group), state.guesses[group] == nil else { return }
            state.guesses[group] = leader
        }
    }
}
