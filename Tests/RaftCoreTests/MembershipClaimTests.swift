import RaftCore
import Testing

private func ids(_ numbers: [UInt64]) -> [ReplicaID] { numbers.map { ReplicaID($0) } }

/// A cluster of three that leads under replica 1, with replicas 4 and 5 as learners that have caught up.
private func grown() throws -> TestCluster {
    var cluster = try TestCluster(voters: 3, leader: 1)
    for joining: UInt64 in [4, 5] { cluster.join(joining) }
    try cluster.change(1, voters: [1, 2, 3], learners: [4, 5])
    try cluster.run(milliseconds: 400)
    return cluster
}

@Suite("Refused changes of members (dissertation sections 4.1 to 4.3)")
struct MembershipRefusalTests {
    private func refusal(_ cluster: inout TestCluster, _ id: UInt64, voters: [UInt64], learners: [UInt64] = [])
        -> ConfigurationChangeError?
    {
        do {
            try cluster.change(id, voters: voters, learners: learners)
            return nil
        } catch {
            return error as? ConfigurationChangeError
        }
    }

    @Test("A follower, an empty group, a joint target, and what is in force already are refused")
    func plainly() throws {
        var cluster = try grown()
        #expect(refusal(&cluster, 2, voters: [1]) == .notLeader(hint: ReplicaID(1)))
        #expect(refusal(&cluster, 1, voters: []) == .noVoters)
        #expect(refusal(&cluster, 1, voters: [1, 2, 3], learners: [4, 5]) == .unchanged)
        var leader = try #require(cluster[1].raft)
        let before = leader
        let joint = Configuration(voters: ids([1]), outgoing: ids([2]))
        let now = cluster.now
        #expect(throws: ConfigurationChangeError.jointTarget) {
            _ = try leader.propose(configuration: joint, replacing: leader.configuration, now: now)
        }
        let other = Configuration(voters: ids([1, 2]))
        #expect(throws: ConfigurationChangeError.unknownBase(inForce: before.configuration)) {
            _ = try leader.propose(configuration: Configuration(voters: ids([1])), replacing: other, now: now)
        }
        #expect(leader.lastLog == before.lastLog)
    }

    @Test("One change at a time: the next waits until the last entry of this one is committed")
    func oneAtATime() throws {
        var cluster = try grown()
        try cluster.change(1, voters: [1, 2, 4], learners: [5])
        let joint = try #require(cluster[1].raft).lastLog.index
        #expect(refusal(&cluster, 1, voters: [1]) == .changeUnderway(at: joint))
        // The joint entry is committed, the entry that leaves it is not.
        while cluster[1].raft?.configuration.isJoint == true {
            for offset in cluster.nodes.indices { try cluster.persistAll(offset) }
            let message = try #require(cluster.messages.first)
            cluster.messages.removeFirst()
            try cluster.deliver(message)
        }
        #expect(refusal(&cluster, 1, voters: [1]) == .changeUnderway(at: joint.next))
        try cluster.settle()
        #expect(refusal(&cluster, 1, voters: [1, 2, 4, 5]) == nil)
    }

    /// The fault of single-server changes found in 2015: a leader that has not committed in its term does not know
    /// whether the configuration it starts from is one that others may still replace.
    @Test("A leader changes nothing before it has committed an entry of its own term")
    func ownTermFirst() throws {
        var cluster = try grown()
        cluster.now = cluster.now.adding(milliseconds: 2000)
        try cluster.event(1) { $0.tick(now: $1) }
        while cluster[2].raft?.role != .leader {
            for offset in [1, 2] { try cluster.persistAll(offset) }
            let message = try #require(cluster.messages.first)
            cluster.messages.removeFirst()
            if [message.from, message.to].allSatisfy({ ids([2, 3]).contains($0) }) { try cluster.deliver(message) }
        }
        let term = try #require(cluster[2].raft).term
        #expect(refusal(&cluster, 2, voters: [2, 3]) == .termNotCommitted(term))
        try cluster.settle(without: ids([1]))
        #expect(refusal(&cluster, 2, voters: [2, 3]) == nil)
    }

    @Test("A new voter is a learner first, and has caught up (section 4.2.1)")
    func catchUp() throws {
        var cluster = try TestCluster(voters: 3, leader: 1)
        cluster.join(4)
        #expect(refusal(&cluster, 1, voters: [1, 2, 4]) == .notLearner(ReplicaID(4)))
        try cluster.change(1, voters: [1, 2, 3], learners: [4])
        try cluster.settle(without: ids([4]))
        for number in 0..<5 { try cluster.propose(1, "\(number)") }
        try cluster.settle(without: ids([4]))
        #expect(refusal(&cluster, 1, voters: [1, 2, 4]) == .notCaughtUp(ReplicaID(4), missingEntries: 7))
        try cluster.run(milliseconds: 300)
        #expect(refusal(&cluster, 1, voters: [1, 2, 4]) == nil)
    }

    @Test("A learner that was current and fell silent is not promoted")
    func silentLearner() throws {
        var cluster = try grown()
        try cluster.run(milliseconds: 1200, without: ids([4]))
        #expect(refusal(&cluster, 1, voters: [1, 2, 4]) == .notCaughtUp(ReplicaID(4), missingEntries: 0))
    }

    @Test("A group whose majority would be silent is refused")
    func silentMajority() throws {
        var cluster = try grown()
        try cluster.run(milliseconds: 1200, without: ids([3]))
        #expect(refusal(&cluster, 1, voters: [1, 3]) == .majoritySilent(ids([3])))
        #expect(refusal(&cluster, 1, voters: [1, 2]) == nil)
    }

    @Test("Every refusal says what was wrong and what to do")
    func descriptions() {
        let id = ReplicaID(7)
        let errors: [ConfigurationChangeError] = [
            .notLeader(hint: nil), .notLeader(hint: id), .termNotCommitted(Term(2)), .changeUnderway(at: LogIndex(3)),
            .unknownBase(inForce: Configuration(voters: [id])), .noVoters, .jointTarget, .unchanged, .notLearner(id),
            .notCaughtUp(id, missingEntries: 3), .majoritySilent([id]),
        ]
        #expect(Set(errors.map(\.description)).count == errors.count)
    }
}

@Suite("Changes of members (dissertation sections 4.1 to 4.4)")
struct MembershipClaimTests {
    @Test("Any voters become any others, at once, and the leader leaves the joint configuration by itself")
    func arbitraryChange() throws {
        var cluster = try grown()
        try cluster.change(1, voters: [1, 4, 5])
        #expect(cluster[1].raft?.configuration == Configuration(voters: ids([1, 4, 5]), outgoing: ids([1, 2, 3])))
        try cluster.run(milliseconds: 400)
        for member: UInt64 in [1, 4, 5] {
            #expect(cluster[member].raft?.configuration == Configuration(voters: ids([1, 4, 5])))
            #expect(cluster[member].raft?.isConfigurationCommitted == true)
        }
        #expect(cluster[1].raft?.status.followers.map(\.id) == ids([4, 5]))
    }

    @Test(
        "While joint, neither the old majority nor the new one commits alone",
        arguments: [[2, 3], [4, 5]] as [[UInt64]])
    func bothMajorities(silent: [UInt64]) throws {
        var cluster = try grown()
        try cluster.change(1, voters: [1, 4, 5])
        let joint = try #require(cluster[1].raft).lastLog.index
        try cluster.settle(without: ids(silent))
        #expect(try #require(cluster[1].raft).commitIndex < joint)
        try cluster.run(milliseconds: 300)
        #expect(try #require(cluster[1].raft).commitIndex > joint)
    }

    @Test(
        "While joint, nobody is elected by the old majority or the new one alone",
        arguments: [[1, 4, 5], [1, 2, 3]] as [[UInt64]])
    func bothElect(lost: [UInt64]) throws {
        var cluster = try grown()
        try cluster.change(1, voters: [1, 4, 5])
        // All have the joint entry, but the leader fails before it knows.
        cluster.messages.removeAll { $0.to == ReplicaID(1) }
        for message in cluster.messages { try cluster.deliver(message) }
        for offset in cluster.nodes.indices { try cluster.persistAll(offset) }
        cluster.messages = []
        try cluster.run(milliseconds: 6000, without: ids(lost))
        #expect(cluster.leaders.filter { !ids(lost).contains($0) }.isEmpty)
        try cluster.run(milliseconds: 6000, without: ids([1]))
        let leader = try #require(cluster.leaders.first { $0 != ReplicaID(1) })
        // The next leader ends what the failed one began.
        #expect(cluster[leader.rawValue].raft?.configuration == Configuration(voters: ids([1, 4, 5])))
    }

    @Test("A removed leader commits its removal without counting itself, hands over and follows (section 4.2.2)")
    func removedLeader() throws {
        var cluster = try grown()
        try cluster.change(1, voters: [2, 3, 4])
        try cluster.settle()
        #expect(cluster[1].raft?.role == .follower)
        let leader = try #require(cluster.leaders.first)
        let term = cluster[leader.rawValue].raft?.term
        #expect(cluster.leaders.count == 1 && ids([2, 3, 4]).contains(leader))
        try cluster.run(milliseconds: 8000)
        // It knows that it is out, and campaigns no more.
        #expect(cluster[1].raft?.role == .follower && cluster.leaders == [leader])
        #expect(cluster[leader.rawValue].raft?.term == term)
    }

    /// Figure 4.6 of the dissertation, in its joint form.
    @Test("One who is not in its own latest configuration campaigns while that may not be committed (section 4.2.2)")
    func neededAlthoughRemoved() throws {
        var cluster = try TestCluster(voters: 2, leader: 1)
        try cluster.run(milliseconds: 300)
        try cluster.change(1, voters: [2])
        // Both have the joint entry; the final one reaches nobody but the leader's own disk.
        while cluster[1].raft?.configuration.isJoint == true {
            for offset in cluster.nodes.indices { try cluster.persistAll(offset) }
            let message = try #require(cluster.messages.first)
            cluster.messages.removeFirst()
            try cluster.deliver(message)
        }
        try cluster.persistAll(0)
        cluster.messages = []
        for offset in [0, 1] {
            cluster.nodes[offset].crash()
            cluster.start(offset)
        }
        // Replica 2 cannot be elected, its log is shorter; so replica 1 leads once more, to leave.
        try cluster.run(milliseconds: 12_000)
        #expect(cluster.leaders == ids([2]))
        #expect(cluster[2].raft?.configuration == Configuration(voters: ids([2])))
        #expect(cluster[2].raft?.isConfigurationCommitted == true)
    }

    @Test("A removed replica that does not know it disturbs nobody (section 4.2.3)")
    func disturbance() throws {
        var cluster = try grown()
        try cluster.change(1, voters: [1, 2, 4], learners: [])
        try cluster.run(milliseconds: 400, without: ids([3]))
        let term = cluster[1].raft?.term
        try cluster.run(milliseconds: 20_000)
        #expect(cluster[3].raft?.configuration.isVoter(ReplicaID(3)) == true, "it has not heard")
        #expect(cluster.leaders == ids([1]) && cluster[1].raft?.term == term)
    }

    @Test("A configuration is in force from its append, and gone with its entry, also over a restart (section 4.1)")
    func rollBack() throws {
        var cluster = try grown()
        let base = try #require(cluster[1].raft).configuration
        try cluster.change(1, voters: [1, 4, 5])
        try cluster.persistAll(0)
        cluster.messages = []
        cluster.nodes[0].crash()
        cluster.start(0)
        #expect(cluster[1].raft?.configuration.isJoint == true)
        cluster.messages = []
        try cluster.elect(2, without: ids([1]))
        try cluster.run(milliseconds: 400)
        for id: UInt64 in 1...5 { #expect(cluster[id].raft?.configuration == base) }
    }

    @Test("A learner that an entry it lacks made a voter votes, or the group would lock itself out")
    func ignorantVoter() throws {
        var cluster = TestCluster(voters: 1)
        try cluster.settle()
        cluster.join(2)
        try cluster.change(1, voters: [1], learners: [2])
        try cluster.run(milliseconds: 400)
        try cluster.change(1, voters: [1, 2])
        try cluster.settle()
        // Replica 2 loses nothing that it acknowledged, but is put back to before it was asked: it has the learner's
        // configuration only, as if the joint entry had not come.
        let entries = cluster.nodes[1].disk.entries
        let learner = try #require(
            entries.lastIndex { $0.payload == .configuration(Configuration(voters: ids([1]), learners: ids([2]))) })
        var restored = RestoredState(
            hardState: cluster.nodes[1].disk.hardState, snapshot: cluster.nodes[1].disk.snapshot,
            entries: Array(entries[...learner]))
        restored.applied = .zero
        var raft = Raft(id: ReplicaID(2), settings: RaftSettings(), seed: 1, restored: restored, now: cluster.now)
        #expect(raft.configuration.voters == ids([1]))
        let term = try #require(cluster[1].raft).term.next
        let last = try #require(cluster[1].raft).lastLog
        let request = Message(
            from: ReplicaID(1), to: ReplicaID(2), term: term, body: .voteRequest(lastLog: last, isTransfer: false))
        let effects = raft.receive(request, now: cluster.now.adding(milliseconds: 5000))
        #expect(effects.sendAfterPersist.map(\.body) == [.voteResponse(granted: true)])
    }

    @Test("A snapshot carries the configuration, also a joint one, and a restart brings it back (section 5.1)")
    func snapshots() throws {
        var cluster = try grown()
        try cluster.change(1, voters: [1, 2, 4], learners: [5])
        try cluster.run(milliseconds: 400, without: ids([5]))
        let last = try #require(cluster[1].raft).lastLog.index
        cluster.nodes[0].compact(through: last)
        #expect(cluster[1].disk.snapshot.configuration == Configuration(voters: ids([1, 2, 4]), learners: ids([5])))
        try cluster.run(milliseconds: 600)
        #expect(cluster[5].disk.snapshot.position.index == last)
        cluster.nodes[4].crash()
        cluster.start(4)
        #expect(cluster[5].raft?.configuration == Configuration(voters: ids([1, 2, 4]), learners: ids([5])))
    }

    @Test("A demoted voter counts until the joint configuration is left, and gets the log afterwards")
    func demotion() throws {
        var cluster = try grown()
        try cluster.change(1, voters: [1, 2, 4], learners: [3])
        let joint = try #require(cluster[1].raft).configuration
        #expect(joint.isVoter(ReplicaID(3)) && joint.learners == ids([3]))
        try cluster.run(milliseconds: 400)
        try cluster.propose(1, "a")
        try cluster.run(milliseconds: 400)
        #expect(cluster[3].raft?.configuration == Configuration(voters: ids([1, 2, 4]), learners: ids([3])))
        #expect(cluster[3].raft?.commitIndex == cluster[1].raft?.commitIndex)
    }

    @Test("A group grows from one to five and shrinks to one, and every write stays")
    func growAndShrink() throws {
        var cluster = TestCluster(voters: 1)
        try cluster.settle()
        let groups: [[UInt64]] = [[1, 2], [1, 2, 3], [1, 2, 3, 4, 5], [3, 4, 5], [5]]
        var members: [UInt64] = [1]
        for group in groups {
            let leader = try #require(cluster.leaders.first).rawValue
            try cluster.propose(leader, "before \(group)")
            for joining in group where cluster.nodes.count < joining { cluster.join(joining) }
            let learners = group.filter { !members.contains($0) }
            if !learners.isEmpty { try cluster.change(leader, voters: members, learners: learners) }
            try cluster.run(milliseconds: 500)
            try cluster.change(leader, voters: group)
            try cluster.run(milliseconds: 4000)
            members = group
        }
        #expect(cluster.leaders == ids([5]))
        #expect(cluster[5].disk.applied.filter { if case .command = $0.payload { true } else { false } }.count == 5)
    }
}
