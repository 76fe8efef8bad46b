import Testing

@testable import RaftCore

@Suite("Handing over leadership (dissertation section 3.10)")
struct TransferTests {
    @Test("A follower that has everything is asked, campaigns at once and leads")
    func handsOver() throws {
        var cluster = TestCluster(voters: 3)
        try cluster.elect(1)
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
        var cluster = TestCluster(voters: 3)
        try cluster.elect(1)
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

@Suite("Handing over in order (dissertation section 3.10)")
struct OrderlyTransferTests {
    private func leading() throws -> TestCluster {
        var cluster = TestCluster(voters: 3, learners: 1)
        try cluster.elect(1)
        try cluster.run(milliseconds: 300)
        return cluster
    }

    private func transfer(_ cluster: inout TestCluster, from leader: Int = 0, to target: UInt64) throws {
        try cluster.event(leader) { try $0.transferLeadership(to: ReplicaID(target), within: 1000, now: $1) }
    }

    @Test("The target gets what it lacks first; proposals are refused meanwhile, with the target as the hint")
    func catchesUp() throws {
        var cluster = try leading()
        try cluster.propose(1, "a")
        try transfer(&cluster, to: 2)
        #expect(!cluster.messages.contains { $0.body == .timeoutNow })
        #expect(throws: ProposalError.notLeader(hint: ReplicaID(2))) { try cluster.propose(1, "b") }
        try cluster.settle()
        #expect(cluster.leaders == [ReplicaID(2)])
        #expect(cluster[2].disk.applied.contains { $0.payload == .command(Array("a".utf8)) })
    }

    @Test("After its time the leader takes proposals again")
    func expires() throws {
        var cluster = try leading()
        try cluster.propose(1, "a")
        try transfer(&cluster, to: 2)
        cluster.messages = []
        try cluster.run(milliseconds: 950, without: [ReplicaID(2)])
        #expect(cluster[1].raft?.status.transferTarget == ReplicaID(2))
        try cluster.run(milliseconds: 50, without: [ReplicaID(2)])
        #expect(cluster[1].raft?.status.transferTarget == nil)
        try cluster.propose(1, "b")
    }

    @Test("Cancelled, it takes proposals again at once")
    func cancels() throws {
        var cluster = try leading()
        try cluster.propose(1, "a")
        try transfer(&cluster, to: 2)
        try cluster.event(0) { $0.cancelTransfer(now: $1) }
        try cluster.propose(1, "b")
    }

    @Test("A request that is lost is sent again with the next heartbeats")
    func repeats() throws {
        var cluster = try leading()
        try transfer(&cluster, to: 2)
        cluster.messages = []
        try cluster.run(milliseconds: 150)
        #expect(cluster.leaders == [ReplicaID(2)])
    }

    @Test("Learners, strangers, laggards, the leader itself and a second target are refused; so is a follower")
    func refusals() throws {
        var cluster = try leading()
        #expect(throws: TransferError.notVoter(ReplicaID(4))) { try transfer(&cluster, to: 4) }
        #expect(throws: TransferError.notVoter(ReplicaID(9))) { try transfer(&cluster, to: 9) }
        #expect(throws: TransferError.alreadyLeads) { try transfer(&cluster, to: 1) }
        #expect(throws: TransferError.notLeader(hint: ReplicaID(1))) { try transfer(&cluster, from: 1, to: 3) }
        for number in 0..<3 { try cluster.propose(1, "\(number)") }
        try cluster.run(milliseconds: 1200, without: [ReplicaID(3)])
        #expect(throws: TransferError.notCaughtUp(ReplicaID(3), missingEntries: 3)) { try transfer(&cluster, to: 3) }
        try transfer(&cluster, to: 2)
        #expect(throws: TransferError.underway(to: ReplicaID(2))) { try transfer(&cluster, to: 3) }
    }

    @Test("A joint configuration is not left while leadership is handed over; whoever leads then leaves it")
    func holdsMembership() throws {
        var cluster = try leading()
        try cluster.change(1, voters: [1, 2], learners: [3, 4])
        try transfer(&cluster, to: 2)
        try cluster.run(milliseconds: 400)
        #expect(cluster.leaders == [ReplicaID(2)])
        let expected = Configuration(voters: [ReplicaID(1), ReplicaID(2)], learners: [ReplicaID(3), ReplicaID(4)])
        #expect(cluster[2].raft?.configuration == expected)
        #expect(cluster[2].raft?.isConfigurationCommitted == true)
    }
}
