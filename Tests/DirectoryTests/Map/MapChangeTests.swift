import Directory
import RaftCore
import RecordModel
import Testing
import Wire

extension ClusterMap {
    /// The nodes that shall follow the directory without a vote; those that leave are among them until they are gone.
    var directoryLearners: [UInt64] {
        let voters = directoryVoters
        return directory.map(\.node).filter { !voters.contains($0) }
    }
}

@Suite("Changes of the cluster's map")
struct MapChangeTests {
    private static func node(_ id: UInt64) -> ClusterMap.Node {
        ClusterMap.Node(id: id, peerHost: "h\(id)", peerPort: 100, clientURL: "https://h\(id)")
    }

    private static func map(nodes: Int = 3, shards: Int = 16, replicas: Int = 3) -> ClusterMap {
        ClusterMap(
            clusterID: "c", nodes: (1...UInt64(nodes)).map(node), shardCount: shards, replicasPerShard: replicas)
    }

    /// The code with which a change is refused; nil if it is done.
    private static func refusal(_ change: MapChange, of map: ClusterMap) -> ErrorCode? {
        do throws(ServiceError) {
            _ = try map.changed(by: change)
            return nil
        } catch {
            return error.code
        }
    }

    /// Applies changes that must be done, each of which must do nothing when it comes again.
    private static func apply(_ changes: MapChange..., to map: ClusterMap) throws -> ClusterMap {
        var map = map
        for change in changes {
            map = try map.changed(by: change)
            #expect(try map.changed(by: change) == map, "\(change) is not done twice")
        }
        return map
    }

    /// What must hold of every map.
    private static func check(_ map: ClusterMap, isWireChecked: Bool = true) throws {
        let staying = map.nodes.filter { !$0.isLeaving }.map(\.id)
        #expect(map.nodes.map(\.id) == map.nodes.map(\.id).sorted())
        #expect(map.directory.map(\.node).sorted() == map.nodes.map(\.id))
        for replicas in map.shards {
            #expect(Set(replicas.map(\.node)).count == replicas.count, "two replicas of a shard on one node")
            #expect(replicas.allSatisfy { staying.contains($0.node) }, "\(replicas), staying \(staying)")
            #expect(replicas.count == min(map.replicasPerShard, staying.count))
        }
        for replica in ([map.directory] + map.shards).joined() {
            #expect(replica.generation <= (map.node(replica.node)?.lastGeneration ?? 0))
        }
        #expect(Set(map.removed).isDisjoint(with: map.nodes.map(\.id)))
        if isWireChecked { #expect(try ClusterMap(decoding: map.encoded()) == map) }
    }

    private static func loads(of map: ClusterMap) -> [Int] {
        map.nodes.filter { !$0.isLeaving }.map { node in
            map.shards.count { $0.contains { $0.node == node.id } }
        }
    }

    private static func leads(of map: ClusterMap) -> [Int] {
        map.nodes.filter { !$0.isLeaving }.map { node in map.shards.count { $0[0].node == node.id } }
    }

    @Test("a fourth node takes its part and no more moves than that")
    func addNode() throws {
        let before = Self.map()
        let after = try Self.apply(.addNode(Self.node(4)), to: before)
        try Self.check(after)
        #expect(Self.loads(of: after) == [12, 12, 12, 12])
        #expect(Self.leads(of: after) == [4, 4, 4, 4])
        for (old, new) in zip(before.shards, after.shards) {
            let gone = Set(old).subtracting(new)
            let come = Set(new).subtracting(old)
            #expect(gone.count <= 1 && come.count == gone.count, "\(old) to \(new)")
            #expect(come.allSatisfy { $0.node == 4 && $0.generation > 0 })
        }
        #expect(after.epoch == before.epoch + 1)
        #expect(after.directoryVoters == [1, 2, 3, 4])
    }

    @Test("where there were fewer nodes than replicas, new nodes bring the missing ones")
    func growth() throws {
        var map = Self.map(nodes: 1, shards: 4)
        #expect(map.shards.allSatisfy { $0.count == 1 })
        map = try Self.apply(.addNode(Self.node(2)), .addNode(Self.node(3)), to: map)
        try Self.check(map)
        #expect(map.shards.allSatisfy { $0.count == 3 })
        map = try Self.apply(.addNode(Self.node(4)), to: map)
        try Self.check(map)
        #expect(Self.loads(of: map) == [3, 3, 3, 3])
    }

    @Test("a node is not added under an id or an address that is taken, nor under one that was")
    func refusedAdditions() throws {
        let map = Self.map()
        var elsewhere = Self.node(3)
        elsewhere.peerPort = 101
        #expect(Self.refusal(.addNode(elsewhere), of: map) == .exists)
        var sameAddress = Self.node(2)
        sameAddress.id = 4
        #expect(Self.refusal(.addNode(sameAddress), of: map) == .conflict)
        #expect(Self.refusal(.addNode(Self.node(0)), of: map) == .badRequest)
        #expect(Self.refusal(.addNode(Self.node(70_000)), of: map) == .badRequest)
        let later = try Self.apply(.addNode(Self.node(4)), .removeNode(3), .dropNode(3), to: map)
        #expect(Self.refusal(.addNode(Self.node(3)), of: later) == .conflict)
        #expect(later.removed == [3])
    }

    @Test("a node that leaves gives its replicas and leads away, and stays in the map until it is dropped")
    func removeNode() throws {
        let four = try Self.apply(.addNode(Self.node(4)), to: Self.map())
        let leaving = try Self.apply(.removeNode(2), to: four)
        try Self.check(leaving)
        #expect(leaving.node(2)?.isLeaving == true)
        #expect(leaving.directoryVoters == [1, 3, 4] && leaving.directoryLearners == [2])
        #expect(Self.loads(of: leaving) == [16, 16, 16])
        #expect(Self.leads(of: leaving).allSatisfy { (5...6).contains($0) }, "\(Self.leads(of: leaving))")
        for (old, new) in zip(four.shards, leaving.shards) where !old.contains(where: { $0.node == 2 }) {
            #expect(old == new)
        }
        #expect(Self.refusal(.dropNode(1), of: leaving) == .conflict)
        let gone = try Self.apply(.dropNode(2), to: leaving)
        try Self.check(gone)
        #expect(gone.nodes.map(\.id) == [1, 3, 4] && gone.removed == [2])
        #expect(try gone.changed(by: .removeNode(2)) == gone)
    }

    @Test("a node whose absence would leave fewer nodes than replicas is not removed")
    func tooFew() {
        #expect(Self.refusal(.removeNode(1), of: Self.map()) == .conflict)
        #expect(Self.refusal(.removeNode(1), of: Self.map(nodes: 1)) == .conflict)
        #expect(Self.refusal(.removeNode(1), of: Self.map(nodes: 4)) == nil)
        #expect(Self.refusal(.removeNode(9), of: Self.map()) == .notFound)
    }

    @Test("a node that is replaced hands each replica to the new one, place by place")
    func replaceNode() throws {
        let before = Self.map()
        let after = try Self.apply(.replaceNode(2, with: Self.node(5)), to: before)
        try Self.check(after)
        for (old, new) in zip(before.shards, after.shards) {
            #expect(old.map { $0.node == 2 ? 5 : $0.node } == new.map(\.node))
        }
        #expect(after.directoryVoters == [1, 5, 3])
        let gone = try Self.apply(.dropNode(2), to: after)
        #expect(try gone.changed(by: .replaceNode(2, with: Self.node(5))) == gone)
        #expect(Self.refusal(.replaceNode(2, with: Self.node(6)), of: gone) == .conflict)
        #expect(Self.refusal(.replaceNode(9, with: Self.node(6)), of: gone) == .notFound)
    }

    @Test("a node with a new data folder gets new replicas under a later generation, once")
    func claim() throws {
        var map = Self.map()
        for index in map.nodes.indices { map.nodes[index].incarnation = UInt64(index) + 100 }
        let after = try Self.apply(.claimNode(2, incarnation: 7, previous: 101), to: map)
        try Self.check(after)
        #expect(after.directory.first { $0.node == 2 }?.generation == 1)
        #expect(after.shards.joined().filter { $0.node == 2 }.allSatisfy { $0.generation == 1 })
        #expect(after.shards.joined().filter { $0.node != 2 }.allSatisfy { $0.generation == 0 })
        // Who claims on old knowledge does not undo it.
        #expect(Self.refusal(.claimNode(2, incarnation: 8, previous: 101), of: after) == .conflict)
        let again = try Self.apply(.claimNode(2, incarnation: 8, previous: 7), to: after)
        #expect(again.shards.joined().filter { $0.node == 2 }.allSatisfy { $0.generation == 2 })
    }

    @Test("a node that was added keeps the generations that wait for it")
    func firstClaim() throws {
        let added = try Self.apply(.addNode(Self.node(4)), to: Self.map())
        let claimed = try Self.apply(.claimNode(4, incarnation: 9, previous: 0), to: added)
        #expect(claimed.shards == added.shards && claimed.directory == added.directory)
        #expect(claimed.node(4)?.incarnation == 9)
        // The nodes of a map of the time before incarnations hold replicas of generation 0 already.
        let old = try Self.apply(.claimNode(3, incarnation: 9, previous: 0), to: added)
        #expect(old.directory.first { $0.node == 3 }?.generation == 1)
    }

    @Test("the loss of the only copy of something is not papered over")
    func onlyCopy() throws {
        #expect(Self.refusal(.claimNode(1, incarnation: 7, previous: 0), of: Self.map(nodes: 1)) == .conflict)
        #expect(Self.refusal(.claimNode(1, incarnation: 7, previous: 0), of: Self.map(replicas: 1)) == .conflict)
        let sole = Self.map(replicas: 1)
        #expect(Self.refusal(.renewReplica(shard: 0, sole.shards[0][0]), of: sole) == .conflict)
    }

    @Test("a replica that lost its data gets a later generation; one that is not in the map any more gets nothing")
    func renew() throws {
        let map = Self.map()
        let after = try Self.apply(.renewReplica(shard: 3, map.shards[3][1]), to: map)
        try Self.check(after)
        #expect(after.shards[3].map(\.node) == map.shards[3].map(\.node))
        #expect(after.shards[3].map(\.generation) == [0, 1, 0])
        let directory = try Self.apply(.renewReplica(shard: nil, ClusterMap.Replica(node: 3)), to: after)
        #expect(directory.directory.map(\.generation) == [0, 0, 1])
        #expect(Self.refusal(.renewReplica(shard: 99, map.shards[3][1]), of: map) == .notFound)
    }

    @Test("leads move to nodes that hold a replica")
    func leaders() throws {
        let four = try Self.apply(.addNode(Self.node(4)), to: Self.map())
        let shard = try #require(four.shards.firstIndex { !$0.contains { $0.node == 4 } })
        #expect(Self.refusal(.preferLeader(shard: shard, node: 4), of: four) == .conflict)
        let last = four.shards[shard][2].node
        let moved = try Self.apply(.preferLeader(shard: shard, node: last), to: four)
        #expect(moved.preferredLeader(ofShard: shard) == last)
        #expect(Set(moved.shards[shard]) == Set(four.shards[shard]))
        let directory = try Self.apply(.preferLeader(shard: nil, node: 3), to: four)
        #expect(directory.preferredLeader(ofShard: nil) == 3)
        let emptied = try Self.apply(.moveLeaders(from: 1, to: nil), to: four)
        try Self.check(emptied)
        #expect(!emptied.shards.contains { $0[0].node == 1 } && emptied.directory[0].node != 1)
        #expect(Self.leads(of: emptied).dropFirst().allSatisfy { (4...7).contains($0) })
        let given = try Self.apply(.moveLeaders(from: 1, to: 2), to: Self.map())
        #expect(!given.shards.contains { $0[0].node == 1 })
        #expect(Self.refusal(.moveLeaders(from: 1, to: 9), of: four) == .notFound)
        #expect(Self.refusal(.moveLeaders(from: 1, to: 1), of: four) == .badRequest)
    }

    @Test("a node that moves is reached elsewhere, and nothing else changes")
    func moveNode() throws {
        var moved = Self.node(2)
        (moved.peerHost, moved.clientURL) = ("elsewhere", "https://elsewhere")
        let after = try Self.apply(.moveNode(moved), to: Self.map())
        #expect(after.node(2)?.peerHost == "elsewhere")
        #expect(after.isPlacedAs(Self.map()))
        moved.id = 9
        #expect(Self.refusal(.moveNode(moved), of: after) == .notFound)
    }

    @Test("random changes keep the map sound and give no replica twice", arguments: 1...6)
    func random(seed: UInt64) throws {
        var generator = RandomChanges(seed: seed)
        var map = Self.map(nodes: Int(seed % 5) + 1, shards: Int(seed % 3) * 5 + 1)
        var given: [Int: Set<ClusterMap.Replica>] = [:]
        var doneCount = 0
        for step in 0..<200 {
            let change = generator.change(of: map)
            #expect(try MapChange(decoding: change.encoded()) == change)
            guard let next = try? map.changed(by: change) else { continue }
            try Self.check(next, isWireChecked: step.isMultiple(of: 20))
            #expect(next.epoch == map.epoch + (next == map ? 0 : 1))
            for group in -1..<next.shards.count {
                let shard = group < 0 ? nil : group
                let before = map.replicas(ofShard: shard)
                for replica in next.replicas(ofShard: shard) where !before.contains(replica) {
                    #expect(given[group, default: Set(before)].insert(replica).inserted, "\(change): \(replica) again")
                }
            }
            if next != map { doneCount += 1 }
            map = next
        }
        #expect(doneCount > 30, "only \(doneCount) changes were done")
    }
}

/// Changes of all kinds, most of which can be done.
private struct RandomChanges {
    private var generator: SplitMix64
    private var nextID: UInt64 = 20

    init(seed: UInt64) { generator = SplitMix64(seed: seed) }

    mutating func change(of map: ClusterMap) -> MapChange {
        let node = map.nodes[Int.random(in: map.nodes.indices, using: &generator)]
        let other = map.nodes[Int.random(in: map.nodes.indices, using: &generator)]
        let shard = Int.random(in: -1..<map.shards.count, using: &generator)
        let group = shard < 0 ? nil : shard
        switch Int.random(in: 0..<10, using: &generator) {
        case 0, 1: return .addNode(newNode())
        case 2: return .removeNode(node.id)
        case 3: return .replaceNode(node.id, with: newNode())
        case 4, 5: return .dropNode(map.nodes.first { $0.isLeaving }?.id ?? node.id)
        case 6:
            return .claimNode(
                node.id, incarnation: UInt64.random(in: 1...9, using: &generator), previous: node.incarnation)
        case 7:
            let replicas = map.replicas(ofShard: group)
            return .renewReplica(
                shard: group, replicas[Int.random(in: replicas.indices, using: &generator)])
        case 8: return .preferLeader(shard: group, node: node.id)
        default: return .moveLeaders(from: node.id, to: Bool.random(using: &generator) ? nil : other.id)
        }
    }

    private mutating func newNode() -> ClusterMap.Node {
        nextID += 1
        return ClusterMap.Node(id: nextID, peerHost: "h\(nextID)", peerPort: 1, clientURL: "u\(nextID)")
    }
}
