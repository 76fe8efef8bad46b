import Directory
import PeerTransport
import RaftCore
import Testing

@testable import Cluster

@Suite("What a node makes of the map")
struct PlanTests {
    private static let map: ClusterMap = {
        var map = ClusterMap(
            clusterID: "c",
            nodes: (1...3).map { ClusterMap.Node(id: $0, peerHost: "h\($0)", peerPort: 1, clientURL: "u\($0)") },
            shardCount: 2, replicasPerShard: 3)
        for index in map.nodes.indices { map.nodes[index].incarnation = UInt64(index) + 101 }
        return map
    }()

    private static func peer(_ incarnation: UInt64, _ boot: UInt64, node: UInt64 = 2) -> PeerIdentity {
        PeerIdentity(node: NodeID(node), incarnation: incarnation, bootCounter: boot)
    }

    @Test("the folder that the map names is welcome, and no other")
    func folders() {
        let known = KnownPeer(incarnation: 102, bootCounter: 5 << 32 | 1)
        typealias Verdict = Standing.Verdict
        #expect(Verdict.of(Self.peer(102, 6 << 32), map: Self.map, known: known) == .welcome)
        #expect(Verdict.of(Self.peer(102, 5 << 32 | 1), map: Self.map, known: known) == .welcome)
        #expect(Verdict.of(Self.peer(102, 5 << 32 | 2), map: Self.map, known: known) == .outdated)
        #expect(Verdict.of(Self.peer(102, 4 << 32), map: Self.map, known: known) == .outdated)
        #expect(Verdict.of(Self.peer(900, 9 << 32), map: Self.map, known: known) == .otherFolder)
        #expect(Verdict.of(Self.peer(1, 1, node: 9), map: Self.map, known: nil) == .stranger)
        var later = Self.map
        later.removed = [9]
        #expect(Verdict.of(Self.peer(1, 1, node: 9), map: later, known: nil) == .removed)
        // A folder that the directory has taken into use counts from its first start.
        later.nodes[1].incarnation = 900
        #expect(Verdict.of(Self.peer(900, 1 << 32), map: later, known: known) == .welcome)
        #expect(Verdict.of(Self.peer(102, 6 << 32), map: later, known: known) == .otherFolder)
    }

    @Test("what was acknowledged and is not there is lost, unless a later leader may have replaced it")
    func lostEntries() {
        let entry = Standing.Acknowledged(
            group: .shard(0), replica: ReplicaID(7), term: Term(5), index: LogIndex(10))
        func isLost(_ id: UInt64, _ term: UInt64, _ durable: UInt64) -> Bool {
            entry.isLost(id: ReplicaID(id), term: Term(term), durable: LogIndex(durable))
        }
        #expect(isLost(7, 5, 9) && isLost(7, 3, 0))
        #expect(!isLost(7, 5, 10) && !isLost(7, 6, 9) && !isLost(8, 5, 9))
    }

    @Test("without a word of the map the first folder that was seen counts")
    func unnamedFolders() {
        let known = KnownPeer(incarnation: 5, bootCounter: 1 << 32)
        #expect(Standing.Verdict.of(Self.peer(5, 2 << 32), map: nil, known: known) == .welcome)
        #expect(Standing.Verdict.of(Self.peer(6, 2 << 32), map: nil, known: known) == .otherFolder)
        #expect(Standing.Verdict.of(Self.peer(6, 2 << 32), map: nil, known: nil) == .welcome)
        #expect(Standing.Verdict.welcome.objection(to: 2) == nil)
        for verdict in [Standing.Verdict.outdated, .otherFolder, .duplicate, .removed, .stranger, .undecided] {
            #expect(verdict.objection(to: 2)?.contains("node 2") == true)
        }
    }

    @Test("a node opens what it lacks, gives up what it should not have, and never opens a replica twice")
    func replicas() throws {
        let all: [GroupID: UInt64] = [.directory: 0, .shard(0): 0, .shard(1): 0]
        #expect(ReplicaPlan(map: Self.map, node: 2, held: all, used: all).isEmpty)
        let fresh = ReplicaPlan(map: Self.map, node: 2, held: [:], used: [:])
        #expect(fresh.open.map(\.group) == [.directory, .shard(0), .shard(1)])
        let lost = ReplicaPlan(map: Self.map, node: 2, held: [.directory: 0, .shard(1): 0], used: all)
        #expect(lost.renew == [ReplicaPlan.Place(group: .shard(0), generation: 0)] && lost.open.isEmpty)
        let renewed = try Self.map.changed(by: .renewReplica(shard: 0, ClusterMap.Replica(node: 2)))
        let later = ReplicaPlan(map: renewed, node: 2, held: [.directory: 0, .shard(1): 0], used: all)
        #expect(later.open == [ReplicaPlan.Place(group: .shard(0), generation: 1)] && later.renew.isEmpty)
        let superseded = ReplicaPlan(map: renewed, node: 2, held: all, used: all)
        #expect(superseded.release == [ReplicaPlan.Place(group: .shard(0), generation: 0)] && superseded.open.isEmpty)
        let elsewhere = ReplicaPlan(map: Self.map, node: 9, held: all, used: all)
        #expect(elsewhere.release.count == 3 && elsewhere.open.isEmpty)
    }

    @Test("addresses are the file's until the map has new ones")
    func addresses() throws {
        var file = Self.map.nodes
        file[1].peerHost = "new2"
        let book = PeerBook(node: 1, configured: file, map: Self.map)
        #expect(book.addresses(by: Self.map).map(\.host) == ["new2", "h3"])
        #expect(book.correction(to: Self.map) == nil)
        var moved = Self.map.nodes[2]
        moved.peerHost = "new3"
        var later = try Self.map.changed(by: .moveNode(moved))
        #expect(book.addresses(by: later).map(\.host) == ["new2", "new3"])
        later = try later.changed(
            by: .addNode(ClusterMap.Node(id: 4, peerHost: "h4", peerPort: 1, clientURL: "u4")))
        #expect(book.addresses(by: later).map(\.node) == [2, 3, 4])
        let other = PeerBook(node: 2, configured: file, map: Self.map)
        #expect(other.correction(to: Self.map)?.peerHost == "new2")
        #expect(PeerBook(node: 1, configured: file, map: nil).addresses(by: nil).map(\.host) == ["new2", "h3"])
    }

    @Test("those that a peer has named are asked, too, until there is a map as new as the peer's")
    func heard() throws {
        let book = PeerBook(node: 1, configured: Self.map.nodes, map: nil)
        let fourth = ClusterMap.Node(id: 4, peerHost: "h4", peerPort: 1, clientURL: "u4")
        let heard = try Self.map.changed(by: .addNode(fourth))
        #expect(book.addresses(by: nil, heard: heard).map(\.host) == ["h2", "h3", "h4"])
        #expect(book.addresses(by: Self.map, heard: heard).map(\.host) == ["h2", "h3", "h4"])
        #expect(book.addresses(by: heard, heard: heard).map(\.host) == ["h2", "h3", "h4"])
        let later = try heard.changed(by: .removeNode(4)).changed(by: .dropNode(4))
        #expect(book.addresses(by: later, heard: heard).map(\.host) == ["h2", "h3"])
        #expect(book.addresses(by: Self.map, heard: Self.map).map(\.host) == ["h2", "h3"])
        // Who moved meanwhile is where the newer map has it.
        var second = Self.map.nodes[1]
        second.peerHost = "new2"
        let moved = try Self.map.changed(by: .moveNode(second))
        let old = PeerBook(node: 1, configured: Self.map.nodes, map: Self.map)
        #expect(old.addresses(by: Self.map, heard: moved).map(\.host) == ["new2", "h3"])
    }

    @Test("a node that was alone by its map dials those of the file that were not removed")
    func onlyNode() {
        var map = ClusterMap(clusterID: "c", nodes: [Self.map.nodes[0]], shardCount: 1, replicasPerShard: 1)
        let book = PeerBook(node: 1, configured: Self.map.nodes, map: map)
        #expect(book.addresses(by: map).map(\.host) == ["h2", "h3"])
        map.removed = [2]
        #expect(book.addresses(by: map).map(\.host) == ["h3"])
        #expect(PeerBook(node: 1, configured: map.nodes, map: map).addresses(by: map).isEmpty)
    }
}

extension ReplicaPlan {
    fileprivate var isEmpty: Bool { open.isEmpty && release.isEmpty && renew.isEmpty }
}
