import Directory

/// What holds of each map of the cluster, and of each that follows another.
struct MapRules {
    private var last: ClusterMap?
    /// Replicas that there were at some time, by group.
    private var given: [Int: Set<ClusterMap.Replica>] = [:]
    private var seen: [UInt64: ClusterMap] = [:]

    /// Looks at a map that a node goes by.
    /// - Returns: what is wrong with it; nil if nothing is.
    mutating func judge(_ map: ClusterMap) -> String? {
        if let known = seen[map.epoch] {
            return known == map ? nil : "there are two maps \(map.epoch): \(known) and \(map)"
        }
        seen[map.epoch] = map
        let groups = [map.directory] + map.shards
        defer {
            for (group, replicas) in groups.enumerated() { given[group, default: []].formUnion(replicas) }
            if map.epoch > last?.epoch ?? 0 { last = map }
        }
        let follows = last.flatMap { $0.epoch + 1 == map.epoch ? fault(of: map, after: $0) : nil }
        return (Self.fault(of: map) ?? follows).map {
            "map \(map.epoch) \($0): \(map), after \(last.map { "\($0)" } ?? "none")"
        }
    }

    private static func fault(of map: ClusterMap) -> String? {
        let ids = map.nodes.map(\.id)
        let leaving = Set(map.nodes.filter(\.isLeaving).map(\.id))
        if ids != Set(ids).sorted() { return "has nodes out of order" }
        if map.removed != Set(map.removed).sorted() || map.removed.contains(where: ids.contains) {
            return "has nodes that were removed"
        }
        if map.directory.map(\.node).sorted() != ids { return "has not one replica of the directory on each node" }
        for replicas in map.shards {
            let holders = replicas.map(\.node)
            if Set(holders).count != holders.count || !holders.allSatisfy(ids.contains) {
                return "has a shard's replicas on \(holders)"
            }
            if !leaving.isDisjoint(with: holders) { return "leaves a shard's replica on a node that goes" }
            if holders.count != min(map.replicasPerShard, ids.count - leaving.count) {
                return "has \(holders.count) replicas of a shard"
            }
        }
        for replica in ([map.directory] + map.shards).joined() {
            guard let node = map.node(replica.node), replica.generation <= node.lastGeneration else {
                return "has a replica of a generation that was not given"
            }
        }
        return nil
    }

    private func fault(of map: ClusterMap, after old: ClusterMap) -> String? {
        for (group, replicas) in ([map.directory] + map.shards).enumerated() {
            let before = group == 0 ? old.directory : old.shards[group - 1]
            for replica in replicas where !before.contains(replica) && given[group, default: []].contains(replica) {
                return "gives replica \(replica) of group \(group) once more"
            }
        }
        for node in old.nodes {
            guard let now = map.node(node.id) else {
                if node.isLeaving, map.removed.contains(node.id) { continue }
                return "loses node \(node.id)"
            }
            if now.lastGeneration < node.lastGeneration { return "forgets generations of node \(node.id)" }
            guard now.incarnation != node.incarnation else { continue }
            let kept = zip([old.directory] + old.shards, [map.directory] + map.shards).contains { before, after in
                before.contains {
                    $0.node == node.id && after.contains($0) && ($0.generation == 0 || node.incarnation != 0)
                }
            }
            if kept { return "keeps replicas of node \(node.id), which has another folder" }
        }
        if !old.removed.allSatisfy(map.removed.contains) { return "forgets who was removed" }
        return loadFault(of: map, after: old)
    }

    /// A node that was added holds its part.
    private func loadFault(of map: ClusterMap, after old: ClusterMap) -> String? {
        let leaves = map.nodes.count(where: \.isLeaving) - old.nodes.count(where: \.isLeaving)
        guard leaves == 0, let new = map.nodes.first(where: { old.node($0.id) == nil }) else { return nil }
        let load = map.shards.count { $0.contains { $0.node == new.id } }
        let fair = map.shards.map(\.count).reduce(0, +) / max(1, map.nodes.count { !$0.isLeaving })
        return load < fair ? "gives node \(new.id) \(load) replicas, of \(fair)" : nil
    }
}
