import Crypto
package import Directory
package import PeerTransport
package import RaftCore
package import RecordModel
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
