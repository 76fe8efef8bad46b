package import RecordModel

extension ClusterMap {
    /// The map after a change; the same one if the change is made already. A function of its arguments: every replica
    /// of the directory comes to the same map.
    /// - Throws: `ServiceError` that says why the change is refused, and what to do instead.
    package func changed(by change: MapChange) throws(ServiceError) -> ClusterMap {
        var map = self
        switch change {
        case .addNode(let node): try map.add(node)
        case .removeNode(let id): try map.remove(id)
        case .replaceNode(let id, let node): try map.replace(id, with: node)
        case .dropNode(let id): try map.drop(id)
        case .claimNode(let id, let incarnation, let previous): try map.claim(id, incarnation, previous: previous)
        case .renewReplica(let shard, let replica): try map.renew(replica, ofShard: shard)
        case .preferLeader(let shard, let node): try map.prefer(node, ofShard: shard)
        case .moveLeaders(let from, let to): try map.moveLeaders(from: from, to: to)
        case .moveNode(let node): try map.move(node)
        }
        if map != self { map.epoch = epoch + 1 }
        return map
    }

    // MARK: Nodes

    private mutating func add(_ node: Node) throws(ServiceError) {
        if let present = self.node(node.id) {
            guard !present.isLeaving else {
                throw ServiceError(
                    .conflict,
                    "node \(node.id) is being removed: wait until it is gone, and give the new node another id")
            }
            guard present.isReached(as: node) else {
                throw ServiceError(
                    .exists,
                    "node \(node.id) is in the cluster already, at \(present.addresses), not at \(node.addresses): give the new "
                        + "node another id")
            }
            return
        }
        try enter(node)
        directory.append(Replica(node: node.id, generation: try nextGeneration(of: node.id)))
        try spread(onto: node.id)
    }

    private mutating func remove(_ id: UInt64) throws(ServiceError) {
        guard let index = nodes.firstIndex(where: { $0.id == id }) else {
            if removed.contains(id) { return }
            throw unknown(id)
        }
        guard !nodes[index].isLeaving else { return }
        nodes[index].isLeaving = true
        let left = staying.count
        let needed = shards.map(\.count).max() ?? 0
        guard left >= max(1, needed) else {
            throw ServiceError(
                .conflict,
                "without node \(id) there would be \(left) nodes for \(needed) replicas of each shard: add a node first, or let "
                    + "a new one take its place with `cluster replace`")
        }
        try moveAway(from: id)
    }

    private mutating func replace(_ id: UInt64, with node: Node) throws(ServiceError) {
        let old = self.node(id)
        guard old != nil || removed.contains(id) else { throw unknown(id) }
        if let present = self.node(node.id), old?.isLeaving ?? true, !present.isLeaving, present.isReached(as: node) {
            return
        }
        guard let index = nodes.firstIndex(where: { $0.id == id }), !nodes[index].isLeaving else {
            throw ServiceError(
                .conflict, "node \(id) has left the cluster, or is about to: add the new node with `cluster add`")
        }
        nodes[index].isLeaving = true
        try enter(node)
        let new = Replica(node: node.id, generation: try nextGeneration(of: node.id))
        directory.insert(new, at: directory.firstIndex { $0.node == id } ?? directory.endIndex)
        for shard in shards.indices {
            guard let place = shards[shard].firstIndex(where: { $0.node == id }) else { continue }
            shards[shard][place] = new
        }
    }

    private mutating func drop(_ id: UInt64) throws(ServiceError) {
        guard let node = node(id) else {
            if removed.contains(id) { return }
            throw unknown(id)
        }
        guard node.isLeaving, !shards.joined().contains(where: { $0.node == id }) else {
            throw ServiceError(.conflict, "node \(id) is not leaving: remove it with `cluster remove \(id)`")
        }
        nodes.removeAll { $0.id == id }
        directory.removeAll { $0.node == id }
        removed = (removed + [id]).sorted()
    }

    private mutating func move(_ node: Node) throws(ServiceError) {
        guard let index = nodes.firstIndex(where: { $0.id == node.id }) else { throw unknown(node.id) }
        guard !nodes[index].isReached(as: node) else { return }
        try checkAddress(of: node)
        nodes[index].peerHost = node.peerHost
        nodes[index].peerPort = node.peerPort
        nodes[index].clientURL = node.clientURL
    }

    /// Takes a node up that has no replicas yet.
    private mutating func enter(_ node: Node) throws(ServiceError) {
        guard node.id > 0, node.id <= UInt64(UInt16.max) else {
            throw ServiceError(.badRequest, "a node's id is a number from 1 to 65535, not \(node.id)")
        }
        guard !removed.contains(node.id) else {
            throw ServiceError(
                .conflict,
                "node \(node.id) was removed from this cluster, and an id is given once: give the new node another one")
        }
        guard self.node(node.id) == nil else {
            throw ServiceError(.exists, "node \(node.id) is in the cluster already: give the new node another id")
        }
        guard nodes.count < Self.nodesMax else {
            throw ServiceError(.conflict, "a cluster has \(Self.nodesMax) nodes at most: remove one first")
        }
        try checkAddress(of: node)
        let new = Node(id: node.id, peerHost: node.peerHost, peerPort: node.peerPort, clientURL: node.clientURL)
        nodes.append(new)
        nodes.sort { $0.id < $1.id }
    }

    private func checkAddress(of node: Node) throws(ServiceError) {
        guard !node.peerHost.isEmpty, (1...65_535).contains(node.peerPort), !node.clientURL.isEmpty else {
            throw ServiceError(
                .badRequest, "node \(node.id) needs a host, a peer port from 1 to 65535, and the URL that clients use")
        }
        let other = nodes.first { other in
            other.id != node.id
                && ((other.peerHost, other.peerPort) == (node.peerHost, node.peerPort)
                    || other.clientURL == node.clientURL)
        }
        guard let other else { return }
        throw ServiceError(
            .conflict, "node \(other.id) is at \(other.addresses) already: node \(node.id) needs addresses of its own")
    }

    // MARK: Replicas

    private mutating func claim(
        _ id: UInt64, _ incarnation: UInt64, previous: UInt64
    ) throws(ServiceError) {
        guard let index = nodes.firstIndex(where: { $0.id == id }) else { throw unknown(id) }
        guard incarnation != 0 else { throw ServiceError(.badRequest, "the incarnation of node \(id) is missing") }
        if nodes[index].incarnation == incarnation { return }
        guard nodes[index].incarnation == previous else {
            throw ServiceError(
                .conflict,
                "another data folder of node \(id) was taken into use meanwhile; look at the map and try again")
        }
        nodes[index].incarnation = incarnation
        let present = ([directory] + shards).joined().filter { $0.node == id }
        // Nothing was ever opened under the generations of a node that never came.
        if previous == 0, !present.contains(where: { $0.generation == 0 }) { return }
        let sole = shards.indices.filter { shards[$0].map(\.node) == [id] }
        guard sole.isEmpty, directory.count > 1 else {
            throw ServiceError(
                .conflict,
                "node \(id) held the only copy of \(sole.isEmpty ? "the directory" : "shards \(sole)"), which is nowhere else: "
                    + "give it its data folder back")
        }
        let generation = try nextGeneration(of: id)
        directory = directory.map { $0.node == id ? Replica(node: id, generation: generation) : $0 }
        shards = shards.map { $0.map { $0.node == id ? Replica(node: id, generation: generation) : $0 } }
    }

    private mutating func renew(_ replica: Replica, ofShard shard: Int?) throws(ServiceError) {
        try checkShard(shard)
        let present = replicas(ofShard: shard)
        // Moved away, or renewed already.
        guard let place = present.firstIndex(of: replica) else { return }
        guard present.count > 1 else {
            throw ServiceError(
                .conflict,
                "node \(replica.node) held the only copy of \(Self.name(ofShard: shard)): give it its data folder back")
        }
        set(
            Replica(node: replica.node, generation: try nextGeneration(of: replica.node)), ofShard: shard, at: place)
    }

    // MARK: Leaders

    private mutating func prefer(_ node: UInt64, ofShard shard: Int?) throws(ServiceError) {
        try checkShard(shard)
        let present = replicas(ofShard: shard)
        guard self.node(node)?.isLeaving != true else {
            throw ServiceError(.conflict, "node \(node) is being removed: it cannot lead \(Self.name(ofShard: shard))")
        }
        guard let place = present.firstIndex(where: { $0.node == node }) else {
            throw ServiceError(
                .conflict,
                "node \(node) has no replica of \(Self.name(ofShard: shard)): nodes \(present.map(\.node)) have one")
        }
        bringForward(place, ofShard: shard)
    }

    private mutating func moveLeaders(from: UInt64, to: UInt64?) throws(ServiceError) {
        for id in [from, to].compactMap(\.self) where node(id) == nil { throw unknown(id) }
        if let to, node(to)?.isLeaving == true {
            throw ServiceError(.conflict, "node \(to) is being removed: it cannot lead anything")
        }
        guard from != to else { throw ServiceError(.badRequest, "node \(from) cannot hand over to itself") }
        let groups = [nil] + shards.indices.map(Int?.some)
        let led = groups.filter { preferredLeader(ofShard: $0) == from }
        let heirs = led.map { heir(ofShard: $0, besides: from, to: to) }
        if let to, !led.isEmpty, heirs.allSatisfy({ $0 == nil }) {
            throw ServiceError(.conflict, "node \(to) has no replica of what node \(from) leads")
        }
        for shard in led {
            guard let node = heir(ofShard: shard, besides: from, to: to),
                let place = replicas(ofShard: shard).firstIndex(where: { $0.node == node })
            else { continue }
            bringForward(place, ofShard: shard)
        }
    }

    private func heir(ofShard shard: Int?, besides: UInt64, to: UInt64?) -> UInt64? {
        let candidates = replicas(ofShard: shard).map(\.node).filter { $0 != besides && node($0)?.isLeaving == false }
        if let to { return candidates.contains(to) ? to : nil }
        return leastLeading(of: candidates)
    }

    // MARK: Parts

    private mutating func bringForward(_ place: Int, ofShard shard: Int?) {
        guard let shard else { return directory.insert(directory.remove(at: place), at: 0) }
        shards[shard].insert(shards[shard].remove(at: place), at: 0)
    }

    private mutating func set(_ replica: Replica, ofShard shard: Int?, at place: Int) {
        if let shard { shards[shard][place] = replica } else { directory[place] = replica }
    }

    private func checkShard(_ shard: Int?) throws(ServiceError) {
        guard let shard, !shards.indices.contains(shard) else { return }
        throw ServiceError(.notFound, "no shard \(shard): there are 0 to \(shards.count - 1)")
    }

    private func unknown(_ id: UInt64) -> ServiceError {
        removed.contains(id)
            ? ServiceError(.conflict, "node \(id) was removed from this cluster")
            : ServiceError(.notFound, "no node \(id) in this cluster: there are \(nodes.map(\.id))")
    }

    private static func name(ofShard shard: Int?) -> String { shard.map { "shard \($0)" } ?? "the directory" }
}

extension ClusterMap.Node {
    func isReached(as other: ClusterMap.Node) -> Bool {
        (peerHost, peerPort, clientURL) == (other.peerHost, other.peerPort, other.clientURL)
    }

    var addresses: String { "\(peerHost):\(peerPort) for nodes and \(clientURL) for clients" }
}

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

    /// Gives a new node its share: missing replicas first, then some of the nodes with the most, then some leads.
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

    /// Gives a leaving node's replicas to the nodes with the fewest, and its leads to those that lead the fewest.
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
