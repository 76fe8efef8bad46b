import Directory
import Foundation
import PeerTransport
import RaftCore
import Storage
import TestSupport
import Testing
import Wire

@testable import Cluster

@Suite("What a data folder says of itself")
struct FolderTests {
    private static let configured = ClusterMap(
        clusterID: "c",
        nodes: (1...3).map { ClusterMap.Node(id: $0, peerHost: "h\($0)", peerPort: 1, clientURL: "u\($0)") },
        shardCount: 2, replicasPerShard: 3)

    private static func settings(_ path: String, node: UInt64 = 2, cluster: String = "c") -> NodeSettings {
        NodeSettings(
            nodeID: NodeID(rawValue: node), clusterID: cluster, dataPath: path, nodes: configured.nodes,
            peerListenHost: "127.0.0.1", tls: PeerTLS(authorityPath: "", certificatePath: "", keyPath: ""))
    }

    private static func open(_ path: String) throws -> NodeFolder {
        try NodeFolder(settings(path), configured: configured) { .random(in: 0 ... .max) }
    }

    @Test("a start counts, and the folder stays who it is")
    func starts() async throws {
        try await TemporaryFolder.with { path in
            let first = try Self.open(path).identity
            let second = try Self.open(path).identity
            #expect(first.incarnation == second.incarnation && first.incarnation != 0)
            #expect(first.bootCounter >> 32 == 1 && second.bootCounter >> 32 == 2)
            #expect(throws: NodeStartError.self) {
                try NodeFolder(Self.settings(path, node: 3), configured: Self.configured) { 1 }
            }
            #expect(throws: NodeStartError.self) {
                try NodeFolder(Self.settings(path, cluster: "d"), configured: Self.configured) { 1 }
            }
        }
    }

    @Test("a later start of a peer is known after the node's own next start, and an old copy of the peer is told")
    func peers() async throws {
        try await TemporaryFolder.with { path in
            func judge(_ start: UInt64) throws -> Standing.Verdict {
                let peer = PeerIdentity(node: NodeID(1), incarnation: 7, bootCounter: start << 32)
                return try KnownPeers(folder: path, on: PosixDisk()).judge(peer, by: nil)
            }
            let verdicts = [try judge(1), try judge(3), try judge(2)]
            #expect(verdicts == [.welcome, .welcome, .outdated])
        }
    }

    @Test("messages count only of peers that were met and whose folder counts")
    func messages() async throws {
        try await TemporaryFolder.with { path in
            let peer = NodeID(1)
            let known = try KnownPeers(folder: path, on: PosixDisk())
            var sound = PeerTrust(known: known)
            let start = PeerIdentity(node: peer, incarnation: 7, bootCounter: 2 << 32)
            #expect(sound.judge(start, by: nil) == nil)
            #expect(sound.accepts(peer))
            var old = start
            old.bootCounter = 1 << 32
            #expect(sound.judge(old, by: nil) != nil)
            #expect(!sound.accepts(peer))

            var own = PeerTrust(mayBeOld: true)
            #expect(!own.accepts(peer), "its own folder may be an old copy")
            own.isHeld = false
            #expect(!own.accepts(peer), "it was not met")
            own.met = [peer]
            #expect(own.accepts(peer))
        }
    }

    @Test("what it founded, holds and has given up is there after the next start")
    func replicas() async throws {
        try await TemporaryFolder.with { path in
            let folder = try Self.open(path)
            #expect(folder.held.isEmpty && folder.founding == nil)
            try folder.update { $0.found(by: Self.configured) }
            try folder.update { identity in
                identity.giveUp(.shard(1), at: 5)
                identity.hold(.shard(0), generation: 7)
            }
            let later = try Self.open(path)
            #expect(later.founding == Self.configured)
            #expect(later.held == [.directory: 0, .shard(0): 7])
            #expect(later.used == [.directory: 0, .shard(0): 7, .shard(1): 0])
            #expect(later.identity.gaveUpAt == 5)
        }
    }

    @Test("a folder of the format before generations holds the replicas that the cluster was made with")
    func oldFormat() async throws {
        try await TemporaryFolder.with { path in
            let text =
                #"{"bootCounter": 42949672961, "clusterID": "c", "formatVersion": 3, "incarnation": 5, "nodeID": 2}"#
            try text.write(toFile: path + "/node.json", atomically: true, encoding: .utf8)
            let folder = try Self.open(path)
            #expect(folder.identity.incarnation == 5 && folder.identity.bootCounter >> 32 == 11)
            #expect(folder.held == [.directory: 0, .shard(0): 0, .shard(1): 0])
        }
    }

    @Test("a folder that may not be used is set aside whole, and an end half-way is gone on with")
    func setAside() async throws {
        try await TemporaryFolder.with { path in
            let folder = try Self.open(path)
            #expect(try Quarantine.reason(of: path) == nil)
            try folder.update { $0.found(by: Self.configured) }
            // The log is gone.
            #expect(try Quarantine.reason(of: path)?.contains("log is missing") == true)
            try makeFolder(at: path + "/log")
            try Data([1]).write(to: URL(filePath: path + "/log/identity"))
            #expect(try Quarantine.reason(of: path)?.contains("log is missing") == true, "its segments are gone")
            try Data([1]).write(to: URL(filePath: path + "/log/0000000000000007.seg"))
            try Data([2]).write(to: URL(filePath: path + "/directory.sqlite"))
            try Data([3]).write(to: URL(filePath: path + "/peers.json"))
            #expect(try Quarantine.reason(of: path) == nil)
            try folder.update { $0.discard = NodeIdentity.Discard(reason: "because", folder: "lost-1") }
            #expect(try Quarantine.reason(of: path) == "because")
            // As if the process had ended after the first file.
            try makeFolder(at: path + "/lost-1")
            try renameFile(at: path + "/log", to: path + "/lost-1/log")
            #expect(try Quarantine.run(path, because: "because", on: PosixDisk()) == path + "/lost-1")
            let left = try listFolder(at: path).sorted()
            #expect(left == ["lost-1", "peers.json"])
            #expect(try listFolder(at: path + "/lost-1").sorted() == ["directory.sqlite", "log", "node.json"])
            #expect(try Quarantine.reason(of: path) == nil)
            #expect(try Self.open(path).identity.incarnation != folder.identity.incarnation)
        }
    }

    @Test("data without an account are not taken for a new node's, nor a folder that another process uses")
    func remains() async throws {
        try await TemporaryFolder.with { path in
            try makeFolder(at: path + "/shards")
            try Data([2]).write(to: URL(filePath: path + "/shards/0001.sqlite"))
            #expect(try Quarantine.reason(of: path)?.contains("shards/0001.sqlite") == true)
            try makeFolder(at: path + "/log")
            let lock = try #require(try FolderLock(path: path + "/log/lock"))
            #expect(throws: NodeStartError.self) { try Quarantine.run(path, because: "test", on: PosixDisk()) }
            withExtendedLifetime(lock) {}
        }
    }

    @Test("members and requests about them come back as they were said")
    func wire() throws {
        var members = GroupMembers(
            leader: ReplicaID(7),
            configuration: Configuration(
                voters: [ReplicaID(7), ReplicaID(8)], outgoing: [ReplicaID(9)], learners: [ReplicaID(10)]),
            isCommitted: true, epoch: 5, waitsFor: "x")
        members.lag = [GroupMembers.Lag(replica: ReplicaID(8), missingEntries: 3)]
        #expect(try GroupMembers(decoding: members.encoded()) == members)
        #expect(!members.isWithout(ReplicaID(11)))
        members.configuration = Configuration(voters: [ReplicaID(7)])
        #expect(members.isWithout(ReplicaID(8)) && !members.isWithout(ReplicaID(7)))
        for request in [
            NodeRequest.members(.shard(2)), .condition(.shard(2)),
            .introduce(Introduction(incarnation: 1, bootCounter: 2)),
            .claim(incarnation: 3, previous: 4),
        ] {
            #expect("\(try NodeRequest(decoding: request.encoded()))" == "\(request)")
        }
        #expect(
            NodeRequest.claim(incarnation: 3, previous: 4).isAllowedBeforeMembership
                && !NodeRequest.catchUp.isAllowedBeforeMembership)
    }
}
