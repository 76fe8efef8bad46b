import Foundation
import RecordModel
import TestSupport
import Testing

extension RebuildingClusterSuites {
    @Suite("Nodes come and go under load, by the command")
    struct MembersTests {
        @Test("a fourth node is added, leads move, a node is replaced, another removed, and comes back in vain")
        func changes() async throws {
            let cluster = try GrowingCluster(spare: 2)
            try await cluster.begin()
            let load = SteadyLoad(cluster, nodes: [1, 2])
            try cluster.configure(4)
            try cluster.base.start(4)
            try await cluster.base.awaitLog(of: 4, "not in the cluster yet", "cluster add 4")
            let added = try await cluster.command(["cluster", "add", "4"] + cluster.addresses(of: 4))
            #expect(added.status == 0 && added.output.contains("node 4 is in the cluster"), "\(added)")
            #expect(added.errors.contains("9 of 9 groups"), "\(added.errors)")
            try await cluster.awaitReady(4)
            let again = try await cluster.command(["cluster", "add", "4"] + cluster.addresses(of: 4))
            #expect(again.status == 0, "\(again)")
            try await transfer(cluster)
            try await replace(cluster)
            try await remove(cluster)
            let (count, gap) = try await load.finish(cluster, readFrom: [1, 2, 5])
            print("changes of members: \(count) saves meanwhile, longest gap \(gap)")
            try await cluster.client.awaitEqualStates(of: [1, 2, 5])
        }

        private func transfer(_ cluster: GrowingCluster) async throws {
            let moved = try await cluster.command(["cluster", "transfer", "--all-from", "3"])
            #expect(moved.status == 0 && moved.errors.contains("9 of 9 groups"), "\(moved)")
            let leaders = (try await cluster.overview()["groups"]?.array ?? []).map { $0["leader"] }
            #expect(!leaders.contains(.integer(3)), "\(leaders)")
            let refused = try await cluster.command(["cluster", "transfer", "99", "--to", "1"])
            #expect(refused.status != 0 && refused.errors.contains("no shard 99"), "\(refused)")
        }

        /// Node 5 takes the place of node 3, which was killed and does not come back before.
        private func replace(_ cluster: GrowingCluster) async throws {
            cluster.base.kill(3)
            try await statusOfUnnamed(cluster)
            try cluster.configure(5)
            try cluster.base.start(5)
            let replaced = try await cluster.command(["cluster", "replace", "3", "5"] + cluster.addresses(of: 5))
            #expect(replaced.status == 0 && replaced.output.contains("taken the place of node 3"), "\(replaced)")
            try await cluster.awaitReady(5)
            // It hears that it was removed, says so, and ends.
            try cluster.base.start(3)
            try await cluster.await("node 3 ends") { cluster.base.processes[3]?.isRunning == false }
            #expect(cluster.base.processes[3]?.wait() == 78)
            try await cluster.base.awaitLog(of: 3, "critical", "node 3 was removed from the cluster")
            let back = try await cluster.command(["cluster", "add", "3"] + cluster.addresses(of: 3))
            #expect(back.status != 0 && back.errors.contains("an id is given once"), "\(back)")
        }

        /// Node 3 is dead, and the configuration file does not name it.
        private func statusOfUnnamed(_ cluster: GrowingCluster) async throws {
            let config = try cluster.configuration(without: 3)
            try FileManager.default.copyItem(
                atPath: cluster.base.folder + "/admin.token", toPath: cluster.base.folder + "/data/admin.token")
            try await awaitState("the status counts a dead node that the file lacks") {
                try await cluster.command(["cluster", "status", "--config", config])
            } until: { status in
                status.status == 1 && status.output.contains("1 of 4 nodes is not ready")
                    && status.output.contains("3     unreachable")
                    && status.output.contains("the configuration file does not name it")
            }
        }

        private func remove(_ cluster: GrowingCluster) async throws {
            let removed = try await cluster.command(["cluster", "remove", "4"])
            #expect(
                removed.status == 0 && removed.output.contains("node 4 is not in the cluster any more"), "\(removed)")
            try await cluster.await("node 4 ends") { cluster.base.processes[4]?.isRunning == false }
            #expect(cluster.base.processes[4]?.wait() == 78)
            try await cluster.base.awaitLog(of: 4, "node 4 was removed from the cluster")
            let tooFew = try await cluster.command(["cluster", "remove", "5"])
            #expect(tooFew.status != 0 && tooFew.errors.contains("2 nodes for 3 replicas"), "\(tooFew)")
            let status = try await cluster.command(["cluster", "status", "--config", cluster.base.configPath])
            #expect(status.output.contains("NODE"), "\(status)")
        }
    }
}
