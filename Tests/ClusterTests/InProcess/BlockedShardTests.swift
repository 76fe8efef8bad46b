import Directory
import Dispatch
import GRDB
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
                lane.replicas.groups.filter { $0 != .directory }.compactMap { lane.replicas[$0]?.worker }
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

        @Test("answers reads while it cannot apply, soon after they came", .timeLimit(.minutes(1)))
        func failing() async throws {
            let cluster = try await TestCluster.started(nodeCount: 1) { $0.shardCount = 1 }
            let node = try cluster.node(1)
            let group = node.map.group(of: Commands.zone)
            _ = try await Commands.submit(Commands.installSchema(), to: node)
            let writer = try DatabaseQueue(path: cluster.dataPath(1) + "/shards/0000.sqlite")
            try await writer.write {
                try $0.execute(
                    sql: "CREATE TRIGGER none BEFORE INSERT ON record BEGIN SELECT RAISE(ABORT, 'none'); END")
            }
            try writer.close()
            async let saved = Commands.submit(Commands.save("a", number: 1), to: node)
            try await yieldUntil { await node.status().first { $0.group == group }?.applyFailure != nil }
            let answer = await withCheckedContinuation { continuation in
                let ticket = ReadTicket(ReadTerms(container: "c"), until: node.deadline().time) { .zero }
                node.lane.eventLoop.execute {
                    node.lane.reads.read([], from: group, ticket) { continuation.resume(returning: $0) }
                }
            }
            #expect("\(answer)".contains("the leader cannot apply"))
            _ = try? await saved
            try await cluster.shutDown()
        }
    }
}
