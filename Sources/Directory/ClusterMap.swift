/// Who is in the cluster, which nodes shall hold the replicas of each group, and which shard holds which slots.
///
/// It says what shall be; the leader of each group brings its members there. Changed only by commands of the
/// directory's own log (`MapChange`).
package struct ClusterMap: Hashable, Sendable {
    /// One node, as the others and the clients reach it.
    package struct Node: Hashable, Sendable {
        package var id: UInt64
        package var peerHost: String
        package var peerPort: Int
        /// Where clients reach it, such as `https://127.0.0.1:24001`.
        package var clientURL: String
        /// The random number of the data folder that counts; 0 where none was ever named. A folder with another number
        /// has lost what the node voted and acknowledged, or is an old one.
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
    }

    /// A group's replica on a node. The pair is given once within a group: a replica that lost its log comes back under
    /// a later generation, and so does one that was moved away and back.
    package struct Replica: Hashable, Sendable {
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
}

extension ClusterMap {
    /// A node of the cluster; nil where none has the id.
    package func node(_ id: UInt64) -> Node? { nodes.first { $0.id == id } }

    /// The nodes that shall vote in the directory: the first five of those that stay.
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
