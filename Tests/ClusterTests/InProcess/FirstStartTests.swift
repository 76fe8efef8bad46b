import Cluster
import Foundation
import Storage
import Testing

extension WaitingClusterSuites {
    @Suite("A folder without its node.json")
    struct FirstStartTests {
        @Test("is closed to other users, also where it was made beforehand and they could look into it")
        func openFolder() async throws {
            let cluster = try await TestCluster(nodeCount: 1)
            let path = cluster.dataPath(1)
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
            try await cluster.start()
            try await cluster.awaitMaps()
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o700)
            await cluster.stop()
        }

        @Test("is gone on with where a first start was cut short, and refused where its raft log holds anything")
        func missingAccount() async throws {
            let cluster = try await TestCluster(nodeCount: 1)
            let path = cluster.dataPath(1)
            for folder in ["", "/shards", "/snapshots"] { try makeFolder(at: path + folder) }
            try RaftLog.open(directory: path + "/log", options: RaftLogOptions()).log.close()
            try await cluster.start()
            try await cluster.awaitMaps()
            _ = try await Commands.submit(Commands.installSchema(), to: cluster.node(1))
            await cluster.stop()

            for file in try listFolder(at: path) where file != "log" {
                try FileManager.default.removeItem(atPath: "\(path)/\(file)")
            }
            let error = await #expect(throws: NodeStartError.self) { try await cluster.start() }
            #expect(error?.description.contains("node.json is missing, but its raft log holds replicas") == true)
            #expect(try listFolder(at: path).contains("log"))
            await cluster.stop()
        }
    }
}
