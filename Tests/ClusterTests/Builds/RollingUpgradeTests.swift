import Foundation
import RecordModel
import TestSupport
import Testing

extension RebuildingClusterSuites {
    /// With `ZONEKEEPER_OLDER_BUILD`, the path of an older build's program, that one is upgraded from, where it knows
    /// feature levels; else this build, held back at the level before its own.
    @Suite("A cluster is upgraded node by node, and not downgraded")
    struct RollingUpgradeTests {
        private let cluster: GrowingCluster
        private var base: ProcessCluster { cluster.base }
        /// What this build follows at most, and what the cluster begins with.
        private let top = Int(FeatureLevel.supported.upperBound.rawValue)
        private let bottom: Int
        private let older = ProcessInfo.processInfo.environment["ZONEKEEPER_OLDER_BUILD"]

        init() throws {
            cluster = try GrowingCluster()
            bottom = try older.map { try Self.level(of: $0) } ?? 1
        }

        /// The highest feature level that a program follows, which it says where it is asked for more.
        private static func level(of program: String) throws -> Int {
            let said = try FinishedProgram([program, "serve", "--feature-level-max", "999"]).text
            let levels = try require(said.firstMatch(of: /follows levels \d+ to (\d+)/), said)
            return try require(Int(levels.1), said)
        }

        /// What has the older program not go beyond its level.
        private var limit: [String] { older == nil ? ["--feature-level-max", "\(bottom)"] : [] }

        private func startOld(_ id: Int) throws { try base.start(id, more: limit, program: older) }

        private func stop(_ id: Int) { _ = base.processes.removeValue(forKey: id)?.stop() }

        /// The levels at which a node's replicas are applied.
        private func levels(on id: Int) async throws -> Set<Int> {
            let status = try await base.client.admin("GET", "status", node: id - 1)
            return Set(
                (status["replicas"]?.array ?? []).compactMap {
                    if case .integer(let level)? = $0["featureLevel"] { Int(level) } else { nil }
                })
        }

        private func save(_ name: String, on id: Int) async throws {
            let body =
                #"{"operations": [{"operationType": "create", "record": {"recordName": "\#(name)", "recordType": "Note", "#
                + #""fields": {"number": {"value": 1}}}}]}"#
            try await cluster.await("\(name) is saved") {
                let answer = try await base.client.post(base.path("records/modify"), body, node: id - 1)
                return answer.status == 200
            }
        }

        private func isThere(_ name: String, on id: Int) async throws -> Bool {
            let body = #"{"records": [{"recordName": "\#(name)"}]}"#
            let answer = try await base.client.post(base.path("records/lookup"), body, node: id - 1)
            return answer.status == 200 && answer.json["records"]?.array?.first?["recordChangeTag"] != nil
        }

        /// Has every new record told of twice: by its type, and by a range that it is in.
        private func subscribe() async throws {
            let range =
                #", "filterBy": [{"comparator": "GREATER_THAN", "fieldName": "number", "fieldValue": {"value": 0}}]"#
            for (name, filter) in [("type", ""), ("range", range)] {
                let body =
                    #"{"operations": [{"operationType": "create", "subscription": {"subscriptionID": "\#(name)", "#
                    + #""subscriptionType": "query", "firesOn": ["create"], "query": {"recordType": "Note"\#(filter)}}}]}"#
                try await cluster.await("subscription \(name) is there") {
                    let answer = try await base.client.post(base.path("subscriptions/modify"), body, node: 0)
                    return answer.status == 200 && answer.json["subscriptions"]?.array?.first?["reason"] == nil
                }
            }
        }

        /// What a node's log of notifications says of new records, as often as it says it.
        private func told(by id: Int) async throws -> [String] {
            let log = "/push/1/\(base.container)/development/changes"
            let page = try await base.client.post(log, "{}", node: id - 1)
            return (page.json["notifications"]?.array ?? []).compactMap {
                let query = $0["payload"]?["ck"]?["qry"]
                guard let name = query?["rid"]?.string, let by = query?["sid"]?.string else { return nil }
                return "\(name) by \(by)"
            }.sorted()
        }

        private func contents(of folder: String) throws -> [String: Data] {
            var contents: [String: Data] = [:]
            for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
                contents[name] = FileManager.default.contents(atPath: "\(folder)/\(name)")
            }
            return contents
        }

        @Test(
            "its level rises by itself once all nodes can follow, and then no node goes back", .timeLimit(.minutes(10)))
        func roll() async throws {
            for id in base.ids { try startOld(id) }
            for id in base.ids { try await base.awaitReady(id) }
            _ = try await base.client.admin("PATCH", "limits", base.limits)
            try await base.prepare()
            for id in base.ids {
                try await cluster.await("node \(id) begins at level \(bottom)") { try await levels(on: id) == [bottom] }
            }
            let areTold = bottom >= Int(FeatureLevel.exactNotifications.rawValue)
            if areTold { try await subscribe() }
            for id in base.ids {
                try await save("before-\(id)", on: id)
                // Until the last node has the new build nothing rises.
                for other in base.ids { #expect(try await levels(on: other) == [bottom]) }
                stop(id)
                try base.start(id)
                try await base.awaitReady(id)
                try await save("after-\(id)", on: id)
            }
            for id in base.ids {
                try await cluster.await("node \(id) comes to level \(top)") { try await levels(on: id) == [top] }
            }
            for id in base.ids {
                for other in base.ids {
                    for name in ["before-\(other)", "after-\(other)"] {
                        // Leaders may still go back to their places, and a request between two is told to come again.
                        try await cluster.await("\(name) is there for node \(id)") { try await isThere(name, on: id) }
                    }
                }
            }
            if areTold {
                let wanted = base.ids.flatMap { id in
                    ["before-\(id)", "after-\(id)"].flatMap { ["\($0) by range", "\($0) by type"] }
                }
                for id in base.ids {
                    try await cluster.await("node \(id) tells of each record once") {
                        try await told(by: id) == wanted.sorted()
                    }
                }
            }
            guard bottom < top else { return }
            try await refuseDowngrade()
            try await refuseOldNewcomer()
        }

        /// A node whose data are at the level is not started by a build that cannot follow, and nothing is touched.
        private func refuseDowngrade() async throws {
            stop(1)
            let folder = cluster.folder(of: 1)
            let before = try contents(of: folder)
            let ended = try await cluster.command(
                [
                    "serve", "--config", base.configPath, "--node", "1", "--admin-token-file",
                    base.folder + "/admin.token",
                ] + limit, of: older)
            #expect(ended.status == 1)
            #expect(
                ended.errors.contains("is at feature level \(top), and this build follows levels up to \(bottom)")
                    && ended.errors.contains("start the build that was used before"), "\(ended.errors)")
            #expect(try contents(of: folder) == before)
            try base.start(1)
            try await base.awaitReady(1)
            #expect(try await isThere("before-1", on: 1))
        }

        /// One that comes with an empty folder is refused at the hello, and both sides say why.
        private func refuseOldNewcomer() async throws {
            stop(3)
            try FileManager.default.removeItem(atPath: cluster.folder(of: 3))
            try startOld(3)
            try await base.awaitLog(of: 3, "it is too old for this cluster", "Start a later build there")
            let levels = bottom == 1 ? "1" : "1 to \(bottom)"
            try await base.awaitLog(of: 1, "it is too old for this cluster", "follows feature levels \(levels)")
            stop(3)
            try base.start(3)
            try await base.awaitReady(3)
            #expect(try await isThere("after-3", on: 3))
        }

        /// Uploads a file at a node and saves a record with it.
        private func saveFile(_ name: String, _ bytes: [UInt8], on id: Int) async throws {
            try await cluster.await("the file \(name) is uploaded and saved at node \(id)") {
                let asked = try await base.client.post(
                    base.path("assets/upload"), #"{"tokens": [{"recordType": "Note", "fieldName": "photo"}]}"#,
                    node: id - 1)
                guard let target = RebuildingClusterSuites.AssetTests.target(asked.json["tokens"]?.array?.first?["url"])
                else {
                    return false
                }
                let sent = try await base.client.send("POST", target, body: bytes, node: id - 1)
                guard let file = sent.json["singleFile"] else { return false }
                let saved = try await base.client.post(
                    base.path("records/modify"),
                    #"{"operations": [{"operationType": "forceReplace", "record": {"recordName": "\#(name)", "#
                        + #""recordType": "Note", "fields": {"photo": {"value": "#
                        + String(decoding: file.serialized(), as: UTF8.self) + "}}}}]}", node: id - 1)
                return saved.json["records"]?.array?.first?["recordChangeTag"] != nil
            }
        }

        private func file(_ name: String, at id: Int) async throws -> [UInt8] {
            let read = try await base.client.post(
                base.path("records/lookup"), #"{"records": [{"recordName": "\#(name)"}]}"#, node: id - 1)
            let url = read.json["records"]?.array?.first?["fields"]?["photo"]?["value"]?["downloadURL"]
            let target = try #require(RebuildingClusterSuites.AssetTests.target(url), "\(read)")
            return try await base.client.exchange("GET", target, body: nil, node: id - 1).body
        }

        /// Of three nodes two make a majority, so a file that comes in at the third is offered to the first, whose
        /// older build does not know what that is, and then to the second.
        @Test(
            "a file is taken by nodes of both builds while there are both", .timeLimit(.minutes(10)),
            .enabled(
                if: ProcessInfo.processInfo.environment["ZONEKEEPER_OLDER_BUILD"] != nil, "it takes an older build"))
        func upload() async throws {
            for id in base.ids { try startOld(id) }
            for id in base.ids { try await base.awaitReady(id) }
            _ = try await base.client.admin("PATCH", "limits", base.limits)
            try await base.prepare()
            let bytes = (0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
            for new in [3, 2] {
                stop(new)
                try base.start(new)
                try await base.awaitReady(new)
                for id in base.ids { try await saveFile("\(new)-\(id)", bytes + [UInt8(new), UInt8(id)], on: id) }
            }
            try await cluster.await("node 2 copies a file while it comes in at node 3") {
                try await saveFile("more", bytes, on: 3)
                return try await base.client.metric("zonekeeper_asset_early_pulls_total", node: 1) != "0"
            }
            for new in [3, 2] {
                for id in base.ids {
                    for other in base.ids {
                        let read = try await file("\(new)-\(id)", at: other)
                        #expect(read == bytes + [UInt8(new), UInt8(id)], "file \(new)-\(id) at node \(other)")
                    }
                }
            }
            #expect(base.stop() == [])
        }
    }
}
