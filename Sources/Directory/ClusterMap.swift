package import Wire

/// Who is in the cluster and which nodes hold which slots. Changed only by commands of the directory's own log.
package struct ClusterMap: Hashable, Sendable {
    /// One node, as the others and the clients reach it.
    package struct Node: Hashable, Sendable {
        package var id: UInt64
        package var peerHost: String
        package var peerPort: Int
        /// Where clients reach it, such as `https://127.0.0.1:24001`.
        package var clientURL: String

        package init(id: UInt64, peerHost: String, peerPort: Int, clientURL: String) {
            self.id = id
            self.peerHost = peerHost
            self.peerPort = peerPort
            self.clientURL = clientURL
        }
    }

    /// The number of slots that zone keys hash to.
    package static let slotCount = 1024

    package var clusterID: String
    /// Grows with every change.
    package var epoch: UInt64
    /// Sorted by id.
    package var nodes: [Node]
    /// The nodes of each shard's replicas, the preferred leader first. Shard `i` is Raft group `i + 1`; group 0 is the directory.
    package var shards: [[UInt64]]
    /// The shard of each slot.
    package var slots: [Int]

    package init(clusterID: String, epoch: UInt64, nodes: [Node], shards: [[UInt64]], slots: [Int]) {
        self.clusterID = clusterID
        self.epoch = epoch
        self.nodes = nodes
        self.shards = shards
        self.slots = slots
    }

    /// The map of a new cluster: slots dealt to shards in turn, the replicas of shard `i` on the nodes from `i` on, so that each
    /// node is the preferred leader of an equal part.
    package init(clusterID: String, nodes: [Node], shardCount: Int, replicasPerShard: Int) {
        precondition(!nodes.isEmpty && shardCount > 0, "\(nodes.count) nodes, \(shardCount) shards")
        let sorted = nodes.sorted { $0.id < $1.id }
        let replicaCount = min(replicasPerShard, sorted.count)
        self.init(
            clusterID: clusterID, epoch: 1, nodes: sorted,
            shards: (0..<shardCount).map { shard in
                (0..<replicaCount).map { sorted[(shard + $0) % sorted.count].id }
            },
            slots: (0..<Self.slotCount).map { $0 % shardCount })
    }

    /// The nodes that vote in the directory: at most five, the first by id.
    package var directoryVoters: [UInt64] { nodes.prefix(5).map(\.id) }
    /// The nodes that follow the directory without a vote.
    package var directoryLearners: [UInt64] { nodes.dropFirst(5).map(\.id) }
}

extension ClusterMap.Node: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, id)
        writer.field(2, peerHost)
        writer.field(3, UInt64(peerPort))
        writer.field(4, clientURL)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(id: 0, peerHost: "", peerPort: 0, clientURL: "")
        while let field = try reader.nextField() {
            switch field {
            case 1: id = try reader.unsigned()
            case 2: peerHost = try reader.string()
            case 3: peerPort = Int(truncatingIfNeeded: try reader.unsigned())
            case 4: clientURL = try reader.string()
            default: try reader.skip()
            }
        }
    }
}

extension ClusterMap: WireCodable {
    package func encode(to writer: inout WireWriter) {
        writer.field(1, clusterID)
        writer.field(2, epoch)
        for node in nodes { writer.field(3) { node.encode(to: &$0) } }
        for replicas in shards {
            writer.field(4) { shard in
                for replica in replicas { shard.field(1, replica) }
            }
        }
        for slot in slots { writer.field(5, UInt64(slot)) }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(clusterID: "", epoch: 0, nodes: [], shards: [], slots: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: clusterID = try reader.string()
            case 2: epoch = try reader.unsigned()
            case 3: nodes.append(try reader.message())
            case 4:
                var shard = try reader.nested()
                var replicas: [UInt64] = []
                while let field = try shard.nextField() {
                    if field == 1 { replicas.append(try shard.unsigned()) } else { try shard.skip() }
                }
                shards.append(replicas)
            case 5: slots.append(Int(truncatingIfNeeded: try reader.unsigned()))
            default: try reader.skip()
            }
        }
        guard slots.count == Self.slotCount, slots.allSatisfy({ shards.indices.contains($0) }) else {
            throw .invalidValue(field: 5)
        }
    }
}
