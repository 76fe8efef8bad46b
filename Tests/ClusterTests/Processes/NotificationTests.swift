import Foundation
import RecordModel
import TestSupport
import Testing

extension ClusterSuites {
    @Suite("Notifications, over HTTPS")
    struct NotificationTests {
        private static func uuid(_ number: Int) -> String {
            let time = String(UInt64(Date().timeIntervalSince1970 * 1_000), radix: 16)
            let hex = String(repeating: "0", count: 12 - time.count) + time + "70008000"
            let tail = String(number, radix: 16)
            let digits = Array(hex + String(repeating: "0", count: 12 - tail.count) + tail)
            return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
        }

        /// Sends a request, through another node each time, until it is done.
        private func insist(
            _ path: String, _ body: String, node: Int, _ cluster: ProcessCluster, key: String? = nil
        ) async throws -> TestClient.Answer {
            var node = node
            var last: TestClient.Answer?
            try await awaitState("\(path) is answered") {
                defer { node = (node + 1) % cluster.ids.count }
                let headers = key.map { [("Idempotency-Key", $0)] } ?? []
                last = try? await cluster.client.post(path, body, node: node, headers: headers)
                return last?.status
            } until: {
                $0 == 200
            }
            return try #require(last)
        }

        @Test(
            "11. and 12. each change is told once and in order, by pages and by streams, while each node in turn is killed"
        )
        func killed() async throws {
            let cluster = try await ProcessCluster.prepared()
            let zone = #"{"operations": [{"operationType": "create", "zone": {"zoneID": {"zoneName": "z"}}}]}"#
            _ = try await insist(cluster.path("zones/modify"), zone, node: 0, cluster)
            let subscription = """
                {"operations": [{"operationType": "create", "subscription": {
                    "subscriptionID": "all", "subscriptionType": "query", "query": {"recordType": "Note"},
                    "firesOn": ["create", "update", "delete"]}}]}
                """
            _ = try await insist(cluster.path("subscriptions/modify"), subscription, node: 1, cluster)
            let names = (0..<90).map { "r\($0)" }
            let log = "/push/1/\(cluster.container)/development"
            let beginning = try await insist("\(log)/changes", "{}", node: 0, cluster).json["syncToken"]?.string
            let followers = try (0..<3).map {
                try Follower(cluster, "\(log)/watch", since: try #require(beginning), node: $0)
            }
            for (number, name) in names.enumerated() {
                if number % 30 == 10 { cluster.kill(number / 30 + 1) }
                let body = """
                    {"zoneID": {"zoneName": "z"}, "operations": [{"operationType": "forceUpdate", "record": {
                        "recordName": "\(name)", "recordType": "Note", "fields": {}}}]}
                    """
                _ = try await insist(
                    cluster.path("records/modify"), body, node: number % 3, cluster, key: Self.uuid(number))
                if number % 30 == 20 { try cluster.start(number / 30 + 1) }
            }
            var told: [JSONValue] = []
            var token: String?
            try await awaitState("all is told") {
                let since = token.map { #""syncToken": "\#($0)""# } ?? ""
                let page = try await cluster.client.post("\(log)/changes", "{\(since)}", node: told.count % 3)
                guard page.status == 200 else { return told.count }
                told += page.json["notifications"]?.array ?? []
                token = page.json["syncToken"]?.string
                return told.count
            } until: {
                $0 >= names.count
            }
            #expect(told.compactMap { $0["payload"]?["ck"]?["qry"]?["rid"]?.string } == names)
            #expect(told.compactMap { $0["seq"] } == (1...names.count).map { .integer(Int64($0)) })
            for follower in followers {
                #expect(try await follower.keys(count: names.count) == names, "the stream of node \(follower.node)")
                follower.stop()
            }
            for id in cluster.ids { try await cluster.awaitReady(id) }
        }
    }
}
