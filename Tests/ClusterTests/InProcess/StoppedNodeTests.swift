import Storage
import TestSupport
import Testing

@testable import Cluster

extension ClusterSuites {
    @Suite("A node that was stopped")
    struct StoppedNodeTests {
        /// What a node is made of, as far as it is still there.
        private struct Remains {
            weak var node: ClusterNode?
            weak var lane: Lane?
            weak var log: RaftLog?

            var isGone: Bool { node == nil && lane == nil && log == nil }
        }

        private func remains(afterMap: Bool) async throws -> Remains {
            let cluster = try await TestCluster(nodeCount: 1)
            try await cluster.start()
            if afterMap { try await cluster.awaitMaps() }
            let node = try cluster.node(1)
            let remains = Remains(node: node, lane: node.lane, log: node.log)
            await cluster.stop()
            return remains
        }

        @Test("leaves nothing behind, whatever it was at", arguments: [false, true])
        func gone(afterMap: Bool) async throws {
            let remains = try await remains(afterMap: afterMap)
            try await awaitTrue("nothing holds it") { remains.isGone }
        }

        @Test("does not keep what its threads were given after their end")
        func thread() {
            let thread = SerialThread(name: "test")
            thread.stop()
            var given: Given? = Given()
            weak let kept = given
            thread.schedule { [given] in _ = given }
            given = nil
            #expect(kept == nil)
            withExtendedLifetime(thread) {}
        }

        private final class Given: Sendable {}
    }
}
