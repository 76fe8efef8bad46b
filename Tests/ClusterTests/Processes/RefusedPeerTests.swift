import Foundation
import RecordModel
import TestSupport
import Testing

extension WaitingClusterSuites {
    @Suite("A node that is not who it should be is refused, and the log says so")
    struct RefusedPeerTests {
        @Test("certificates of another authority")
        func otherAuthority() async throws {
            let cluster = try ProcessCluster()
            try await cluster.startAll()
            cluster.kill(3)
            let other = cluster.folder + "/other-certs"
            let made = try ServerProcess.run(
                ["certs", "create", "--directory", other, "--node", "1", "--node", "2", "--node", "3"])
            try #require(made.status == 0, "\(made.errors)")
            // With another key for files it would not start.
            try FileManager.default.removeItem(atPath: other + "/encryption.key")
            try FileManager.default.copyItem(
                atPath: cluster.folder + "/data/certs/encryption.key", toPath: other + "/encryption.key")
            try cluster.start(3, more: ["--certs", other])
            try await cluster.awaitLog(of: 1, "warning", "refused node 3", "not one of this cluster's peer CA")
            // The two go on without it.
            try await cluster.prepare(serving: [1, 2])
            let saved = try await cluster.client.post(
                cluster.path("records/modify"),
                #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "a"}}]}"#,
                node: 0)
            #expect(saved.json["records"]?.array?.first?["recordChangeTag"] != nil, "\(saved)")
        }

        @Test("a node that comes with a new data folder")
        func newFolder() async throws {
            let cluster = try ProcessCluster()
            try await cluster.startAll()
            cluster.kill(3)
            try FileManager.default.removeItem(atPath: cluster.folder + "/data/node-3")
            try cluster.start(3)
            try await cluster.awaitLog(of: 1, "node 3 comes with another data folder", "join anew")
            try await cluster.awaitLog(of: 3, "joins cluster test as node 3")
        }

        @Test("a node whose log was taken away, or whose configuration has other shards, does not start")
        func brokenFolder() async throws {
            let cluster = try ProcessCluster(nodeCount: 1)
            try await cluster.startAll()
            cluster.kill(1)
            let config = try String(contentsOfFile: cluster.configPath, encoding: .utf8)
            try config.replacing(#""shards": 8"#, with: #""shards": 4"#)
                .write(toFile: cluster.configPath, atomically: true, encoding: .utf8)
            let arguments = [
                "serve", "--config", cluster.configPath, "--node", "1", "--admin-token-file",
                cluster.folder + "/admin.token",
            ]
            let shards = try ServerProcess.run(arguments)
            #expect(shards.status == 1 && shards.errors.contains("8 shards"), "\(shards.errors)")
            try config.write(toFile: cluster.configPath, atomically: true, encoding: .utf8)
            try FileManager.default.removeItem(atPath: cluster.folder + "/data/node-1/log")
            let log = try ServerProcess.run(arguments)
            #expect(log.status == 1 && log.errors.contains("log is missing"), "\(log.errors)")
        }
    }
}
