import Foundation
import RecordModel
import TestSupport
import Testing

extension ClusterSuites {
    @Suite("The command, against real nodes")
    struct CommandLineTests {
        @Test("preferences: set, get, list, changes, delete, and each limit")
        func preferences() async throws {
            let cluster = try ProcessCluster()
            try await cluster.startAll()
            try await cluster.prepare()
            let environment = cluster.environment
            func kv(_ arguments: String...) throws -> (status: Int32, output: String, errors: String) {
                try ServerProcess.run(["kv"] + arguments, environment: environment)
            }
            #expect(try kv("set", "theme", "dark").status == 0)
            #expect(try kv("set", "size", "14", "--type", "INT64").status == 0)
            #expect(try kv("get", "theme").output.contains("dark"))
            #expect(try kv("list").output.contains("size"))
            let changes = try kv("changes", "--json")
            #expect(changes.output.contains("syncToken") && changes.output.contains("theme"), "\(changes)")
            #expect(try kv("delete", "theme").status == 0)
            #expect(try !kv("list").output.contains("theme"))
            let long = try kv("set", String(repeating: "é", count: 33), "x")
            #expect(long.status == 1 && long.errors.contains("64"), "\(long)")
            #expect(try kv("set", String(repeating: "é", count: 32), "x").status == 0)
        }

        @Test("a backup of the stopped cluster is restored, with new incarnations")
        func backup() async throws {
            let cluster = try ProcessCluster()
            try await cluster.startAll()
            try await cluster.prepare()
            let create =
                #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "kept"}}]}"#
            let saved = try await cluster.client.post(cluster.path("records/modify"), create, node: 0)
            let tag = try #require(saved.json["records"]?.array?.first?["recordChangeTag"]?.string)
            let target = cluster.folder + "/backup"
            let early = try ServerProcess.run(["backup", "--config", cluster.configPath, "--to", target])
            #expect(early.status == 1, "a running cluster must not be backed up")
            for id in cluster.ids { #expect(cluster.processes[id]?.stop() == 0) }
            let made = try ServerProcess.run(["backup", "--config", cluster.configPath, "--to", target])
            try #require(made.status == 0, "\(made.errors)")
            for id in cluster.ids { try FileManager.default.removeItem(atPath: "\(cluster.folder)/data/node-\(id)") }
            let restored = try ServerProcess.run(["restore", "--config", cluster.configPath, "--from", target])
            try #require(restored.status == 0, "\(restored.errors)")
            try await cluster.startAll()
            let lookup = #"{"records": [{"recordName": "kept"}]}"#
            let found = try await cluster.client.post(cluster.path("records/lookup"), lookup, node: 1)
            let after = try #require(found.json["records"]?.array?.first?["recordChangeTag"]?.string, "\(found)")
            #expect(after != tag)
            let stale =
                #"{"operations": [{"operationType": "update", "record": {"recordType": "Note", "#
                + #""recordName": "kept", "recordChangeTag": "\#(tag)"}}]}"#
            let refused = try await cluster.client.post(cluster.path("records/modify"), stale, node: 2)
            #expect(refused.json["records"]?.array?.first?["serverErrorCode"]?.string == "CONFLICT", "\(refused)")
        }
    }
}
