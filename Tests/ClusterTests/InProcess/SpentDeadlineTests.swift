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
            await cluster.stop()
        }

        @Test("a write of which nobody knows what came of it is not sent again; a read is")
        func unknownOutcome() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let router = try cluster.node(1).router
            var writes = 0
            await #expect(throws: ClusterError.outcomeUnknown("lost")) {
                try await router.route(.directory, isWrite: true, by: Deadline(milliseconds: 60_000)) { _ in
                    writes += 1
                    return writes == 1 ? .answered(.failure(.outcomeUnknown("lost"))) : .answered(.success([]))
                }
            }
            #expect(writes == 1)
            var reads = 0
            let answer = try await router.route(.directory, isWrite: false, by: Deadline(milliseconds: 60_000)) { _ in
                reads += 1
                return reads == 1 ? .answered(.failure(.outcomeUnknown("lost"))) : .answered(.success([7]))
            }
            #expect(answer == [7] && reads == 2)
            await cluster.stop()
        }
    }
}
