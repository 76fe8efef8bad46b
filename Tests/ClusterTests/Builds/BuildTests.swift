import Cluster
import Foundation
import PeerTransport
import RaftCore
import RecordModel
import RecordStore
import TestSupport
import Testing
import Wire

extension RebuildingClusterSuites {
    @Suite("Nodes of several builds, and of wrong clocks")
    struct BuildTests {
        /// Of a build to come.
        private static let next = FeatureLevel(FeatureLevel.supported.upperBound.rawValue + 1)

        private func level(of group: GroupID, on node: ClusterNode) async -> FeatureLevel? {
            await node.status().first { $0.group == group }?.level
        }

        private func submit(_ command: ShardCommand, to node: ClusterNode) async throws -> RecordOutcome? {
            let bytes = try? await node.router.submit(
                GroupCommand(command), to: node.map.group(of: Commands.zone), by: node.deadline())
            return try bytes.map { try RecordOutcome(decoding: $0) }
        }

        @Test(
            "a replica whose build is too old stops with a clear state, and leads no more; with an able build it goes on",
            .timeLimit(.minutes(10)))
        func oneTooOld() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3) { settings in
                // Nodes 1 and 2 are of a build to come; the others do not know, so it is proposed here and not by the
                // leader.
                if settings.nodeID.rawValue < 3 { settings.featureLevels = .first...Self.next }
            }
            let node = try cluster.node(1)
            let group = node.map.group(of: Commands.zone)
            _ = try await Commands.submit(Commands.installSchema(), to: node)
            _ = try await Commands.submit(Commands.save("before", number: 1), to: node)
            // Where node 3 leads, nobody learns what became of it.
            _ = try? await node.router.submit(.raise(Self.next), to: group, by: node.deadline())
            try await yieldUntil { try await submit(Commands.save("after", number: 2), to: node) != nil }

            let old = try cluster.node(3)
            try await yieldUntil {
                await old.obstacle(old.status())?.contains("needs feature level \(Self.next)") == true
            }
            #expect(await !old.isReady(old.status()))
            let status = try #require(await old.status().first { $0.group == group })
            #expect(status.applyFailure?.contains("start a build that has it") == true)
            // It votes and keeps its log, and another leads.
            try await yieldUntil {
                let status = await old.status().first { $0.group == group }
                return status?.role == .follower && status?.leader != nil
            }
            let end = await old.status().first { $0.group == group }?.lastLog
            try await yieldUntil { try await submit(Commands.save("later", number: 3), to: node) != nil }
            try await yieldUntil { await old.status().first { $0.group == group }?.lastLog != end }
            #expect(await old.status().first { $0.group == group }?.appliedIndex == status.appliedIndex)
            // What is asked through it is answered by another.
            #expect(try await Commands.lookup("later", on: old).contains("\"number\""))

            await cluster.stop([3])
            cluster.change(3) { $0.featureLevels = .first...Self.next }
            try await cluster.start([3])
            let able = try cluster.node(3)
            try await yieldUntil { await level(of: group, on: able) == Self.next }
            try await yieldUntil { await able.isReady(able.status()) }
            await cluster.stop()
        }

        @Test(
            "where no build of a group knows an entry all stop before it, and go on with builds that do",
            .timeLimit(.minutes(10)))
        func allTooOld() async throws {
            let cluster = try await TestCluster.started(nodeCount: 3)
            let node = try cluster.node(1)
            let group = node.map.group(of: Commands.zone)
            _ = try await Commands.submit(Commands.installSchema(), to: node)
            _ = try await Commands.submit(Commands.save("before", number: 1), to: node)
            do throws(ClusterError) {
                _ = try await node.router.submit(.raise(Self.next), to: group, by: node.deadline())
                Issue.record("what nobody can apply was answered")
            } catch {
                guard case .outcomeUnknown = error else { Issue.record("\(error)"); return }
            }
            for id in 1...3 as ClosedRange<UInt64> {
                let node = try cluster.node(id)
                try await yieldUntil { await node.obstacle(node.status())?.contains("too old") == true }
                #expect(try await submit(Commands.save("after", number: 2), to: node) == nil)
                await #expect(throws: ClusterError.self) { try await Commands.lookup("before", on: node) }
            }
            await cluster.stop()
            for id in 1...3 as ClosedRange<UInt64> { cluster.change(id) { $0.featureLevels = .first...Self.next } }
            try await cluster.start()
            for id in 1...3 as ClosedRange<UInt64> {
                let node = try cluster.node(id)
                try await yieldUntil { await level(of: group, on: node) == Self.next }
                try await yieldUntil { await node.isReady(node.status()) }
            }
            #expect(try await Commands.lookup("before", on: try cluster.node(2)).contains("\"number\""))
            await cluster.stop()
        }

        @Test(
            "a node whose clock is days off says so, makes no commands and leads nothing, until its clock is right",
            .timeLimit(.minutes(10)), arguments: [3 * 86_400_000, -3 * 86_400_000] as [Int64])
        func wrongClock(_ ahead: Int64) async throws {
            let cluster = try await TestCluster.started(nodeCount: 3)
            let (right, wrong) = (try cluster.node(1), try cluster.node(3))
            for node in [right, try cluster.node(2), wrong] {
                try await yieldUntil { await node.isReady(node.status()) }
            }
            _ = try await Commands.submit(Commands.installSchema(), to: right)

            cluster.clocks[2].set(aheadMilliseconds: ahead)
            // At once, by its own clock alone.
            let error = try #require(wrong.clockErrorMilliseconds)
            #expect((error - ahead).magnitude < 60_000)
            #expect(await wrong.obstacle(wrong.status())?.contains("set its clock") == true)
            #expect(wrong.clockProblem?.contains("clock of node 3") == true)
            do throws(ClusterError) {
                _ = try await wrong.router.submit(
                    GroupCommand(Commands.save("a", number: 1)), to: .shard(0), by: wrong.deadline())
                Issue.record("a wrong clock's command was taken")
            } catch {
                guard case .unavailable(let reason) = error else { Issue.record("\(error)"); return }
                #expect(reason.contains("clock of node 3"))
            }
            #expect(right.clockErrorMilliseconds == nil && right.clockDoubt == nil && wrong.clockDoubt == nil)
            // Reads go on through it, writes through the others, and its leads go elsewhere.
            try await yieldUntil { await wrong.status().allSatisfy { $0.role != .leader } }
            try await yieldUntil { try await submit(Commands.save("b", number: 2), to: right) != nil }
            #expect(try await Commands.lookup("b", on: wrong).contains("\"number\""))

            cluster.clocks[2].set(aheadMilliseconds: 0)
            #expect(wrong.clockErrorMilliseconds == nil)
            try await yieldUntil { try await submit(Commands.save("c", number: 3), to: wrong) != nil }
            try await yieldUntil { await wrong.isReady(wrong.status()) }
            await cluster.stop()
        }

        @Test("where two clocks differ and nobody can tell, both nodes say so", .timeLimit(.minutes(10)))
        func undecidedClock() async throws {
            let cluster = try await TestCluster.started(nodeCount: 2)
            let (one, other) = (try cluster.node(1), try cluster.node(2))
            #expect(one.clockDoubt == nil)
            cluster.clocks[1].set(aheadMilliseconds: -9 * 86_400_000)
            #expect(other.clockDoubt?.contains("clock of node 2") == true)
            #expect(other.clockProblem == nil)
            try await yieldUntil { one.clockDoubt != nil }
            await cluster.stop()
        }

        @Test(
            "a node that starts with a wrong clock hears of it from its peers before it serves",
            .timeLimit(.minutes(10)))
        func wrongFromTheStart() async throws {
            let cluster = try await TestCluster(nodeCount: 3)
            cluster.clocks[0].set(aheadMilliseconds: 3 * 86_400_000)
            try await cluster.start()
            let (wrong, right) = (try cluster.node(1), try cluster.node(2))
            try await yieldUntil { wrong.clockErrorMilliseconds != nil }
            try await right.awaitMap()
            try await yieldUntil { await right.isReady(right.status()) }
            try await yieldUntil { await wrong.status().allSatisfy { $0.role != .leader } }
            cluster.clocks[0].set(aheadMilliseconds: 0)
            try await yieldUntil { await wrong.isReady(wrong.status()) }
            await cluster.stop()
        }
    }
}
