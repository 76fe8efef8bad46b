import Foundation
import RecordModel
import TestSupport
import Testing

extension ClusterSuites.Shared {
    @Suite("The command, against real nodes")
    struct CommandLineTests {
        @Test("preferences: set, get, list, changes, delete, and each limit")
        func preferences() async throws {
            let cluster = try await SharedCluster.tenant()
            let environment = cluster.environment
            func kv(_ arguments: String...) throws -> FinishedProgram {
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

        @Test("preferences are exported and imported with their types; what would change can be seen before")
        func preferenceFiles() async throws {
            let cluster = try await SharedCluster.tenant()
            func kv(_ arguments: String...) throws -> FinishedProgram {
                try ServerProcess.run(["kv"] + arguments, environment: cluster.environment)
            }
            let json = cluster.folder + "/p.json"
            let plist = cluster.folder + "/p.plist"
            let values = """
                {"values": {"flag": true, "one": 1, "ratio": {"value": 1, "type": "DOUBLE"}, "text": "a <b> & c",
                 "when": {"value": 1700000000000, "type": "TIMESTAMP"}, "bytes": {"value": "AAH/", "type": "BYTES"},
                 "list": {"value": [1, "x", {"value": {"k": false}, "type": "DICTIONARY"}], "type": "ARRAY"}}}
                """
            try values.write(toFile: json, atomically: true, encoding: .utf8)
            #expect(try kv("set", "stays", "here").status == 0)
            let dry = try kv("import", json, "--dry-run")
            #expect(dry.status == 0 && dry.output.contains("7 new, 0 changed, 0 deleted, 0 unchanged"), "\(dry)")
            #expect(try kv("list").output.contains("1 key, "))
            #expect(try kv("import", json).output.contains("imported: 7 new"))
            let first = try kv("export")
            #expect(try kv("export", json).status == 0)
            #expect(try kv("export", plist, "--format", "plist").status == 0)
            #expect(try String(contentsOfFile: plist, encoding: .utf8).contains("<true/>"))
            for file in [json, plist] {
                #expect(try kv("import", file).output.contains("0 new, 0 changed, 0 deleted, 8 unchanged"), "\(file)")
            }
            #expect(try kv("delete", "one", "list").status == 0)
            #expect(try kv("set", "more", "x").status == 0)
            let replaced = try kv("import", plist, "--replace")
            #expect(replaced.output.contains("2 new, 0 changed, 1 deleted, 6 unchanged"), "\(replaced)")
            #expect(try kv("export").output == first.output)
            let usage = try kv("usage")
            #expect(usage.status == 0 && usage.output.contains("1,024"), "\(usage)")
            let token = try kv("changes").output.split(separator: " ").last.map { $0.dropLast() } ?? ""
            let watch = try kv("watch", "--since", String(token), "--timeout", "1")
            #expect(watch.status == 0 && watch.output.contains("token"), "\(watch)")
            #expect(try kv("watch", "--since", "nonsense").status == 1)
        }

        @Test("assets: a file is saved, shown, fetched, and saved in another record without being sent again")
        func assets() async throws {
            let cluster = try await SharedCluster.tenant()
            func run(_ arguments: String...) throws -> FinishedProgram {
                try ServerProcess.run(arguments, environment: cluster.environment)
            }
            let (file, copy) = (cluster.folder + "/photo", cluster.folder + "/photo-copy")
            let bytes = Data((0..<700_001).map { UInt8(truncatingIfNeeded: $0 &* 7) })
            try bytes.write(to: URL(filePath: file))
            let saved = try run("record", "save", "--type", "Note", "--name", "a/b", "photo:ASSET=@\(file)")
            try #require(saved.status == 0, "\(saved)")
            let shown = try run("asset", "stat", "a/b")
            #expect(shown.status == 0 && shown.output.contains("700,001"), "\(shown)")
            let json = try JSONParser.parse(Array(try run("asset", "stat", "a/b", "photo", "--json").output.utf8))
            let value = json["records"]?.array?.first?["fields"]?["photo"]?["value"]
            #expect(value?["size"] == .integer(700_001) && value?["downloadURL"] != nil, "\(json)")
            let got = try run("asset", "get", "a/b", "photo", "--output", copy)
            #expect(got.status == 0 && got.output.contains("700 kB"), "\(got)")
            #expect(try Data(contentsOf: URL(filePath: copy)) == bytes)

            try FileManager.default.removeItem(atPath: file)
            let other = try run(
                "record", "save", "--type", "Note", "--name", "c", "photo:ASSET=record:a/b/photo",
                "photos:ASSET_LIST=record:a/b/photo,@\(copy)")
            try #require(other.status == 0, "\(other)")
            #expect(try run("record", "delete", "a/b").status == 0)
            #expect(try run("asset", "get", "c", "photos", "--number", "2", "--output", file).status == 0)
            #expect(try Data(contentsOf: URL(filePath: file)) == bytes)
            #expect(try run("asset", "get", "c", "photo", "--output", file).status == 0)
            #expect(try Data(contentsOf: URL(filePath: file)) == bytes)

            // What is not there is said, and leaves the file alone.
            for (arguments, words) in [
                (["asset", "get", "none", "photo", "--output", file], "NOT_FOUND"),
                (["asset", "get", "c", "text", "--output", file], "has no asset"),
                (["asset", "get", "c", "photos", "--number", "3", "--output", file], "no asset 3, but 2 in all"),
                (["asset", "stat", "c", "text"], "has no asset"),
                (["record", "save", "--type", "Note", "x:ASSET=record:a/b/photo"], "NOT_FOUND"),
                (["record", "save", "--type", "Note", "x:ASSET=record:c/photos"], "one asset is expected, not 2"),
            ] {
                let failed = try ServerProcess.run(arguments, environment: cluster.environment)
                #expect(failed.status == 1 && failed.errors.contains(words), "\(arguments): \(failed)")
            }
            #expect(try Data(contentsOf: URL(filePath: file)) == bytes)
        }
    }
}

extension RebuildingClusterSuites {
    @Suite("Backups, by the command")
    struct BackupTests {
        private static let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }

        /// Saves a record with a file.
        private func savePhoto(_ cluster: ProcessCluster) async throws {
            let asked = try await cluster.client.post(
                cluster.path("assets/upload"), #"{"tokens": [{"recordType": "Note", "fieldName": "photo"}]}"#, node: 0)
            let target = try #require(
                RebuildingClusterSuites.AssetTests.target(asked.json["tokens"]?.array?.first?["url"]), "\(asked)")
            let uploaded = try await cluster.client.send("POST", target, body: Self.bytes, node: 0)
            let file = try #require(uploaded.json["singleFile"], "\(uploaded)")
            let saved = try await cluster.client.post(
                cluster.path("records/modify"),
                #"{"operations": [{"operationType": "create", "record": {"recordName": "photo", "recordType": "Note", "#
                    + #""fields": {"photo": {"value": \#(String(decoding: file.serialized(), as: UTF8.self))}}}}]}"#,
                node: 0)
            try #require(saved.json["records"]?.array?.first?["recordChangeTag"] != nil, "\(saved)")
        }

        private func downloadPhoto(_ cluster: ProcessCluster, node: Int) async throws -> [UInt8] {
            let read = try await cluster.client.post(
                cluster.path("records/lookup"), #"{"records": [{"recordName": "photo"}]}"#, node: node)
            let url = read.json["records"]?.array?.first?["fields"]?["photo"]?["value"]?["downloadURL"]
            let target = try #require(RebuildingClusterSuites.AssetTests.target(url), "\(read)")
            return try await cluster.client.exchange("GET", target, body: nil, node: node).body
        }

        /// Starts a node that has another encryption key, which must refuse.
        private func startWithWrongKey(_ cluster: ProcessCluster) throws {
            let path = cluster.folder + "/data/certs/encryption.key"
            let key = try String(contentsOfFile: path, encoding: .utf8)
            try String(repeating: "5", count: 64).write(toFile: path, atomically: false, encoding: .utf8)
            try cluster.start(1)
            let process = try #require(cluster.processes[1])
            #expect(process.wait() != 0)
            #expect(process.log.contains("put back the cluster's encryption.key"), "\(process.log.suffix(1_000))")
            try key.write(toFile: path, atomically: false, encoding: .utf8)
        }

        @Test("a backup of the stopped cluster is restored, with new incarnations and files; not under another key")
        func backup() async throws {
            let cluster = try await ProcessCluster.prepared()
            let create =
                #"{"operations": [{"operationType": "create", "record": {"recordType": "Note", "recordName": "kept"}}]}"#
            let saved = try await cluster.client.post(cluster.path("records/modify"), create, node: 0)
            let tag = try #require(saved.json["records"]?.array?.first?["recordChangeTag"]?.string)
            try await savePhoto(cluster)
            let subscription = """
                {"operations": [{"operationType": "create", "subscription": {
                    "subscriptionID": "all", "subscriptionType": "query", "query": {"recordType": "Note"},
                    "firesOn": ["create"]}}]}
                """
            let subscribed = try await cluster.client.post(cluster.path("subscriptions/modify"), subscription, node: 0)
            try #require(subscribed.status == 200, "\(subscribed)")
            let target = cluster.folder + "/backup"
            let early = try ServerProcess.run(["backup", "--config", cluster.configPath, "--to", target])
            #expect(early.status == 1, "a running cluster must not be backed up")
            for id in cluster.ids { #expect(cluster.processes[id]?.stop() == 0) }
            let made = try ServerProcess.run(["backup", "--config", cluster.configPath, "--to", target])
            try #require(made.status == 0, "\(made.errors)")
            for id in cluster.ids { try FileManager.default.removeItem(atPath: "\(cluster.folder)/data/node-\(id)") }
            let restored = try ServerProcess.run(["restore", "--config", cluster.configPath, "--from", target])
            try #require(restored.status == 0, "\(restored.errors)")
            try startWithWrongKey(cluster)
            try await cluster.startAll()
            // Whoever follows notifications from the first moment on is told of all that comes.
            let push = "/push/1/\(cluster.container)/development"
            let begun = try await cluster.client.post("\(push)/changes", "{}", node: 0)
            let token = try #require(begun.json["syncToken"]?.string, "\(begun)")
            let next = create.replacing("kept", with: "next")
            #expect(try await cluster.client.post(cluster.path("records/modify"), next, node: 1).status == 200)
            let told = try await cluster.client.post("\(push)/watch", #"{"syncToken": "\#(token)"}"#, node: 2)
            let names = told.json["notifications"]?.array?.map { $0["payload"]?["ck"]?["qry"]?["rid"]?.string }
            #expect(names == ["next"], "\(told)")
            for node in 0..<3 { #expect(try await downloadPhoto(cluster, node: node) == Self.bytes) }
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

        @Test("a single node's backup by its data folder ends the tokens and change tags of the time that is lost")
        func single() async throws {
            let cluster = try await ProcessCluster.prepared(nodeCount: 1)
            let (data, target) = (cluster.folder + "/data/node-1", cluster.folder + "/backup")
            func run(_ arguments: String...) throws {
                let ended = try ServerProcess.run(arguments)
                try #require(ended.status == 0, "\(ended)")
            }
            func save(_ name: String) async throws -> String {
                let body =
                    #"{"zoneID": {"zoneName": "z"}, "operations": [{"operationType": "create", "record": "#
                    + #"{"recordType": "Note", "recordName": "\#(name)"}}]}"#
                let saved = try await cluster.client.post(cluster.path("records/modify"), body, node: 0)
                return try #require(saved.json["records"]?.array?.first?["recordChangeTag"]?.string, "\(saved)")
            }
            func changes(since token: String?) async throws -> JSONValue {
                let token = token.map { #", "syncToken": "\#($0)""# } ?? ""
                let body = #"{"zones": [{"zoneID": {"zoneName": "z"}\#(token)}]}"#
                let answer = try await cluster.client.post(cluster.path("changes/zone"), body, node: 0)
                return try #require(answer.json["zones"]?.array?.first, "\(answer)")
            }
            let zone = #"{"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "z"}}}]}"#
            _ = try await cluster.client.post(cluster.path("zones/modify"), zone, node: 0)
            _ = try await save("kept")
            #expect(cluster.processes[1]?.stop() == 0)
            try run("backup", "--data", data, "--to", target)
            try await cluster.startAll()
            let tag = try await save("next")
            let token = try #require(try await changes(since: nil)["syncToken"]?.string)
            #expect(cluster.processes[1]?.stop() == 0)
            try FileManager.default.removeItem(atPath: data)
            try run("restore", "--data", data, "--from", target)
            try await cluster.startAll()
            #expect(try await save("next") != tag)
            let expired = try await changes(since: token)
            #expect(expired["serverErrorCode"]?.string == "BAD_REQUEST", "\(expired)")
            let names = try await changes(since: nil)["records"]?.array?.compactMap { $0["recordName"]?.string }
            #expect(names?.sorted() == ["kept", "next"])
        }
    }
}
