import Foundation
import RecordModel
import ServiceClient
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
            var isKeyed = false
        }

        private static func records(
            _ count: Int, _ type: String, kind: String = "forceReplace", name: String, _ fields: (Int) -> String
        ) -> String {
            let operations = (0..<count).map { number in
                #"{"operationType": "\#(kind)", "record": {"recordName": "\#(name)-\#(number)", "recordType": "\#(type)", "#
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
                    statuses: [200, 400, 429]),
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
                    what: "200 empty records of a type with 1,000 indexes", path: modify,
                    text: records(200, "Wide", name: "wide\(round)") { _ in "" }, statuses: [400, 429]),
                Body(
                    what: "four large records that change a little, under an idempotency key", path: modify,
                    text: records(4, "Note", kind: "forceUpdate", name: "large") { _ in #""number": {"value": 1}"# },
                    statuses: [200, 429], isKeyed: true),
                Body(
                    what: "bytes that are no JSON", path: modify, text: String(repeating: "[", count: 3_900_000),
                    statuses: [400, 413]),
            ]
        }

        /// Makes what some bodies rely on: a type with 1,000 fields, each of which has an index, and four large records.
        private static func prepare(_ cluster: ProcessCluster) async throws {
            let fields = (0..<1_000).map { #""f\#($0)": {"value": 1}"# }.joined(separator: ",")
            let text = #""plain": {"value": "\#(String(repeating: "x", count: 900_000))"}"#
            let bodies = [
                records(1, "Wide", name: "widest") { _ in fields }, records(4, "Note", name: "large") { _ in text },
            ]
            for body in bodies {
                try await awaitTrue("what the bodies rely on is there") {
                    try await cluster.client.post(cluster.path("records/modify"), body, node: 0).status == 200
                }
            }
        }

        @Test(
            "each is done or refused, no node ends, and another tenant's saves go on after each",
            .timeLimit(.minutes(Soak.isOn ? 240 : 10)))
        func worst() async throws {
            let cluster = try await ProcessCluster.prepared()
            try await Self.prepare(cluster)
            let tenant = Tenant(try await ProcessCluster(sharing: cluster, number: 2))
            var answers: [String: Int] = [:]
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await tenant.run() }
                for round in 0..<Self.rounds {
                    for (place, body) in Self.bodies(cluster, round: round).enumerated() {
                        for node in Soak.isOn ? [0, 1, 2] : [place % 3] {
                            let before = tenant.saved
                            // A loaded machine may answer later than the client waits.
                            let headers = body.isKeyed ? [("Idempotency-Key", IdempotencyKeys.make())] : []
                            let answer = try? await cluster.client.post(
                                body.path, body.text, node: node, headers: headers)
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
            print("another tenant saved \(tenant.saved) records meanwhile, and repeated \(tenant.retried) tries")
            #expect(tenant.complaints == [])
            try await tenant.requireAll()
            #expect(cluster.stop() == [])
        }
    }
}
