import Foundation
import RecordModel
import TestSupport
import Testing

extension ClusterSuites {
    @Suite("Webhooks, with nodes that are killed")
    struct WebhookTests {
        private func save(_ name: String, _ cluster: ProcessCluster, node: Int) async throws {
            let body = """
                {"operations": [{"operationType": "forceUpdate", "record": {
                    "recordName": "\(name)", "recordType": "Note", "fields": {}}}]}
                """
            var node = node
            try await awaitState("\(name) is saved") {
                defer { node = (node + 1) % cluster.ids.count }
                let path = cluster.path("records/modify", database: "public")
                return try await cluster.client.post(path, body, node: node).status
            } until: {
                $0 == 200
            }
        }

        @Test("every change is told in order, and what is told twice has the same id, while each node is killed")
        func killed() async throws {
            let cluster = try ProcessCluster()
            cluster.arguments = ["--webhooks-allow-private-addresses", "--webhooks-allow-http"]
            try await cluster.startAll()
            try await cluster.prepare()
            // One in five is refused, so that deliveries wait to be repeated when a node is killed.
            try await ScriptedServer.running { _, earlier in
                ScriptedAnswer(status: earlier % 5 == 3 ? 503 : 200)
            } _: { receiver in
                let made = try await cluster.client.admin(
                    "POST", "webhooks",
                    #"{"container": "\#(cluster.container)", "name": "w", "url": "\#(receiver.url)", "recordTypes": ["Note"]}"#
                )
                let secret = try require(made["secret"]?.string, "\(made)")
                let names = (0..<60).map { "r\($0)" }
                for (number, name) in names.enumerated() {
                    if number % 20 == 5 { cluster.kill(number / 20 + 1) }
                    try await save(name, cluster, node: number % 3)
                    if number % 20 == 15 { try cluster.start(number / 20 + 1) }
                }
                let deliveries = try await awaitState("all is told", within: .seconds(300)) {
                    try receiver.requests.map { try #require(WebhookDelivery($0, secret: secret)) }
                } until: { deliveries in
                    Set(deliveries.flatMap(\.notifications).compactMap(Self.record)).isSuperset(of: names)
                }
                // A save whose answer was lost is sent again, and is a change of its own.
                var (told, numbers): ([String], [Int64]) = ([], [])
                var byID: [String: JSONValue] = [:]
                for delivery in deliveries {
                    if let known = byID[delivery.id] {
                        #expect(known == delivery.json, "a repeat is the same")
                        continue
                    }
                    byID[delivery.id] = delivery.json
                    numbers += delivery.numbers
                    told += delivery.notifications.compactMap(Self.record)
                }
                #expect(numbers == (1...Int64(numbers.count)).map { $0 }, "none is left out, and none comes too early")
                #expect(told.reduce(into: []) { if $0.last != $1 { $0.append($1) } } == names)
            }
            for id in cluster.ids { try await cluster.awaitReady(id) }
        }

        private static func record(_ notification: JSONValue) -> String? {
            notification["payload"]?["ck"]?["qry"]?["rid"]?.string
        }
    }
}
