import Directory
import Dispatch
import NIOCore
import RaftCore
import Testing
import Wire

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("A shard whose apply takes long")
    struct BlockedShardTests {
        @Test("holds up no command of the directory, and no lease", .timeLimit(.minutes(1)))
        func directory() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1)
            let node = try cluster.node(1)
            let ends = DispatchSemaphore(value: 0)
            let workers = try await node.lane.eventLoop.submit { [lane = node.lane] in
                lane.groups.filter { $0 != .directory }.compactMap { lane.replicas[$0]?.worker }
            }.get()
            #expect(workers.count == 4)
            for worker in workers { worker.schedule { ends.wait() } }
            defer { for _ in workers { ends.signal() } }

            let entry = DirectoryEntry(.setSignUp(isOpen: true))
            _ = try await node.router.submit(.machine(entry.encoded()), to: .directory, by: node.deadline())
            try await node.refreshDirectory()
            #expect(node.directory.snapshot.isSignUpOpen)
            for _ in workers { ends.signal() }
            try await cluster.shutDown()
        }
    }
}
