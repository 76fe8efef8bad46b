import Foundation
import RecordModel
import Synchronization
import TestSupport
import Testing

extension WaitingClusterSuites {
    @Suite("Three processes over TLS, killed without warning")
    struct KillTests {
        /// What became of the saves of a run.
        private struct Tally: Sendable {
            var acknowledged: [String] = []
            var refused: [String: Int] = [:]
        }

        private final class Shared: Sendable {
            let next = Atomic<Int>(0)
            let tally = Mutex(Tally())
            let isDisturbed = Atomic<Bool>(true)

            /// Waits until so many more saves were acknowledged.
            func awaitSaves(_ count: Int) async throws {
                let before = tally.withLock { $0.acknowledged.count }
                try await awaitState("\(count) more saves were acknowledged") {
                    tally.withLock { $0.acknowledged.count }
                } until: {
                    $0 >= before + count
                }
            }
        }

        private static func create(_ name: String, number: Int) -> String {
            #"{"operations": [{"operationType": "create", "record": {"recordName": "\#(name)", "recordType": "Note", "#
                + #""fields": {"number": {"value": \#(number)}, "text": {"value": "text of \#(name)"}}}}]}"#
        }

        /// Saves records from several tasks at once, each through the next node: so many at least, and as long as
        /// `disturb` runs.
        private func save(
            _ count: Int, over tasks: Int, to cluster: ProcessCluster, disturb: (Shared) async throws -> Void
        ) async throws -> Tally {
            let shared = Shared()
            let client = cluster.client
            let path = cluster.path("records/modify")
            let nodes = cluster.ids.count
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<tasks {
                    group.addTask {
                        while true {
                            let number = shared.next.add(1, ordering: .relaxed).oldValue
                            guard number < count || shared.isDisturbed.load(ordering: .relaxed) else { return }
                            let outcome = await Self.save(
                                "r\(number)", number: number, node: number % nodes, path, client)
                            shared.tally.withLock { tally in
                                switch outcome {
                                case nil: tally.acknowledged.append("r\(number)")
                                case let problem?: tally.refused[problem, default: 0] += 1
                                }
                            }
                        }
                    }
                }
                defer { shared.isDisturbed.store(false, ordering: .relaxed) }
                try await disturb(shared)
                shared.isDisturbed.store(false, ordering: .relaxed)
                try await group.waitForAll()
            }
            return shared.tally.withLock { $0 }
        }

        /// Nil if the save was acknowledged; otherwise why not.
        private static func save(
            _ name: String, number: Int, node: Int, _ path: String, _ client: TestClient
        ) async -> String? {
            do {
                let answer = try await client.post(path, create(name, number: number), node: node)
                guard answer.status == 200, let record = answer.json["records"]?.array?.first else {
                    return answer.json["serverErrorCode"]?.string ?? "HTTP \(answer.status)"
                }
                return record["serverErrorCode"]?.string
            } catch {
                return "connection"
            }
        }

        /// Every acknowledged record is there, as it was sent.
        private func verify(_ names: [String], in cluster: ProcessCluster, node: Int) async throws {
            for start in stride(from: 0, to: names.count, by: 200) {
                let part = names[start..<min(start + 200, names.count)]
                let body = #"{"records": [\#(part.map { #"{"recordName": "\#($0)"}"# }.joined(separator: ","))]}"#
                let answer = try await cluster.client.post(cluster.path("records/lookup"), body, node: node)
                let records = try #require(answer.json["records"]?.array, "\(answer)")
                #expect(records.count == part.count)
                for (record, name) in zip(records, part) {
                    let number = Int64(name.dropFirst()) ?? -1
                    guard record["fields"]?["number"]?["value"] == .integer(number),
                        record["fields"]?["text"]?["value"] == .string("text of \(name)")
                    else { throw TestFailure("\(name) was acknowledged and is \(record)") }
                }
            }
        }

        @Test(
            "2,000 saves while one node after another is killed and restarted: every acknowledged one is there, everywhere"
        )
        func oneAfterAnother() async throws {
            let cluster = try await ProcessCluster.prepared()
            let tally = try await save(2_000, over: 32, to: cluster) { shared in
                for id in cluster.ids {
                    try await shared.awaitSaves(100)
                    cluster.kill(id)
                    try cluster.start(id)
                    try await cluster.awaitReady(id)
                }
            }
            for id in cluster.ids { try await cluster.awaitReady(id) }
            #expect(tally.acknowledged.count > 500, "\(tally.refused)")
            // A new leader lends a small part of the limit until the shares that the last one lent have expired.
            let expected: Set = ["connection", "TRY_AGAIN_LATER", "THROTTLED"]
            #expect(Set(tally.refused.keys).isSubset(of: expected), "\(tally.refused)")
            for node in 0..<3 { try await verify(tally.acknowledged, in: cluster, node: node) }
            try await cluster.client.awaitEqualStates(of: cluster.ids)
        }

        @Test("all nodes killed at once and restarted: nothing acknowledged is missing")
        func allAtOnce() async throws {
            let cluster = try await ProcessCluster.prepared()
            let tally = try await save(600, over: 16, to: cluster) { shared in
                try await shared.awaitSaves(50)
                for id in cluster.ids { cluster.processes[id]?.signalKill() }
                for id in cluster.ids { cluster.kill(id) }
                for id in cluster.ids { try cluster.start(id) }
            }
            for id in cluster.ids { try await cluster.awaitReady(id) }
            #expect(tally.acknowledged.count > 0)
            for node in 0..<3 { try await verify(tally.acknowledged, in: cluster, node: node) }
            try await cluster.client.awaitEqualStates(of: cluster.ids)
        }
    }
}
