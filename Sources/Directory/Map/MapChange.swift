package import Wire

/// What may be changed of the cluster's map. Apply judges it by the map as it is then; a change that is made already is
/// done again by changing nothing.
package enum MapChange: Hashable, Sendable {
    /// A new node, which takes its part of the shards. Only id and addresses of the node count.
    case addNode(ClusterMap.Node)
    /// The node's replicas move to others. When they have, `dropNode` follows by itself.
    case removeNode(UInt64)
    /// A new node takes the place of one that leaves, replica by replica.
    case replaceNode(UInt64, with: ClusterMap.Node)
    /// A node that leaves has no replica in force any more.
    case dropNode(UInt64)
    /// The node's data folder is this one, and not `previous`, which is lost or out of date with all its replicas; 0 if
    /// there was none.
    case claimNode(UInt64, incarnation: UInt64, previous: UInt64)
    /// One replica lost its data; the rest of its node's folder is sound. `shard` is nil for the directory.
    case renewReplica(shard: Int?, ClusterMap.Replica)
    /// The node shall lead the group. `shard` is nil for the directory.
    case preferLeader(shard: Int?, node: UInt64)
    /// A node shall lead nothing, and another, or all others, in its place.
    case moveLeaders(from: UInt64, to: UInt64?)
    /// A node is reached elsewhere. Only id and addresses of the node count.
    case moveNode(ClusterMap.Node)
}

extension MapChange: WireCodable {
    /// 1 kind (in the order of the cases, from 1), 2 node or its id, 3 its addresses, 4 second id or incarnation, 5
    /// previous incarnation or generation, 6 group (0 the directory, shard + 1).
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .addNode(let node): Self.encode(1, node: node, to: &writer)
        case .removeNode(let id): Self.encode(2, id, to: &writer)
        case .replaceNode(let id, let node):
            Self.encode(3, id, to: &writer)
            writer.field(3) { node.encode(to: &$0) }
        case .dropNode(let id): Self.encode(4, id, to: &writer)
        case .claimNode(let id, let incarnation, let previous):
            Self.encode(5, id, to: &writer)
            writer.field(4, incarnation)
            writer.field(5, previous)
        case .renewReplica(let shard, let replica):
            Self.encode(6, replica.node, to: &writer)
            writer.field(5, replica.generation)
            writer.field(6, Self.group(shard))
        case .preferLeader(let shard, let node):
            Self.encode(7, node, to: &writer)
            writer.field(6, Self.group(shard))
        case .moveLeaders(let from, let to):
            Self.encode(8, from, to: &writer)
            if let to { writer.field(4, to) }
        case .moveNode(let node): Self.encode(9, node: node, to: &writer)
        }
    }

    private static func encode(_ kind: UInt64, _ id: UInt64, to writer: inout WireWriter) {
        writer.field(1, kind)
        writer.field(2, id)
    }

    private static func encode(_ kind: UInt64, node: ClusterMap.Node, to writer: inout WireWriter) {
        encode(kind, node.id, to: &writer)
        writer.field(3) { node.encode(to: &$0) }
    }

    private static func group(_ shard: Int?) -> UInt64 { shard.map { UInt64($0) + 1 } ?? 0 }

    package init(from reader: inout WireReader) throws(WireError) {
        var parts = Parts()
        while let field = try reader.nextField() {
            switch field {
            case 1: parts.kind = try reader.unsigned()
            case 2: parts.id = try reader.unsigned()
            case 3: parts.node = try reader.message()
            case 4: parts.second = try reader.unsigned()
            case 5: parts.third = try reader.unsigned()
            case 6: parts.shard = try Self.shard(try reader.unsigned())
            default: try reader.skip()
            }
        }
        self = try parts.change()
    }

    private static func shard(_ group: UInt64) throws(WireError) -> Int? {
        guard group <= UInt64(Int32.max) else { throw .invalidValue(field: 6) }
        return group == 0 ? nil : Int(group) - 1
    }

    /// The fields as they were read.
    private struct Parts {
        var kind: UInt64 = 0
        var id: UInt64 = 0
        var node: ClusterMap.Node?
        var second: UInt64?
        var third: UInt64 = 0
        var shard: Int?

        func change() throws(WireError) -> MapChange {
            switch kind {
            case 1: return .addNode(try described())
            case 2: return .removeNode(id)
            case 3: return .replaceNode(id, with: try described())
            case 4: return .dropNode(id)
            case 5: return .claimNode(id, incarnation: second ?? 0, previous: third)
            case 6: return .renewReplica(shard: shard, ClusterMap.Replica(node: id, generation: third))
            case 7: return .preferLeader(shard: shard, node: id)
            case 8: return .moveLeaders(from: id, to: second)
            case 9: return .moveNode(try described())
            default: throw .unknownValue(field: 1)
            }
        }

        private func described() throws(WireError) -> ClusterMap.Node {
            guard let node else { throw .missingField(3) }
            return node
        }
    }
}
