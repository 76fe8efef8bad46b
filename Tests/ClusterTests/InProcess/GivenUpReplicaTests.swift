import Directory
import Foundation
import NIOCore
import PeerTransport
import RaftCore
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("A replica that is not wanted any more")
    struct GivenUpReplicaTests {
        /// A node that changes no members by itself.
        private func lone(on disk: any LogDisk = PosixDisk()) async throws -> TestCluster {
            try await TestCluster.started(nodeCount: 1) { settings in
                settings.membershipIntervalMilliseconds = 3_600_000
                settings.log.disk = disk
            }
        }

        @Test("is given up in the end, where the disk first had no room to note that", .timeLimit(.minutes(10)))
        func givenUp() async throws {
            let cluster = try await lone()
            let node = try cluster.node(1)
            // Nothing can be noted in the folder's account where a folder has the name of its draft. The node may be
            // writing one just now.
            let obstacle = cluster.dataPath(1) + "/node.json.new"
            try await awaitTrue("nothing is being noted") {
                (try? FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)) != nil
            }
            let group = GroupID(2)
            await #expect(throws: (any Error).self) { try await node.keeper.release(group, damage: nil) }
            #expect(node.folder.held[group] != nil)
            try FileManager.default.removeItem(atPath: obstacle)
            try await node.keeper.release(group, damage: nil)
            #expect(node.folder.held[group] == nil)
            #expect(node.holdings[group] == nil)
            #expect(!FileManager.default.fileExists(atPath: cluster.dataPath(1) + "/shards/0001.sqlite"))
            await cluster.stop()
        }

        @Test("is gone for good before the folder says that a later one is there", .timeLimit(.minutes(10)))
        func goneForGood() async throws {
            let disk = OrderedDisk()
            let cluster = try await lone(on: disk)
            let node = try cluster.node(1)
            let group = GroupID(2)
            try await node.keeper.release(group, damage: nil)
            disk.steps.withLock { $0 = [] }
            try await node.keeper.open(ReplicaPlan.Place(group: group, generation: 1))
            let steps = disk.steps.withLock { $0 }
            let durable = try #require(steps.firstIndex(of: "shards is durable"), "\(steps)")
            #expect(steps[durable...].contains("node.json is there"))
            #expect(node.folder.held[group] == 1)
            await cluster.stop()
        }

        @Test("keeps no start waiting where the disk has no room to remove it from the log", .timeLimit(.minutes(10)))
        func fullDiskAtStart() async throws {
            let disk = OrderedDisk()
            let cluster = try await lone(on: disk)
            // As where the node was killed right after it had noted that.
            try cluster.node(1).folder.update { $0.giveUp(GroupID(2), at: 0) }
            await cluster.stop()
            disk.isFull.store(true, ordering: .releasing)
            await #expect(throws: RaftLogError.diskFull) { try await cluster.start() }
            await cluster.stop()
        }

        @Test("members change by a map that is known to be the newest, and by no other", .timeLimit(.minutes(10)))
        func outdatedMap() async throws {
            let cluster = try await lone()
            let node = try cluster.node(1)
            let group = GroupID(1)
            _ = try await node.router.submit(.hashState, to: group, by: node.deadline())
            let nodes = (1...2).map { ClusterMap.Node(id: $0, peerHost: "127.0.0.1", peerPort: 1, clientURL: "u\($0)") }
            let other = ClusterMap(clusterID: "c", nodes: nodes, shardCount: node.map.shards.count, replicasPerShard: 2)
            for isCurrent in [false, true] {
                let members = try await node.lane.eventLoop.submit { [lane = node.lane] in
                    let rule = lane.members.isDirectoryCurrent
                    defer { lane.members.isDirectoryCurrent = rule }
                    lane.members.isDirectoryCurrent = { _ in isCurrent }
                    lane.members.hurry()
                    lane.members.reconcile(now: lane.context.now, by: other)
                    return lane.replicas[group]?.raft.configuration.all.map(\.node) ?? []
                }.get()
                #expect(members == (isCurrent ? [NodeID(1), NodeID(2)] : [NodeID(1)]))
            }
            await cluster.stop()
        }
    }
}

/// A disk that writes down when the names of databases become durable, and when the folder has another account. It can
/// be told to have no room for what is written to the log.
private final class OrderedDisk: LogDisk {
    let steps = Mutex<[String]>([])
    let isFull = Atomic(false)

    func write(_ bytes: UnsafeRawBufferPointer, to file: DiskFile, at offset: Int) throws(DiskError) -> Int {
        if isFull.load(ordering: .acquiring), file.path.hasSuffix(".seg") {
            throw DiskError(operation: "pwrite", path: file.path, code: ENOSPC)
        }
        return try file.write(bytes, at: offset)
    }

    func rename(_ path: String, to newPath: String) throws(DiskError) {
        try renameFile(at: path, to: newPath)
        if newPath.hasSuffix("/node.json") { steps.withLock { $0.append("node.json is there") } }
    }

    func syncFolder(_ path: String) throws(DiskError) {
        try fsyncFolder(at: path)
        if path.hasSuffix("/shards") { steps.withLock { $0.append("shards is durable") } }
    }
}
