import Cluster
import Foundation
import RaftCore
import Testing

extension WaitingClusterSuites {
    @Suite(
        "A replica that cannot be opened",
        .enabled(if: SmallDisk.isPossible, "a disk that can be filled needs the right to mount one"))
    struct UnopenedReplicaTests {
        @Test("is opened once its database's disk has room again, and nobody starts the node", .timeLimit(.minutes(10)))
        func fullDisk() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { $0.shardCount = 1 }
            await cluster.stop([3])
            try FileManager.default.removeItem(atPath: cluster.dataPath(3))

            let disk = try SmallDisk(at: cluster.dataPath(3) + "/shards", megabytes: 1)
            try disk.fill()
            try await cluster.start([3])
            let node = try cluster.node(3)
            // The generation is in the folder's account before its database is made.
            try await yieldUntil { try Self.account(of: 3, in: cluster).contains("\"1\" :") }
            for _ in 0..<100 { #expect(await !Self.isOpen(on: node)) }

            try disk.empty()
            try await yieldUntil { await Self.isOpen(on: node) }
            await cluster.stop()
        }

        /// Whether the shard's replica takes part.
        private static func isOpen(on node: ClusterNode) async -> Bool {
            await node.status().contains { $0.group == GroupID(1) }
        }

        private static func account(of node: UInt64, in cluster: TestCluster) throws -> String {
            String(
                decoding: try Data(contentsOf: URL(filePath: cluster.dataPath(node) + "/node.json")), as: UTF8.self)
        }
    }
}
