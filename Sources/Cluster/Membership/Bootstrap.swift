package import Directory
package import PeerTransport
import RaftCore

/// Decides for a node whose data folder belongs to no cluster yet: it founds a cluster with the others, joins one, or
/// waits. Pure.
///
/// **Why no second cluster is founded over a surviving member.** A node founds by a map only when every node of its
/// configuration has just said that it promises the same map, in answer to a question asked after its own promise was
/// durable; and it promises nothing else once it has founded. Were two different maps founded by X and Y, then X's last
/// promise came before Y's answer to it, which came before Y's last promise (of the other map), before X's answer to
/// that, before X's last promise: a circle. So as long as the folder of one founder is left, a node that lost its
/// folder joins it instead.
package struct Bootstrap: Sendable {
    /// This node.
    package var node: UInt64
    /// The number of its data folder.
    package var incarnation: UInt64
    /// The cluster as the configuration has it; incarnations are unknown in it.
    package var configured: ClusterMap
    /// The map that this node last promised to found, durably.
    package var promise: ClusterMap?
    /// The map of a peer that came by itself: there is a cluster.
    package var heard: ClusterMap?

    /// What to do next.
    package enum Step: Hashable, Sendable {
        /// Make this promise durable, then ask everyone again.
        case promise(ClusterMap)
        /// Make it durable that the cluster was founded by this map, and begin with first replicas.
        case found(ClusterMap)
        /// This node has its place in the map: begin with empty replicas of the generations in it.
        case join(ClusterMap)
        /// Have the directory commit that this data folder is the node's, in place of `previous`.
        case claim(previous: UInt64)
        /// Ask again in a while; the words say what for.
        case wait(String)
        /// This node has no business here; the words say why.
        case refuse(String)
    }

    /// Decides by one round of answers.
    /// - Parameter answers: of the peers that answered, each to a question asked after `promise` was durable.
    package func next(_ answers: [NodeID: Standing]) -> Step {
        let nodes = answers.keys.sorted()
        // Members first, the one with the newest map before the others.
        let members = nodes.compactMap { id in answers[id].map { (id: id, standing: $0) } }
            .filter { $0.standing.founding != nil || $0.standing.map != nil }
            .sorted { one, other in
                let (epoch, otherEpoch) = (one.standing.map?.epoch ?? 0, other.standing.map?.epoch ?? 0)
                return epoch == otherEpoch ? one.id < other.id : epoch > otherEpoch
            }
        if let member = members.first { return join(member.standing, of: member.id) }
        if let heard {
            return .wait(
                "waiting for an answer of a node of the cluster: \(heard.nodes.map(\.id).filter { $0 != node })")
        }
        let others = configured.nodes.map(\.id).filter { $0 != node }
        let silent = others.filter { answers[NodeID(rawValue: $0)] == nil }
        guard silent.isEmpty else {
            return .wait(
                "a new cluster is founded when all its nodes are there: waiting for node "
                    + silent.map(String.init).joined(separator: ", "))
        }
        var map = configured
        for index in map.nodes.indices {
            let id = map.nodes[index].id
            map.nodes[index].incarnation =
                id == node ? incarnation : answers[NodeID(rawValue: id)]?.incarnation ?? 0
        }
        for id in nodes {
            guard let other = answers[id]?.promise, !other.isPlacedAs(configured) else { continue }
            return .wait(
                "node \(id) was started with another configuration: nodes \(other.nodes.map(\.id)), \(other.shards.count) shards of "
                    + "\(other.replicasPerShard) replicas, here nodes \(configured.nodes.map(\.id)), \(configured.shards.count) "
                    + "shards of \(configured.replicasPerShard) replicas. Give all nodes the same file")
        }
        guard promise == map else { return .promise(map) }
        let undecided = nodes.filter { answers[$0]?.promise != map }
        return undecided.isEmpty
            ? .found(map)
            : .wait("founding a cluster with node \(undecided.map(\.description).joined(separator: ", "))")
    }

    /// A peer is of a cluster already.
    private func join(_ standing: Standing, of peer: NodeID) -> Step {
        guard let map = standing.map else {
            // Founded a moment ago: the directory has no map yet.
            guard let founding = standing.founding else { return .wait("node \(peer) is starting") }
            return isFounder(by: founding)
                ? .found(founding) : .wait("node \(peer) waits for the other founders of the cluster")
        }
        guard let own = map.node(node) else {
            return map.removed.contains(node)
                ? .refuse(Self.removal(of: node))
                : .wait(
                    "node \(node) is not in the cluster yet: have an administrator run `zonekeeper cluster add \(node) --host ...`"
                )
        }
        // The directory has not heard of another folder, so the first one counts.
        if let founding = standing.founding, isFounder(by: founding), own.incarnation == incarnation,
            map.replicas(of: node).allSatisfy({ $0.generation == 0 })
        {
            return .found(founding)
        }
        return own.incarnation == incarnation ? .join(map) : .claim(previous: own.incarnation)
    }

    private func isFounder(by map: ClusterMap) -> Bool { map.node(node)?.incarnation == incarnation }

    /// What a node that was removed is told.
    package static func removal(of node: UInt64) -> String {
        "node \(node) was removed from the cluster. Its data are not used any more: nothing is lost by deleting its folder. To add "
            + "this machine again, give it another node id and an empty folder, and run `zonekeeper cluster add`"
    }
}

extension ClusterMap {
    /// Everything that a node shall hold, the directory's replica first.
    func replicas(of node: UInt64) -> [Replica] { ([directory] + shards).joined().filter { $0.node == node } }
}
