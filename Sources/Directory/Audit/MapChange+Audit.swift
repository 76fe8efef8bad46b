extension MapChange {
    /// What the audit log tells of the change.
    package var auditSummary: (action: String, subject: String) {
        switch self {
        case .addNode(let node): ("node.add", "node \(node.id) at \(node.addresses)")
        case .removeNode(let id): ("node.remove", "node \(id)")
        case .replaceNode(let id, let node): ("node.replace", "node \(id) by node \(node.id) at \(node.addresses)")
        case .dropNode(let id): ("node.drop", "node \(id)")
        case .claimNode(let id, _, _): ("node.claim", "node \(id), with a data folder of its own")
        case .renewReplica(let shard, let replica):
            ("replica.renew", "\(Self.text(shard)) on node \(replica.node), generation \(replica.generation)")
        case .preferLeader(let shard, let node): ("leader.move", "\(Self.text(shard)) to node \(node)")
        case .moveLeaders(let from, let to):
            ("leader.move", "all of node \(from) to \(to.map { "node \($0)" } ?? "the others")")
        case .moveNode(let node): ("node.move", "node \(node.id) to \(node.addresses)")
        }
    }

    private static func text(_ shard: Int?) -> String { shard.map { "shard \($0)" } ?? "directory" }
}
