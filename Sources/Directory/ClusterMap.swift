package import Wire

/// Who is in the cluster, which nodes shall hold the replicas of each group, and which shard holds which slots.
///
/// It says what shall be; the leader of each group brings its members there. Changed only by commands of the
/// directory's own log (`MapChange`).
package struct ClusterMap: Hashable, Sendable, WireCodable {
    /// One node, as the others and the clients reach it.
    package struct Node: Hashable, Sendable, WireMessage {
        /// 1 to 65,535; the id of a removed node is never given again.
        package var id: UInt64
        /// The DNS name or IP address at which other nodes reach it, without a port.
        package var peerHost: String
        /// The port at which other nodes reach it, 1 to 65,535.
        package var peerPort: Int
        /// Where clients reach it, such as `https://127.0.0.1:24001`.
        package var clientURL: String
        /// The random number of the data folder in use; 0 before the first. A folder with another number has lost the
        /// node's votes and acknowledgements, or is an old one.
        package var incarnation: UInt64 = 0
        /// The greatest generation that a replica on the node was given.
        package var lastGeneration: UInt64 = 0
        /// Whether its replicas move away, so that it can go.
        package var isLeaving = false

        package init(id: UInt64, peerHost: String, peerPort: Int, clientURL: String) {
            self.id = id
            self.peerHost = peerHost
            self.peerPort = peerPort
            self.clientURL = clientURL
        }

        package static var blank: Self { ClusterMap.Node(id: 0, peerHost: "", peerPort: 0, clientURL: "") }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &id)
            try wire.field(2, &peerHost)
            try wire.field(3, &peerPort)
            try wire.field(4, &clientURL)
            try wire.field(5, &incarnation, unless: 0)
            try wire.field(6, &lastGeneration, unless: 0)
            try wire.field(7, &isLeaving, unless: false)
        }
    }

    /// A group's replica on a node. The pair is given once within a group: a replica that lost its log comes back under
    /// a later generation, and so does one that was moved away and back.
    package struct Replica: Hashable, Sendable {
        /// The id of the node that holds the replica.
        package var node: UInt64
        /// 0 for the replicas that a cluster is made with.
        package var generation: UInt64

        package init(node: UInt64, generation: UInt64 = 0) {
            self.node = node
            self.generation = generation
        }
    }

    /// The number of slots that zone keys hash to.
    package static let slotCount = 1024
    /// The most replicas of the directory that vote.
    package static let directoryVotersMax = 5
    /// The most nodes of a cluster.
    package static let nodesMax = 64
    /// The last generation there is.
    package static let generationMax: UInt64 = 65_535

    /// The cluster's name in its configuration file; nodes refuse peers of another cluster.
    package var clusterID: String
    /// Grows with every change.
    package var epoch: UInt64
    /// Sorted by id.
    package var nodes: [Node]
    /// The directory's replicas, one on each node, the preferred leader first.
    package var directory: [Replica]
    /// Each shard's replicas, the preferred leader first. Shard `i` is Raft group `i + 1`; group 0 is the directory.
    package var shards: [[Replica]]
    /// The shard of each slot.
    package var slots: [Int]
    /// How many replicas a shard has where there are nodes enough.
    package var replicasPerShard: Int
    /// The ids of nodes that were in the cluster, ascending. They are never given again.
    package var removed: [UInt64]

    /// A map whose nodes all hold a first replica of the directory.
    package init(clusterID: String, epoch: UInt64, nodes: [Node], shards: [[Replica]], slots: [Int]) {
        self.clusterID = clusterID
        self.epoch = epoch
        self.nodes = nodes
        self.shards = shards
        self.slots = slots
        directory = nodes.map { Replica(node: $0.id) }
        replicasPerShard = shards.first?.count ?? 0
        removed = []
    }

    /// The map of a new cluster: slots dealt to shards in turn, the replicas of shard `i` on the nodes from `i` on, so
    /// that each node is the preferred leader of an equal part.
    package init(clusterID: String, nodes: [Node], shardCount: Int, replicasPerShard: Int) {
        precondition(!nodes.isEmpty && shardCount > 0, "\(nodes.count) nodes, \(shardCount) shards")
        let sorted = nodes.sorted { $0.id < $1.id }
        let replicaCount = min(replicasPerShard, sorted.count)
        self.init(
            clusterID: clusterID, epoch: 1, nodes: sorted,
            shards: (0..<shardCount).map { shard in
                (0..<replicaCount).map { Replica(node: sorted[(shard + $0) % sorted.count].id) }
            },
            slots: (0..<Self.slotCount).map { $0 % shardCount })
        self.replicasPerShard = replicasPerShard
    }

    /// 1 cluster, 2 epoch, 3 node, 4 shard's replicas, 5 slot's shard, 6 directory's replicas, 7 replicas a shard, 8
    /// removed node. Replicas: 1 node, then 2 generation where it is not 0.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, clusterID)
        writer.field(2, epoch)
        for node in nodes { writer.field(3) { node.encode(to: &$0) } }
        for replicas in shards { writer.field(4) { Self.encode(replicas, to: &$0) } }
        writer.fields(5, slots.map(UInt64.init))
        writer.field(6) { Self.encode(directory, to: &$0) }
        writer.field(7, UInt64(replicasPerShard))
        for node in removed { writer.field(8, node) }
    }

    /// A map of the time before generations has no fields above 5.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(clusterID: "", epoch: 0, nodes: [], shards: [], slots: [])
        var directory: [Replica]?
        var replicasPerShard: UInt64?
        while let field = try reader.nextField() {
            switch field {
            case 1: clusterID = try reader.string()
            case 2: epoch = try reader.unsigned()
            case 3: nodes.append(try reader.message())
            case 4: shards.append(try Self.replicas(&reader))
            case 5: slots.append(Int(truncatingIfNeeded: try reader.unsigned()))
            case 6: directory = try Self.replicas(&reader)
            case 7: replicasPerShard = try reader.unsigned()
            case 8: removed.append(try reader.unsigned())
            default: try reader.skip()
            }
        }
        self.directory = directory ?? nodes.map { Replica(node: $0.id) }
        self.replicasPerShard = Int(truncatingIfNeeded: replicasPerShard ?? UInt64(shards.first?.count ?? 0))
        guard slots.count == Self.slotCount, slots.allSatisfy({ shards.indices.contains($0) }) else {
            throw .invalidValue(field: 5)
        }
    }

    private static func encode(_ replicas: [Replica], to writer: inout WireWriter) {
        for replica in replicas {
            writer.field(1, replica.node)
            if replica.generation != 0 { writer.field(2, replica.generation) }
        }
    }

    private static func replicas(_ reader: inout WireReader) throws(WireError) -> [Replica] {
        var nested = try reader.nested()
        var replicas: [Replica] = []
        while let field = try nested.nextField() {
            switch field {
            case 1: replicas.append(Replica(node: try nested.unsigned()))
            case 2:
                let generation = try nested.unsigned()
                guard !replicas.isEmpty, generation <= generationMax else { throw .invalidValue(field: 2) }
                replicas[replicas.count - 1].generation = generation
            default: try nested.skip()
            }
        }
        return replicas
    }

    /// The node with an id.
    package func node(_ id: UInt64) -> Node? { nodes.first { $0.id == id } }

    /// The voters of the directory: the first five nodes that stay.
    package var directoryVoters: [UInt64] { Array(stayingDirectory.prefix(Self.directoryVotersMax).map(\.node)) }

    private var stayingDirectory: [Replica] { directory.filter { node($0.node)?.isLeaving == false } }

    /// The replicas that a group shall have, the preferred leader first.
    /// - Parameter shard: nil for the directory.
    package func replicas(ofShard shard: Int?) -> [Replica] {
        guard let shard else { return directory }
        return shards.indices.contains(shard) ? shards[shard] : []
    }

    /// The node that shall lead a group when it can, so that leaders are spread.
    /// - Parameter shard: nil for the directory.
    package func preferredLeader(ofShard shard: Int?) -> UInt64? {
        shard == nil ? directoryVoters.first : replicas(ofShard: shard).first?.node
    }

    /// Whether another map places the same slots on the same replicas of the same nodes; addresses and epochs aside.
    package func isPlacedAs(_ other: ClusterMap) -> Bool {
        clusterID == other.clusterID && nodes.map(\.id) == other.nodes.map(\.id) && directory == other.directory
            && shards == other.shards && slots == other.slots
    }
}

/// What may be changed of the cluster's map. Apply judges it by the map as it is then; a change that is made already is
/// done again by changing nothing.
package enum MapChange: Hashable, Sendable, WireCodable {
    /// A new node, which takes its part of the shards. Only id and addresses of the node count.
    case addNode(ClusterMap.Node)
    /// The node's replicas move to others. When they have, `dropNode` follows by itself.
    case removeNode(UInt64)
    /// A new node takes the place of one that leaves, replica by replica.
    case replaceNode(UInt64, with: ClusterMap.Node)
    /// A leaving node has no replica in force.
    case dropNode(UInt64)
    /// The node's data folder is this one instead of `previous`, which is lost or out of date with all its replicas; 0
    /// without a previous one.
    case claimNode(UInt64, incarnation: UInt64, previous: UInt64)
    /// One replica lost its data; the rest of its node's folder is sound. `shard` is nil for the directory.
    case renewReplica(shard: Int?, ClusterMap.Replica)
    /// The node shall lead the group. `shard` is nil for the directory.
    case preferLeader(shard: Int?, node: UInt64)
    /// A node shall lead nothing, and another, or all others, in its place.
    case moveLeaders(from: UInt64, to: UInt64?)
    /// A node is reached elsewhere. Only id and addresses of the node count.
    case moveNode(ClusterMap.Node)

    package func encode(to writer: inout WireWriter) { Parts(self).encode(to: &writer) }

    package init(from reader: inout WireReader) throws(WireError) { self = try Parts(from: &reader).change() }

    /// A change's binary form.
    fileprivate struct Parts: WireMessage {
        /// In the order of the cases, from 1.
        var kind: UInt64 = 0
        /// Of the node, or of the first one.
        var id: UInt64 = 0
        var node: ClusterMap.Node?
        /// The second node's id, or the incarnation.
        var second: UInt64?
        /// The previous incarnation, or the generation.
        var third: UInt64?
        /// 0 is the directory; else the shard plus 1.
        var group: UInt64?

        static var blank: Self { Parts() }

        mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.field(1, &kind)
            try wire.field(2, &id)
            try wire.field(3, &node)
            try wire.field(4, &second)
            try wire.field(5, &third)
            try wire.field(6, &group)
        }

        func change() throws(WireError) -> MapChange {
            switch kind {
            case 1: return .addNode(try described())
            case 2: return .removeNode(id)
            case 3: return .replaceNode(id, with: try described())
            case 4: return .dropNode(id)
            case 5: return .claimNode(id, incarnation: second ?? 0, previous: third ?? 0)
            case 6: return .renewReplica(shard: try shard(), ClusterMap.Replica(node: id, generation: third ?? 0))
            case 7: return .preferLeader(shard: try shard(), node: id)
            case 8: return .moveLeaders(from: id, to: second)
            case 9: return .moveNode(try described())
            default: throw .unknownValue(field: 1)
            }
        }

        private func described() throws(WireError) -> ClusterMap.Node {
            guard let node else { throw .missingField(3) }
            return node
        }

        private func shard() throws(WireError) -> Int? {
            guard let group, group > 0 else { return nil }
            guard group <= UInt64(Int32.max) else { throw .invalidValue(field: 6) }
            return Int(group) - 1
        }
    }
}

extension MapChange.Parts {
    fileprivate init(_ change: MapChange) {
        switch change {
        case .addNode(let node): self.init(kind: 1, id: node.id, node: node)
        case .removeNode(let id): self.init(kind: 2, id: id)
        case .replaceNode(let id, let node): self.init(kind: 3, id: id, node: node)
        case .dropNode(let id): self.init(kind: 4, id: id)
        case .claimNode(let id, let incarnation, let previous):
            self.init(kind: 5, id: id, second: incarnation, third: previous)
        case .renewReplica(let shard, let replica):
            self.init(kind: 6, id: replica.node, third: replica.generation, group: Self.group(shard))
        case .preferLeader(let shard, let node): self.init(kind: 7, id: node, group: Self.group(shard))
        case .moveLeaders(let from, let to): self.init(kind: 8, id: from, second: to)
        case .moveNode(let node): self.init(kind: 9, id: node.id, node: node)
        }
    }

    private static func group(_ shard: Int?) -> UInt64 { shard.map { UInt64($0) + 1 } ?? 0 }
}
