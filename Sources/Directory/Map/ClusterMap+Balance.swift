import RecordModel

// Which replicas move when nodes come and go: as few as lead to an even spread. Ties go to the lowest id and the lowest
// shard, so that everyone comes to the same map.
extension ClusterMap {
    /// The nodes that are not leaving, ascending.
    var staying: [UInt64] { nodes.filter { !$0.isLeaving }.map(\.id) }

    /// How many shards' replicas a node shall hold.
    private func load(of node: UInt64) -> Int { shards.count { $0.contains { $0.node == node } } }

    /// How many shards a node shall lead.
    private func leads(of node: UInt64) -> Int { shards.count { $0.first?.node == node } }

    func leastLeading(of candidates: [UInt64]) -> UInt64? {
        candidates.sorted().min { leads(of: $0) < leads(of: $1) }
    }

    /// A generation that no replica on the node had. Counts as given from here on.
    mutating func nextGeneration(of id: UInt64) throws(ServiceError) -> UInt64 {
        guard let index = nodes.firstIndex(where: { $0.id == id }) else {
            throw ServiceError(.notFound, "no node \(id) in this cluster: there are \(nodes.map(\.id))")
        }
        guard nodes[index].lastGeneration < Self.generationMax else {
            throw ServiceError(
                .conflict,
                "node \(id) was given replicas \(Self.generationMax) times, and there are no more numbers: replace it by a node "
                    + "with another id")
        }
        nodes[index].lastGeneration += 1
        return nodes[index].lastGeneration
    }

    /// Gives a new node its part: missing replicas first, then those of the nodes that have the most, then the lead of
    /// some.
    mutating func spread(onto id: UInt64) throws(ServiceError) {
        let count = min(replicasPerShard, staying.count)
        for shard in shards.indices where shards[shard].count < count {
            let free = staying.filter { node in !shards[shard].contains { $0.node == node } }
            guard let node = free.min(by: { load(of: $0) < load(of: $1) }) else { continue }
            shards[shard].append(Replica(node: node, generation: try nextGeneration(of: node)))
        }
        let fair = shards.map(\.count).reduce(0, +) / max(1, staying.count)
        while load(of: id) < fair, let (shard, place) = placeToGive(to: id) {
            shards[shard][place] = Replica(node: id, generation: try nextGeneration(of: id))
        }
        let fairLeads = shards.count / max(1, staying.count)
        while leads(of: id) < fairLeads, let shard = shardToLead(id) {
            guard let place = shards[shard].firstIndex(where: { $0.node == id }) else { break }
            shards[shard].insert(shards[shard].remove(at: place), at: 0)
        }
    }

    /// The replica that a new node takes over: one of the node that holds the most, that does not lead its shard if
    /// there is one.
    private func placeToGive(to id: UInt64) -> (shard: Int, place: Int)? {
        let own = load(of: id)
        let givers = staying.filter { $0 != id && load(of: $0) > own }.sorted { left, right in
            (load(of: right), left) < (load(of: left), right)
        }
        for giver in givers {
            let places = shards.indices.compactMap { shard -> (shard: Int, place: Int)? in
                guard !shards[shard].contains(where: { $0.node == id }),
                    let place = shards[shard].firstIndex(where: { $0.node == giver })
                else { return nil }
                return (shard, place)
            }
            if let place = places.first(where: { $0.place > 0 }) ?? places.first { return place }
        }
        return nil
    }

    /// A shard of the node that the node which leads the most should no longer lead.
    private func shardToLead(_ id: UInt64) -> Int? {
        let own = leads(of: id)
        let held = shards.indices.filter { shard in
            guard let first = shards[shard].first?.node, first != id else { return false }
            return shards[shard].contains { $0.node == id } && leads(of: first) > own
        }
        return held.max { left, right in
            // The lowest shard among equals.
            (leads(of: shards[left][0].node), right) < (leads(of: shards[right][0].node), left)
        }
    }

    /// Gives the replicas of a node that leaves to those that hold the fewest, and its leads to those that lead the
    /// fewest.
    mutating func moveAway(from id: UInt64) throws(ServiceError) {
        for shard in shards.indices {
            guard let place = shards[shard].firstIndex(where: { $0.node == id }) else { continue }
            shards[shard].remove(at: place)
            let free = staying.filter { node in !shards[shard].contains { $0.node == node } }
            if place == 0, let heir = leastLeading(of: shards[shard].map(\.node)),
                let position = shards[shard].firstIndex(where: { $0.node == heir })
            {
                shards[shard].insert(shards[shard].remove(at: position), at: 0)
            }
            guard let node = free.min(by: { load(of: $0) < load(of: $1) }) else { continue }
            shards[shard].append(Replica(node: node, generation: try nextGeneration(of: node)))
        }
    }
}
