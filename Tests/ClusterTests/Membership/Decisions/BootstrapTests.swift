import Directory
import PeerTransport
import RaftCore
import Testing
import Wire

@testable import Cluster

@Suite("Founding a cluster, or joining one")
struct BootstrapTests {
    private static func configured(_ count: UInt64 = 3, shards: Int = 2) -> ClusterMap {
        ClusterMap(
            clusterID: "c",
            nodes: (1...count).map { ClusterMap.Node(id: $0, peerHost: "h\($0)", peerPort: 1, clientURL: "u\($0)") },
            shardCount: shards, replicasPerShard: 3)
    }

    /// The map with these incarnations.
    private static func map(_ incarnations: UInt64..., shards: Int = 2) -> ClusterMap {
        var map = configured(UInt64(incarnations.count), shards: shards)
        for index in incarnations.indices { map.nodes[index].incarnation = incarnations[index] }
        return map
    }

    private static func formation(_ incarnation: UInt64 = 11, promise: ClusterMap? = nil) -> Bootstrap {
        Bootstrap(node: 1, incarnation: incarnation, configured: configured(), promise: promise)
    }

    private static func fresh(_ incarnation: UInt64, promise: ClusterMap? = nil) -> Standing {
        Standing(verdict: .welcome, incarnation: incarnation, promise: promise)
    }

    private static func isWaiting(_ step: Bootstrap.Step, _ words: String = "") -> Bool {
        if case .wait(let reason) = step { words.isEmpty || reason.contains(words) } else { false }
    }

    @Test("a node alone founds at once")
    func alone() {
        var map = Self.configured(1)
        let first = Bootstrap(node: 1, incarnation: 11, configured: map, promise: nil).next([:])
        map.nodes[0].incarnation = 11
        #expect(first == .promise(map))
        #expect(Bootstrap(node: 1, incarnation: 11, configured: map, promise: map).next([:]) == .found(map))
    }

    @Test("where a peer came by that has a map, none other is founded, whoever else is there")
    func heard() {
        let map = Self.map(11, 12, 13)
        var formation = Self.formation(promise: map)
        let answers: [NodeID: Standing] = [2: Self.fresh(12, promise: map), 3: Self.fresh(13, promise: map)]
        #expect(formation.next(answers) == .found(map))
        formation.heard = Self.map(14, 15, 16)
        #expect(Self.isWaiting(formation.next(answers), "answer"))
    }

    @Test("all have to be there, and to promise the same")
    func together() {
        let map = Self.map(11, 12, 13)
        #expect(Self.isWaiting(Self.formation().next([2: Self.fresh(12)]), "node 3"))
        let fresh: [NodeID: Standing] = [2: Self.fresh(12), 3: Self.fresh(13)]
        #expect(Self.formation().next(fresh) == .promise(map))
        #expect(Self.isWaiting(Self.formation(promise: map).next(fresh), "founding"))
        let half: [NodeID: Standing] = [2: Self.fresh(12, promise: map), 3: Self.fresh(13)]
        #expect(Self.isWaiting(Self.formation(promise: map).next(half), "node 3"))
        let all: [NodeID: Standing] = [2: Self.fresh(12, promise: map), 3: Self.fresh(13, promise: map)]
        #expect(Self.formation(promise: map).next(all) == .found(map))
        // Who comes with another folder meanwhile is another founder.
        let changed: [NodeID: Standing] = [2: Self.fresh(22), 3: Self.fresh(13, promise: map)]
        #expect(Self.formation(promise: map).next(changed) == .promise(Self.map(11, 22, 13)))
    }

    @Test("another configuration is said, and nothing is founded")
    func otherConfiguration() {
        let answers: [NodeID: Standing] = [
            2: Self.fresh(12, promise: Self.map(11, 12, 13, shards: 5)), 3: Self.fresh(13),
        ]
        #expect(Self.isWaiting(Self.formation().next(answers), "another configuration"))
    }

    @Test("a founder who was slow founds by the map of one who was not")
    func slowFounder() {
        let map = Self.map(11, 12, 13)
        let founded = Standing(verdict: .welcome, incarnation: 12, founding: map)
        #expect(Self.formation(promise: map).next([2: founded]) == .found(map))
        let installed = Standing(verdict: .welcome, incarnation: 12, founding: map, map: map)
        #expect(Self.formation(promise: map).next([2: installed]) == .found(map))
    }

    @Test("one survivor is enough to keep a majority that lost everything from founding anew")
    func survivor() {
        let map = Self.map(11, 12, 13)
        let survivor = Standing(verdict: .welcome, incarnation: 13, founding: map)
        let answers: [NodeID: Standing] = [2: Self.fresh(22), 3: survivor]
        #expect(Self.isWaiting(Self.formation(21).next(answers)))
        // While the survivor is away nothing happens either.
        #expect(Self.isWaiting(Self.formation(21).next([2: Self.fresh(22)]), "node 3"))
    }

    @Test("a wiped node has its new folder committed, and joins under the generation that it gets")
    func wiped() throws {
        let map = Self.map(11, 12, 13)
        let member = Standing(verdict: .otherFolder, incarnation: 12, founding: map, map: map)
        #expect(Self.formation(21).next([2: member]) == .claim(previous: 11))
        let claimed = try map.changed(by: .claimNode(1, incarnation: 21, previous: 11))
        let later = Standing(verdict: .welcome, incarnation: 12, founding: map, map: claimed)
        #expect(Self.formation(21).next([2: later, 3: member]) == .join(claimed))
    }

    @Test("a new node waits to be added, a removed one is told")
    func strangers() throws {
        let map = Self.map(11, 12, 13)
        var formation = Bootstrap(node: 4, incarnation: 44, configured: Self.configured(4), promise: nil)
        let before = Standing(verdict: .stranger, incarnation: 12, founding: map, map: map)
        #expect(Self.isWaiting(formation.next([2: before]), "cluster add 4"))
        let added = try map.changed(
            by: .addNode(ClusterMap.Node(id: 4, peerHost: "h4", peerPort: 1, clientURL: "u4")))
        let after = Standing(verdict: .welcome, incarnation: 12, founding: map, map: added)
        #expect(formation.next([2: after]) == .claim(previous: 0))
        let gone = try added.changed(by: .removeNode(4)).changed(by: .dropNode(4))
        let last = Standing(verdict: .removed, incarnation: 12, founding: map, map: gone)
        formation.incarnation = 45
        guard case .refuse(let reason) = formation.next([2: last]) else {
            Issue.record("a removed node was not refused")
            return
        }
        #expect(reason.contains("removed"))
    }

    @Test("no two clusters come of one configuration, whoever is wiped and whatever is asked when", arguments: 1...300)
    func random(seed: UInt64) {
        var world = FormationWorld(seed: seed, configured: Self.configured())
        for _ in 0..<400 { world.step() }
        #expect(world.conflict == nil, "seed \(seed): \(world.conflict ?? "")")
        world.settle()
        #expect(world.conflict == nil && world.isFounded, "seed \(seed): \(world.nodes)")
    }

    @Test("standings come back as they were said")
    func wire() throws {
        let map = Self.map(1, 2, 3)
        for standing in [
            Standing(verdict: .duplicate, incarnation: 1, promise: map),
            Standing(
                verdict: .welcome, incarnation: 2, founding: map, map: Self.map(4, 5, 6),
                acknowledged: [
                    Standing.Acknowledged(
                        group: GroupID(3), replica: ReplicaID(4), term: Term(5), index: LogIndex(6))
                ]),
        ] {
            #expect(try Standing(decoding: standing.encoded()) == standing)
        }
        let introduction = Introduction(incarnation: 7, bootCounter: 8)
        #expect(try Introduction(decoding: introduction.encoded()) == introduction)
        let member = Introduction(incarnation: 7, bootCounter: 8, map: map)
        #expect(try Introduction(decoding: member.encoded()) == member)
    }
}

/// Three nodes that form a cluster by single questions and answers in any order, and lose their folders before and
/// after.
private struct FormationWorld {
    struct Folder {
        var incarnation: UInt64
        var promise: ClusterMap?
        var founding: ClusterMap?
        /// Answers of the round that is under way; nil between rounds.
        var round: [NodeID: Standing]?
    }

    var nodes: [Folder]
    let configured: ClusterMap
    var conflict: String?
    private var generator: SplitMix64
    private var nextIncarnation: UInt64 = 100
    private var wipesLeft: Int

    init(seed: UInt64, configured: ClusterMap) {
        generator = SplitMix64(seed: seed)
        self.configured = configured
        nodes = (0..<3).map { Folder(incarnation: UInt64($0) + 1) }
        wipesLeft = Int.random(in: 0...4, using: &generator)
    }

    var isFounded: Bool { nodes.contains { $0.founding != nil } }

    mutating func step() {
        let index = Int.random(in: 0..<3, using: &generator)
        // Once there is a founder, the others may lose theirs, but not all of them.
        let founders = nodes.count { $0.founding != nil }
        let mayLose = founders == 0 || (founders > 1 || nodes[index].founding == nil)
        if wipesLeft > 0, mayLose, Int.random(in: 0..<20, using: &generator) == 0 {
            wipesLeft -= 1
            nextIncarnation += 1
            nodes[index] = Folder(incarnation: nextIncarnation)
            return
        }
        if Int.random(in: 0..<30, using: &generator) == 0 { nodes[index].round = nil }
        advance(index)
    }

    /// One question and its answer, or the decision at the end of a round.
    private mutating func advance(_ index: Int) {
        guard nodes[index].founding == nil else { return }
        var round = nodes[index].round ?? [:]
        let open = (0..<3).filter { $0 != index && round[NodeID(UInt64($0) + 1)] == nil }
        if let other = open.randomElement(using: &generator) {
            let folder = nodes[other]
            round[NodeID(UInt64(other) + 1)] = Standing(
                verdict: .welcome, incarnation: folder.incarnation, promise: folder.promise, founding: folder.founding)
            nodes[index].round = round
            return
        }
        nodes[index].round = nil
        let formation = Bootstrap(
            node: UInt64(index) + 1, incarnation: nodes[index].incarnation, configured: configured,
            promise: nodes[index].promise)
        switch formation.next(round) {
        case .promise(let map): nodes[index].promise = map
        case .found(let map):
            nodes[index].founding = map
            let others = nodes.compactMap(\.founding).filter { $0 != map }
            if !others.isEmpty { conflict = "two maps were founded: \(map.nodes), \(others[0].nodes)" }
            if map.node(UInt64(index) + 1)?.incarnation != nodes[index].incarnation { conflict = "not a founder" }
        case .wait, .join, .claim, .refuse: break
        }
    }

    /// Nothing is lost any more: all go on until they have founded or wait for those who have.
    mutating func settle() {
        wipesLeft = 0
        for _ in 0..<400 { step() }
    }
}

extension NodeID: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: UInt64) { self.init(value) }
}
