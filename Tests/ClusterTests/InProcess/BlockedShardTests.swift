import Directory
import Dispatch
import GRDB
import NIOCore
import PeerTransport
import RaftCore
import Testing
import Wire

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("A shard whose apply takes long")
    struct BlockedShardTests {
        @Test("holds up no command of the directory, and no lease; a write may be done later", .timeLimit(.minutes(10)))
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
            // In the shard's log, it may still be done.
            let late = GroupCommand(Commands.installSchema())
            await #expect(throws: ClusterError.outcomeUnknown("no answer in time")) {
                try await node.router.submit(
                    late, to: node.map.group(of: Commands.zone), by: node.deadline(milliseconds: 1_000))
            }
            for _ in workers { ends.signal() }
            await cluster.stop()
        }

        @Test("a change waits for nodes that came before it, though the map here was older", .timeLimit(.minutes(10)))
        func olderMap() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3)
            let leader = try #require(try cluster.node(1).leader(of: .directory))
            let others = [NodeID(1), NodeID(2), NodeID(3)].filter { $0 != leader }.map(\.rawValue)
            let (behind, third) = (try cluster.node(others[0]), try cluster.node(others[1]))
            let found = try await behind.lane.eventLoop.submit { [lane = behind.lane] in
                lane.replicas[.directory]?.worker
            }.get()
            let worker = try #require(found)
            let end = DispatchSemaphore(value: 0)
            worker.schedule { end.wait() }
            defer { end.signal() }
            // A node that nobody hears of, and that could rely on what it knew.
            let added = ClusterMap.Node(id: 4, peerHost: "127.0.0.1", peerPort: 1, clientURL: "https://127.0.0.1:4")
            let addition = DirectoryEntry(.changeMap(.addNode(added)))
            _ = try await third.router.submit(.machine(addition.encoded()), to: .directory, by: third.deadline())
            #expect(behind.map.nodes.count == 3)

            let begin = behind.platform.clock.now
            async let changed = behind.changeDirectory(
                DirectoryEntry(.setSignUp(isOpen: true)), by: behind.deadline(milliseconds: 20_000))
            try await yieldUntil { third.directory.snapshot.isSignUpOpen }
            end.signal()
            _ = try await changed
            #expect(behind.directory.snapshot.isSignUpOpen && behind.map.nodes.count == 4)
            let lease = behind.settings.directoryLeaseMilliseconds
            #expect(behind.platform.clock.now >= begin.adding(milliseconds: lease))
            await cluster.stop()
        }

        @Test("answers reads while it cannot apply, soon after they came", .timeLimit(.minutes(10)))
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
            await cluster.stop()
        }

        @Test("answers no read by a leader whose data are known to be damaged", .timeLimit(.minutes(10)))
        func damagedLeader() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { $0.shardCount = 1 }
            _ = try await Commands.submit(Commands.installSchema(), to: cluster.node(1))
            _ = try await Commands.submit(Commands.save("a", number: 1), to: cluster.node(1))
            var answer: Result<[UInt8], ReplicaError>?
            while answer == nil {
                try Task.checkCancellation()
                for node in cluster.nodes.values where answer == nil { answer = await readOfDamaged(node) }
            }
            let reason = "the data of its leader are damaged, and another node has to lead first"
            #expect(answer == .failure(.unavailable(reason)))
            try await yieldUntil {
                let record = try? await Commands.lookup("a", on: cluster.node(1))
                return record?.contains(#""value":1"#) ?? false
            }
            await cluster.stop()
        }

        /// What a leader answers in the moment in which its data turn out to be damaged; nil where it does not lead.
        private func readOfDamaged(_ node: ClusterNode) async -> Result<[UInt8], ReplicaError>? {
            let (group, lane) = (node.map.group(of: Commands.zone), node.lane)
            let ticket = ReadTicket(ReadTerms(container: "c"), until: node.deadline().time) { .zero }
            return await withCheckedContinuation { continuation in
                lane.eventLoop.execute {
                    guard lane.replicas[group]?.raft.role == .leader else { return continuation.resume(returning: nil) }
                    lane.health.damaged(group, StorageMismatch("a value cannot be read"), .reading)
                    lane.reads.read([], from: group, ticket) { continuation.resume(returning: $0) }
                }
            }
        }
    }
}
