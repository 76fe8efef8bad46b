import Foundation
import RaftCore
import RecordModel
import Synchronization
import TestSupport
import Testing

extension WaitingClusterSuites {
    @Suite("Clients that only follow tokens")
    struct SyncTests {
        @Test(
            "two followers end with exactly the server's records, under writers, zone deletions, kills and small pages",
            .timeLimit(.minutes(Soak.isOn ? 60 : 10)))
        func convergence() async throws {
            let cluster = try await ProcessCluster.prepared()
            let client = cluster.client
            let path = { (action: String) in cluster.path(action) }
            let zones = (0..<4).map { "zone\($0)" }
            for zone in zones { try await Writer.zone("create", zone, path("zones/modify"), client, node: 0) }

            let flags = Flags()
            let paths = Paths(
                modify: path("records/modify"), zones: path("zones/modify"), database: path("changes/database"),
                zone: path("changes/zone"))
            var followers = [
                Follower(paths: paths, pageMax: 7, seed: 1), Follower(paths: paths, pageMax: 200, seed: 2),
            ]
            try await withThrowingTaskGroup(of: Follower?.self) { group in
                for number in 0..<6 {
                    group.addTask {
                        try await Writer.run(number, zones: zones, paths, client, while: flags)
                        return nil
                    }
                }
                for follower in followers {
                    group.addTask {
                        var follower = follower
                        while flags.isWriting { try await follower.catchUp(client) }
                        return follower
                    }
                }
                defer { flags.stop() }
                for round in 0..<Soak.count(3, soak: 60) {
                    let id = cluster.ids[round % 3]
                    cluster.kill(id)
                    try await flags.awaitSaves(20)
                    try cluster.start(id)
                    try await cluster.awaitReady(id)
                    try await flags.awaitSaves(50)
                }
                flags.stop()
                followers = try await group.reduce(into: []) { if let follower = $1 { $0.append(follower) } }
            }
            for id in cluster.ids { try await cluster.awaitReady(id) }

            var truth: [String: [String: Int64]] = [:]
            for zone in zones { truth[zone] = try await Self.everything(in: zone, path("records/query"), client) }
            #expect(truth.values.contains { !$0.isEmpty }, "nothing was written at all")
            for var follower in followers {
                try await follower.catchUp(client)
                #expect(follower.pages > 10, "the follower hardly followed")
                for zone in zones { #expect(follower.records[zone] ?? [:] == truth[zone] ?? [:], "\(zone)") }
                #expect(Set(follower.records.keys) == Set(truth.keys))
            }
        }

        /// What a query finds, which knows nothing of tokens.
        private static func everything(
            in zone: String, _ path: String, _ client: TestClient
        ) async throws -> [String: Int64] {
            var found: [String: Int64] = [:]
            var marker = ""
            repeat {
                let answer = try await client.post(
                    path, #"{"zoneID": {"zoneName": "\#(zone)"}, "query": {"recordType": "Note"}\#(marker)}"#, node: 1)
                for record in try #require(answer.json["records"]?.array, "\(answer)") {
                    found[record["recordName"]?.string ?? ""] = Follower.number(of: record)
                }
                marker = answer.json["continuationMarker"]?.string.map { #", "continuationMarker": "\#($0)""# } ?? ""
            } while !marker.isEmpty
            return found
        }

        private final class Flags: Sendable {
            private let writing = Mutex(true)
            private let saves = Mutex(0)
            var isWriting: Bool { writing.withLock { $0 } }
            func stop() { writing.withLock { $0 = false } }
            func noteSave() { saves.withLock { $0 += 1 } }

            /// Waits until so many more saves were answered.
            func awaitSaves(_ count: Int) async throws {
                let before = saves.withLock { $0 }
                try await awaitState("\(count) more saves") {
                    saves.withLock { $0 }
                } until: {
                    $0 >= before + count
                }
            }
        }

        private struct Paths: Sendable {
            var modify: String
            var zones: String
            var database: String
            var zone: String
        }

        /// Saves and deletes at random, and now and then makes a zone anew. What became of a request does not matter
        /// here: the truth is what the server holds at the end.
        private enum Writer {
            static func run(
                _ number: Int, zones: [String], _ paths: Paths, _ client: TestClient, while flags: Flags
            ) async throws {
                var random = SplitMix64(seed: UInt64(100 + number))
                while flags.isWriting {
                    let zone = zones[Int.random(in: 0..<zones.count, using: &random)]
                    let node = Int.random(in: 0..<3, using: &random)
                    if number == 0, Int.random(in: 0..<40, using: &random) == 0 {
                        _ = try? await Self.zone("delete", zone, paths.zones, client, node: node)
                        try await awaitTrue("\(zone) is made") {
                            try await Self.zone("create", zone, paths.zones, client, node: node)
                        }
                        continue
                    }
                    let operations = (0..<Int.random(in: 1...4, using: &random)).map { offset in
                        let name = "r\(offset)-\(Int.random(in: 0..<30, using: &random))"
                        return Int.random(in: 0..<3, using: &random) == 0
                            ? #"{"operationType": "forceDelete", "record": {"recordName": "\#(name)"}}"#
                            : #"{"operationType": "forceUpdate", "record": {"recordName": "\#(name)", "recordType": "Note", "#
                                + #""fields": {"number": {"value": \#(Int.random(in: 0..<1_000_000, using: &random))}}}}"#
                    }
                    let answer = try? await client.post(
                        paths.modify,
                        #"{"zoneID": {"zoneName": "\#(zone)"}, "operations": [\#(operations.joined(separator: ","))]}"#,
                        node: node)
                    if answer?.status == 200 { flags.noteSave() }
                }
            }

            @discardableResult
            static func zone(
                _ kind: String, _ name: String, _ path: String, _ client: TestClient, node: Int
            ) async throws -> Bool {
                let answer = try await client.post(
                    path,
                    #"{"operations": [{"operationType": "\#(kind)", "zone": {"zoneID": {"zoneName": "\#(name)"}}}]}"#,
                    node: node)
                return answer.status == 200 && answer.json["zones"]?.array?.first?["serverErrorCode"] == nil
            }
        }

        /// A client with a copy of the database, which it keeps by the two change feeds alone.
        private struct Follower: Sendable {
            var paths: Paths
            var pageMax: Int
            var random: SplitMix64
            var records: [String: [String: Int64]] = [:]
            var pages = 0
            private var databaseToken: String?
            private var tokens: [String: String] = [:]

            init(paths: Paths, pageMax: Int, seed: UInt64) {
                self.paths = paths
                self.pageMax = pageMax
                random = SplitMix64(seed: seed)
            }

            static func number(of record: JSONValue) -> Int64 {
                if case .integer(let number)? = record["fields"]?["number"]?["value"] { number } else { -1 }
            }

            /// Follows the database's feed to its end. A request that a dying node does not answer is sent to another.
            mutating func catchUp(_ client: TestClient) async throws {
                var isDone = false
                while !isDone {
                    let limit = Int.random(in: 1...pageMax, using: &random)
                    let token = databaseToken.map { #""syncToken": "\#($0)", "# } ?? ""
                    let page = try await answer(
                        to: #"{\#(token)"resultsLimit": \#(limit)}"#, at: paths.database, client)
                    let zones = try #require(page["zones"]?.array, "\(page)")
                    for zone in zones {
                        let name = try #require(zone["zoneID"]?["zoneName"]?.string)
                        if zone["deleted"] == .bool(true) { forget(name) } else { try await follow(name, client) }
                    }
                    // Only now is what the page told safe.
                    databaseToken = try #require(page["syncToken"]?.string)
                    isDone = page["moreComing"] == .bool(false)
                }
            }

            private mutating func forget(_ zone: String) {
                records[zone] = nil
                tokens[zone] = nil
            }

            private mutating func follow(_ zone: String, _ client: TestClient) async throws {
                var hasMore = true
                while hasMore {
                    let limit = Int.random(in: 1...pageMax, using: &random)
                    let token = tokens[zone].map { #", "syncToken": "\#($0)""# } ?? ""
                    let reply = try await answer(
                        to: #"{"zones": [{"zoneID": {"zoneName": "\#(zone)"}, "resultsLimit": \#(limit)\#(token)}]}"#,
                        at: paths.zone, client)
                    let page = try #require(reply["zones"]?.array?.first, "\(reply)")
                    switch page["serverErrorCode"]?.string {
                    case nil: break
                    case "ZONE_NOT_FOUND": return forget(zone)
                    case "BAD_REQUEST":
                        // Made anew since: what was known of the earlier zone is nothing.
                        try #require(tokens[zone] != nil, "\(page)")
                        forget(zone)
                        continue
                    // The shard's leader was killed.
                    case "TRY_AGAIN_LATER": continue
                    default: throw TestFailure("\(page)")
                    }
                    pages += 1
                    for record in try #require(page["records"]?.array) {
                        let name = try #require(record["recordName"]?.string)
                        records[zone, default: [:]][name] =
                            record["deleted"] == .bool(true) ? nil : Self.number(of: record)
                    }
                    if records[zone] == nil { records[zone] = [:] }
                    tokens[zone] = try #require(page["syncToken"]?.string)
                    hasMore = page["moreComing"] == .bool(true)
                }
            }

            /// Nodes are killed all the while: a request that one cannot answer is sent again, to any of them.
            private mutating func answer(
                to body: String, at path: String, _ client: TestClient
            ) async throws -> JSONValue {
                let answer = try await awaitState("an answer from \(path)") {
                    try await client.post(path, body, node: Int.random(in: 0..<3, using: &random))
                } until: {
                    $0.status != 503
                }
                return answer.json
            }
        }
    }
}
