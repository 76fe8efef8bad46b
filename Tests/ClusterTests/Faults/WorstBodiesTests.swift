import Foundation
import RecordModel
import Synchronization
import TestSupport
import Testing

extension ClusterSuites {
    @Suite("The largest and dearest requests, to each node in turn")
    struct WorstBodiesTests {
        /// A round sends every body: to every node in a soak, else to one.
        private static let rounds = Soak.count(1, soak: 48)

        /// A request that one tenant sends.
        private struct Body {
            let what: String
            let path: String
            let text: String
            /// The statuses that it may have: it is done, or refused for what it is.
            let statuses: Set<Int>
        }

        private static func records(_ count: Int, _ type: String, name: String, _ fields: (Int) -> String) -> String {
            let operations = (0..<count).map { number in
                #"{"operationType": "forceReplace", "record": {"recordName": "\#(name)-\#(number)", "recordType": "\#(type)", "#
                    + #""fields": {\#(fields(number))}}}"#
            }
            return #"{"operations": [\#(operations.joined(separator: ", "))]}"#
        }

        private static func list(_ value: String, _ count: Int) -> String {
            "[" + Array(repeating: value, count: count).joined(separator: ",") + "]"
        }

        /// - Parameter round: names fields that no other round has.
        private static func bodies(_ cluster: ProcessCluster, round: Int) -> [Body] {
            let modify = cluster.path("records/modify")
            let preferences = "/kv/1/\(cluster.container)/development/set"
            let numbers = list("1", 10_000)
            let words = (0..<2_000).map { "w\(round)x\($0)" }.joined(separator: " ")
            let filters = (0..<31).map {
                #"{"comparator": "LIST_CONTAINS", "fieldName": "numbers", "fieldValue": {"value": \#($0)}}"#
            }
            return [
                Body(
                    what: "a preference of 1,150,000 small numbers", path: preferences,
                    text: #"{"writes": [{"key": "a", "value": \#(list("1", 1_150_000))}]}"#, statuses: [400, 413]),
                Body(
                    what: "preferences of members that take no bytes", path: preferences,
                    text: #"{"writes": ["#
                        + (0..<272).map { #"{"key": "k\#($0)", "value": \#(list(#""""#, 4_000))}"# }
                        .joined(separator: ",") + "]}", statuses: [200, 400, 413]),
                Body(
                    what: "25 records with lists of 10,000 numbers", path: modify,
                    text: records(25, "Note", name: "list") { _ in #""numbers": {"value": \#(numbers)}"# },
                    statuses: [200, 429]),
                Body(
                    what: "200 records with lists of 10,000 numbers", path: modify,
                    text: records(200, "Note", name: "list") { _ in #""numbers": {"value": \#(numbers)}"# },
                    statuses: [400, 413, 429]),
                Body(
                    what: "a schema that grows by 20,000 fields", path: modify,
                    text: records(100, "Grown", name: "grown") { number in
                        (0..<200).map { #""f\#(round)x\#(number)x\#($0)": {"value": 1}"# }.joined(separator: ",")
                    }, statuses: [200, 400, 413, 429]),
                Body(
                    what: "200 texts of 2,000 words that are indexed", path: modify,
                    text: records(200, "Note", name: "text") { _ in #""text": {"value": "\#(words)"}"# },
                    statuses: [200, 413, 429]),
                Body(
                    what: "a query with 31 filters", path: cluster.path("records/query"),
                    text: #"{"query": {"recordType": "Note", "filterBy": [\#(filters.joined(separator: ","))]}}"#,
                    statuses: [200, 400, 429]),
                Body(
                    what: "bytes that are no JSON", path: modify, text: String(repeating: "[", count: 3_900_000),
                    statuses: [400, 413]),
            ]
        }

        /// Another tenant, who saves one record after another by the nodes in turn.
        private final class Tenant: Sendable {
            private let client: TestClient
            private let path: String
            private let saves = Atomic(0)
            /// How often a save was acknowledged.
            var saved: Int { saves.load(ordering: .relaxed) }

            init(_ cluster: ProcessCluster) { (client, path) = (cluster.client, cluster.path("records/modify")) }

            func run() async {
                var number = 0
                while !Task.isCancelled {
                    number += 1
                    let body = records(1, "Note", name: "light") { _ in #""number": {"value": \#(number)}"# }
                    let answer = try? await client.post(path, body, node: number % 3)
                    guard answer?.json["records"]?.array?.first?["recordChangeTag"]?.string != nil else { continue }
                    saves.add(1, ordering: .relaxed)
                }
            }
        }

        @Test(
            "each is done or refused, no node ends, and another tenant's saves go on after each",
            .timeLimit(.minutes(Soak.isOn ? 240 : 10)))
        func worst() async throws {
            let cluster = try ProcessCluster()
            try await cluster.startAll()
            try await cluster.prepare()
            let tenant = Tenant(try await ProcessCluster(sharing: cluster, number: 2))
            var answers: [String: Int] = [:]
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await tenant.run() }
                for round in 0..<Self.rounds {
                    for (place, body) in Self.bodies(cluster, round: round).enumerated() {
                        for node in Soak.isOn ? [0, 1, 2] : [place % 3] {
                            let before = tenant.saved
                            // A loaded machine may answer later than the client waits.
                            let answer = try? await cluster.client.post(body.path, body.text, node: node)
                            let status = answer?.status ?? 503
                            #expect(
                                body.statuses.contains(status) || status == 503,
                                "\(body.what): \(String("\(answer?.json ?? .null)".prefix(500)))")
                            answers["\(body.what): \(status)", default: 0] += 1
                            // More than those that were on their way.
                            try await awaitTrue("another tenant is served after \(body.what)", within: .seconds(30)) {
                                tenant.saved > before + 2
                            }
                        }
                    }
                }
                group.cancelAll()
                try await group.waitForAll()
            }
            for (what, count) in answers.sorted(by: { $0.key < $1.key }) { print("\(what), \(count) times") }
            print("another tenant saved \(tenant.saved) records meanwhile")
            #expect(cluster.stop() == [])
        }
    }
}
