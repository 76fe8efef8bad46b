import Cluster
import Foundation
import GRDB
import PeerTransport
import RaftCore
import Testing

extension RebuildingClusterSuites {
    @Suite("A replica whose database is damaged where SQLite does not see it")
    struct DamagedReplicaTests {
        private func shard(_ cluster: TestCluster, _ node: UInt64) -> String {
            cluster.dataPath(node) + "/shards/0000.sqlite"
        }

        /// The bodies of a replica's records by name; nothing while there is no database.
        private func bodies(_ path: String) -> [Data] {
            var configuration = GRDB.Configuration()
            configuration.readonly = true
            guard FileManager.default.fileExists(atPath: path),
                let queue = try? DatabaseQueue(path: path, configuration: configuration)
            else { return [] }
            defer { try? queue.close() }
            return (try? queue.read { try Data.fetchAll($0, sql: "SELECT body FROM record ORDER BY name") }) ?? []
        }

        /// Waits for the lane's and the appliers' threads, for a minute at most.
        private func awaitTrue(_ condition: () async throws -> Bool) async throws -> Bool {
            let end = ContinuousClock.now + .seconds(60)
            while ContinuousClock.now < end {
                if try await condition() { return true }
                await Task.yield()
            }
            return false
        }

        @Test("it is found by comparing with the others, kept as evidence, and built anew from them, unattended")
        func rebuilt() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                settings.shardCount = 1
                settings.scrubIntervalMilliseconds = 100
            }
            let first = try cluster.node(1)
            _ = try await Commands.submit(Commands.installSchema(), to: first)
            for number in Int64(0)..<60 {
                _ = try await Commands.submit(Commands.save("record-\(number)", number: number), to: first)
            }
            let group = first.map.group(of: Commands.zone)
            let leader = try #require(first.leader(of: group)).rawValue
            let follower: UInt64 = leader == 1 ? 2 : 1
            let right = bodies(shard(cluster, leader))
            #expect(right.count == 60)
            #expect(try await awaitTrue { bodies(shard(cluster, follower)) == right })

            var configuration = GRDB.Configuration()
            configuration.busyMode = .timeout(10)
            let other = try DatabaseQueue(path: shard(cluster, follower), configuration: configuration)
            try await other.write { db in
                try db.execute(
                    sql:
                        "UPDATE record SET body = zeroblob(length(body)) WHERE id = 7"
                )
                #expect(db.changesCount > 0)
            }
            try other.close()
            #expect(bodies(shard(cluster, follower)) != right)

            let evidence = cluster.dataPath(follower) + "/damaged"
            #expect(try await awaitTrue { FileManager.default.fileExists(atPath: evidence) }, "nobody noticed")
            #expect(try await awaitTrue { bodies(shard(cluster, follower)) == right }, "it was not built anew")
            // It takes part again.
            _ = try await Commands.submit(Commands.save("record-7", number: 700), to: first)
            #expect(try await awaitTrue { bodies(shard(cluster, follower)) == bodies(shard(cluster, leader)) })
            #expect(bodies(shard(cluster, follower)) != right)
            await cluster.stop()
        }
    }
}
