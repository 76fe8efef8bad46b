import NIOCore
import PeerTransport
import RaftCore
import RecordStore
import Testing

@testable import Cluster

extension WaitingClusterSuites {
    @Suite("Leases of leaders")
    struct LeaseTests {
        /// When the lease of a group's leader ends; nil where there is none, or this node does not lead.
        private static func leaseEnd(of group: GroupID, on node: ClusterNode) async throws -> MonotonicTime? {
            try await node.lane.eventLoop.submit { [lane = node.lane] in
                lane.replicas[group]?.raft.status.leaseEnd
            }.get()
        }

        private static func start(_ change: (inout NodeSettings) -> Void) async throws -> (TestCluster, ClusterNode) {
            let cluster = try await TestCluster(nodeCount: 3, change)
            try await cluster.start()
            try await cluster.awaitMaps()
            let first = try cluster.node(1)
            let group = first.map.group(of: Commands.zone)
            _ = try await Commands.submit(Commands.installSchema(), to: first)
            _ = try await Commands.submit(Commands.save("a", number: 1), to: first)
            try await yieldUntil { first.leader(of: group) == first.map.preferredLeader(of: group) }
            return (cluster, try cluster.node(first.map.preferredLeader(of: group).rawValue))
        }

        @Test("without them every read is confirmed by a majority", .timeLimit(.minutes(10)))
        func without() async throws {
            let (cluster, leader) = try await Self.start { $0.usesLeases = false }
            let group = leader.map.group(of: Commands.zone)
            for _ in 0..<5 {
                #expect(try await Commands.lookup("a", on: leader).contains("\"number\""))
                #expect(try await Self.leaseEnd(of: group, on: leader) == nil)
            }
            await cluster.stop()
        }

        @Test("that of the directory counts for no request once the clocks differ", .timeLimit(.minutes(10)))
        func directory() async throws {
            let (cluster, leader) = try await Self.start { _ in }
            try await yieldUntil { leader.isDirectoryCurrent }
            let clock = cluster.clocks[Int(leader.settings.nodeID.rawValue) - 1]
            // The lane does not look at the clocks between these.
            let isCurrent = try await leader.lane.eventLoop.submit {
                leader.leasedDirectory.lease.renew(begunAt: leader.platform.clock.now)
                clock.set(aheadMilliseconds: 400)
                return leader.isDirectoryCurrent
            }.get()
            #expect(!isCurrent)
            try await leader.requireDirectory()
            try await yieldUntil { leader.isDirectoryCurrent }
            await cluster.stop()
        }

        @Test("one ends where the machine's clocks come to differ, and another begins", .timeLimit(.minutes(10)))
        func clocks() async throws {
            let (cluster, leader) = try await Self.start { _ in }
            let group = leader.map.group(of: Commands.zone)
            try await yieldUntil { try await Self.leaseEnd(of: group, on: leader) != nil }
            let clock = cluster.clocks[Int(leader.settings.nodeID.rawValue) - 1]
            // The lane does nothing else between these.
            let (before, after, isDirectoryCurrent) = try await leader.lane.eventLoop.submit {
                [lane = leader.lane] in
                let before = lane.replicas[group]?.raft.status.leaseEnd
                clock.set(aheadMilliseconds: 400)
                while lane.replicas[group]?.raft.status.leaseEnd != nil { lane.clockWatch.review(lane.replicas) }
                let isCurrent = lane.members.isDirectoryCurrent(lane.context.now)
                return (before, lane.replicas[group]?.raft.status.leaseEnd, isCurrent)
            }.get()
            #expect(before != nil && after == nil && !isDirectoryCurrent)
            try await yieldUntil { try await Self.leaseEnd(of: group, on: leader) != nil }
            #expect(try await Commands.lookup("a", on: leader).contains("\"number\""))
            try await yieldUntil { leader.leasedDirectory.lease.isValid(at: leader.platform.clock.now) }
            await cluster.stop()
        }
    }
}
