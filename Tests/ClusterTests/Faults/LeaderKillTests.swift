import Foundation
import RecordModel
import TestSupport
import Testing

extension WaitingClusterSuites {
    @Suite("A leader is killed")
    struct LeaderKillTests {
        private static let kills = Soak.count(2, soak: 100)

        /// Saves a record in the default zone; true if it was acknowledged.
        private func save(_ number: Int, node: Int, in cluster: ProcessCluster) async -> Bool {
            let body =
                #"{"operations": [{"operationType": "forceReplace", "record": {"recordName": "r", "recordType": "Note", "#
                + #""fields": {"number": {"value": \#(number)}}}}]}"#
            let answer = try? await cluster.client.post(cluster.path("records/modify"), body, node: node)
            return answer?.status == 200
                && answer?.json["records"]?.array?.first?["recordChangeTag"]?.string != nil
        }

        /// The group of the user's default zone: the one whose log grows with saves.
        private func group(in cluster: ProcessCluster) async throws -> Int64 {
            func commits() async throws -> [Int64: Int64] {
                let status = try await cluster.client.admin("GET", "status")
                return (status["replicas"]?.array ?? []).reduce(into: [:]) { commits, replica in
                    guard case .integer(let group)? = replica["group"], group > 0,
                        case .integer(let commit)? = replica["commitIndex"]
                    else { return }
                    commits[group] = commit
                }
            }
            let before = try await commits()
            for number in 0..<100 { _ = await save(number, node: 0, in: cluster) }
            let after = try await commits()
            let grown = after.max { $0.value - (before[$0.key] ?? 0) < $1.value - (before[$1.key] ?? 0) }
            return try #require(grown?.key)
        }

        @Test("another one commits before it is back; in a soak, within 1.5 s")
        func firstCommitAgain() async throws {
            let cluster = try await ProcessCluster.prepared()
            let group = try await group(in: cluster)
            var waits: [Duration] = []
            for kill in 0..<Self.kills {
                let leader = try await cluster.client.awaitLeader(of: group)
                let survivors = cluster.ids.filter { $0 != leader }
                let killed = ContinuousClock.now
                cluster.kill(leader)
                var attempt = 0
                while await !save(1_000 + kill, node: survivors[attempt % 2] - 1, in: cluster) {
                    attempt += 1
                    try #require(attempt < 10_000, "no commit without node \(leader)")
                }
                waits.append(ContinuousClock.now - killed)
                try cluster.start(leader)
                try await cluster.awaitReady(leader)
                // Another save, so that who came back has what it needs to vote.
                _ = await save(kill, node: survivors[0] - 1, in: cluster)
            }
            let sorted = waits.sorted()
            func percentile(_ percent: Int) -> Duration { sorted[max(0, (sorted.count * percent + 99) / 100 - 1)] }
            let shown = [50, 90, 99, 100].map { "\($0)%: \(Int(percentile($0) / .milliseconds(1))) ms" }
            print("leader killed \(Self.kills) times, first commit again: \(shown.joined(separator: ", "))")
            if Soak.isOn { #expect(percentile(99) <= .milliseconds(1_500), "\(sorted)") }
        }
    }
}
