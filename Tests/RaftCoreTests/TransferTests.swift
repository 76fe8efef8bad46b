import Testing

@testable import RaftCore

@Suite("Handing over leadership (dissertation section 3.10)")
struct TransferTests {
    @Test("A follower that has everything is asked, campaigns at once and leads")
    func handsOver() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        _ = try cluster.propose(1, "a")
        try cluster.settle()
        try cluster.event(0) { raft, now in
            let effects = raft.transferLeadership(to: ReplicaID(2), now: now)
            #expect(effects.sendNow.map(\.body) == [.timeoutNow])
            return effects
        }
        try cluster.settle()
        #expect(cluster.nodes[1].raft?.role == .leader)
        #expect(cluster.nodes[0].raft?.role == .follower)
        // The new leader's own entry is behind what the old one had committed.
        #expect(try #require(cluster.nodes[1].raft).lastLog.index > LogIndex(2))
    }

    @Test("Nobody is asked who lacks entries, does not vote, or is the leader; a follower asks nobody")
    func refuses() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        try cluster.settle()
        func asked(_ cluster: inout TestCluster, by node: Int, to target: UInt64) throws -> Bool {
            var result = false
            try cluster.event(node) { raft, now in
                let effects = raft.transferLeadership(to: ReplicaID(target), now: now)
                result = effects.sendNow.contains { $0.body == .timeoutNow }
                return effects
            }
            return result
        }
        #expect(try !asked(&cluster, by: 0, to: 1))
        #expect(try !asked(&cluster, by: 0, to: 9))
        #expect(try !asked(&cluster, by: 1, to: 2))
        _ = try cluster.propose(1, "not yet replicated")
        #expect(try !asked(&cluster, by: 0, to: 2))
    }
}
