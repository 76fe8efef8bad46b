import RaftCore
import TestSupport
import Testing

@testable import Cluster

extension ClusterSuites {
    @Suite("Requests whose time is over")
    struct SpentDeadlineTests {
        @Test("are told so, and not that the group has no leader")
        func told() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let node = try cluster.node(1)
            do throws(ClusterError) {
                _ = try await node.router.members(of: .directory, by: Deadline(milliseconds: 0))
                Issue.record("it was answered")
            } catch {
                guard case .unavailable(let reason) = error else { throw TestFailure("\(error)") }
                #expect(reason.contains("time was over before anything was sent"))
            }
            try await cluster.shutDown()
        }
    }
}
