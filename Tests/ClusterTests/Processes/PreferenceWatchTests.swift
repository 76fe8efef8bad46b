import Foundation
import RecordModel
import Synchronization
import TestSupport
import Testing

extension ClusterSuites {
    @Suite("Preferences that are watched, over HTTPS")
    struct PreferenceWatchTests {
        fileprivate static func path(_ action: String, _ cluster: ProcessCluster) -> String {
            "/kv/1/\(cluster.container)/development/\(action)"
        }

        /// Sets a key, again through another node until it is acknowledged, because nodes are killed and stopped here.
        private func set(_ key: String, node: Int, in cluster: ProcessCluster) async throws {
            let body = #"{"writes": [{"key": "\#(key)", "value": "of \#(key)"}]}"#
            let headers = [("Idempotency-Key", Self.idempotencyKey())]
            var node = node
            try await awaitState("\(key) is acknowledged") {
                defer { node = (node + 1) % cluster.ids.count }
                return try await cluster.client.post(Self.path("set", cluster), body, node: node, headers: headers)
            } until: {
                $0.status == 200
            }
        }

        private static let counter = Atomic<UInt64>(0)

        /// A UUID of version 7.
        private static func idempotencyKey() -> String {
            let time = String(UInt64(Date().timeIntervalSince1970 * 1_000), radix: 16)
            let number = String(counter.add(1, ordering: .relaxed).newValue, radix: 16)
            let hex = String(repeating: "0", count: 12 - time.count) + time + "70008000"
            let digits = Array(hex + String(repeating: "0", count: 12 - number.count) + number)
            return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
        }

        /// Waits until a node has so many watches.
        fileprivate func awaitWatches(_ count: Int, of cluster: ProcessCluster, node: Int) async throws {
            try await awaitState("node \(node + 1) has \(count) watches") {
                try await cluster.client.metric("zonekeeper_watches", node: node)
            } until: {
                $0 == "\(count)"
            }
        }

        fileprivate func token(_ cluster: ProcessCluster) async throws -> String {
            let answer = try await cluster.client.post(Self.path("changes", cluster), "{}", node: 0)
            return try #require(answer.json["syncToken"]?.string, "\(answer)")
        }

        @Test("every change comes once and in order to all who follow, while each node in turn is killed")
        func killed() async throws {
            let cluster = try await ProcessCluster.prepared()
            let token = try await token(cluster)
            let count = 150
            let followers = try (0..<6).map {
                try Follower(cluster, Self.path("watch", cluster), since: token, node: $0)
            }
            let command = try WatchCommand(cluster, ["--since", token, "--count", "\(count)", "--json"])
            let expected = (0..<count).map { "k\($0)" }
            for (number, key) in expected.enumerated() {
                if number % 50 == 25 { cluster.kill(number / 50 + 1) }
                try await set(key, node: number % 3, in: cluster)
                if number % 50 == 40 { try cluster.start(number / 50 + 1) }
            }
            for follower in followers {
                let keys = try await follower.keys(count: count)
                #expect(keys == expected, "follower of node \(follower.node)")
            }
            let lines = try await command.lines()
            let shown = lines.compactMap { $0["change"]?["key"]?.string }
            #expect(shown == expected, "\(command.errors)")
            #expect(lines.last?["syncToken"]?.string != nil)
            for follower in followers { follower.stop() }
            for id in cluster.ids { try await cluster.awaitReady(id) }
        }

        @Test("a node that is told to stop ends its watches with a word, and stops")
        func stopped() async throws {
            let cluster = try await ProcessCluster.prepared()
            let token = try await token(cluster)
            let follower = try Follower(cluster, Self.path("watch", cluster), since: token, node: 0, comesAgain: false)
            try await set("a", node: 1, in: cluster)
            #expect(try await follower.keys(count: 1) == ["a"])
            let after = try #require(follower.token)
            let path = Self.path("watch", cluster)
            let client = cluster.client
            async let poll = client.post(path, #"{"syncToken": "\#(after)", "timeout": 30}"#, node: 0)
            try await awaitWatches(2, of: cluster, node: 0)
            #expect(cluster.processes[1]?.stop() == 0)
            #expect(try await follower.end() == "TRY_AGAIN_LATER")
            let answer = try await poll
            #expect(answer.status == 200 && answer.json["changes"]?.array?.isEmpty == true, "\(answer)")
        }

        @Test("a node without a replica of the store's shard hears of its changes as well")
        func withoutReplica() async throws {
            let cluster = try await ProcessCluster.prepared(nodeCount: 4)
            let client = cluster.client
            let other = try await token(cluster)
            let api = try #require(client.query.split(separator: "&").first)
            // Stores of several users are on several shards, of which each node holds three quarters.
            for user in 0..<6 {
                _ = try await client.admin("POST", "users", #"{"name": "user\#(user)"}"#)
                let session = try await client.admin(
                    "POST", "tokens",
                    #"{"kind": "session", "container": "\#(cluster.container)", "user": "user\#(user)"}"#)
                let query = "\(api)&ckWebAuthToken=\(try #require(session["secret"]?.string))"
                let changes = try await client.post(Self.path("changes", cluster), "{}", node: 0, query: query)
                let token = try #require(changes.json["syncToken"]?.string, "\(changes)")
                let path = Self.path("watch", cluster)
                func body(_ token: String) -> String { #"{"syncToken": "\#(token)", "timeout": 20}"# }
                try await withThrowingTaskGroup(of: (isOther: Bool, answer: TestClient.Answer).self) { tasks in
                    // Nothing changes in this store, so this watch ends by its time, before all that begin after it.
                    tasks.addTask { (true, try await client.post(path, body(other), node: 0)) }
                    try await awaitWatches(1, of: cluster, node: 0)
                    for node in cluster.ids.indices {
                        tasks.addTask { (false, try await client.post(path, body(token), node: node, query: query)) }
                    }
                    for node in cluster.ids.indices {
                        try await awaitWatches(node == 0 ? 2 : 1, of: cluster, node: node)
                    }
                    let written = try await client.post(
                        Self.path("set", cluster), #"{"writes": [{"key": "a", "value": 1}]}"#, node: 0, query: query)
                    #expect(written.status == 200, "\(written)")
                    for _ in cluster.ids {
                        let (isOther, answer) = try #require(try await tasks.next())
                        #expect(!isOther, "a watch did not hear of the change before its time was over")
                        #expect(answer.json["changes"]?.array?.first?["key"] == .string("a"), "\(answer)")
                    }
                    tasks.cancelAll()
                }
                try await awaitWatches(0, of: cluster, node: 0)
            }
        }
    }
}

extension ClusterSuites.Shared {
    @Suite("Watches whose clients go away")
    struct GoneWatchTests {
        @Test("a client that goes away is no watch any more, long before a heartbeat", arguments: [false, true])
        func gone(isHTTP2: Bool) async throws {
            let cluster = try await SharedCluster.tenant()
            let tests = ClusterSuites.PreferenceWatchTests()
            let token = try await tests.token(cluster)
            let followers = try (0..<3).map { _ in
                try Follower(
                    cluster, ClusterSuites.PreferenceWatchTests.path("watch", cluster), since: token, node: 0,
                    comesAgain: false, isHTTP2: isHTTP2)
            }
            try await tests.awaitWatches(3, of: cluster, node: 0)
            followers[0].stop()
            try await tests.awaitWatches(2, of: cluster, node: 0)
            // A heartbeat would find out as well, and the others would have heard it.
            for follower in followers { #expect(follower.heartbeats == 0) }
            for follower in followers { follower.stop() }
            try await tests.awaitWatches(0, of: cluster, node: 0)
        }
    }
}

/// `zonekeeper kv watch` in the background.
private final class WatchCommand {
    private let process: ChildProcess
    private let outputPath: String
    private let errorPath: String

    init(_ cluster: ProcessCluster, _ arguments: [String]) throws {
        outputPath = cluster.folder + "/watch.out"
        errorPath = cluster.folder + "/watch.err"
        for path in [outputPath, errorPath] {
            try #require(FileManager.default.createFile(atPath: path, contents: nil))
        }
        process = try ChildProcess(
            [ServerProcess.binary.path, "kv", "watch"] + arguments, environment: cluster.environment,
            output: FileHandle(forWritingTo: URL(filePath: outputPath)),
            errors: FileHandle(forWritingTo: URL(filePath: errorPath)))
    }

    var errors: String { (try? String(contentsOfFile: errorPath, encoding: .utf8)) ?? "" }

    /// What it printed, once it has ended.
    func lines() async throws -> [JSONValue] {
        try await awaitTrue("the command ends") { !process.isRunning }
        try #require(process.wait() == 0, "\(errors)")
        let text = try String(contentsOfFile: outputPath, encoding: .utf8)
        return text.split(separator: "\n").compactMap { try? JSONParser.parse(Array($0.utf8)) }
    }
}
