import Foundation
import RaftCore
import Testing

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("A replica that is not wanted any more")
    struct GivenUpReplicaTests {
        @Test("is given up in the end, where the disk first had no room to note that", .timeLimit(.minutes(1)))
        func givenUp() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1) { $0.membershipIntervalMilliseconds = 3_600_000 }
            let node = try cluster.node(1)
            // Nothing can be noted in the folder's account where a folder has the name of its draft.
            let obstacle = cluster.dataPath(1) + "/node.json.new"
            try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
            let group = GroupID(2)
            await #expect(throws: (any Error).self) { try await node.keeper.release(group, damage: nil) }
            #expect(node.folder.held[group] != nil)
            try FileManager.default.removeItem(atPath: obstacle)
            try await node.keeper.release(group, damage: nil)
            #expect(node.folder.held[group] == nil)
            #expect(node.holdings[group] == nil)
            #expect(!FileManager.default.fileExists(atPath: cluster.dataPath(1) + "/shards/0001.sqlite"))
            try await cluster.shutDown()
        }
    }
}
