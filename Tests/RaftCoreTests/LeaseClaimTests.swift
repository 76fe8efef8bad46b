import RaftCore
import Testing

private func ids(_ numbers: [UInt64]) -> [ReplicaID] { numbers.map { ReplicaID($0) } }

private func leased(driftPartsPerMillion: UInt64 = 10_000) -> RaftSettings {
    var settings = RaftSettings()
    settings.lease = LeaseSettings(promiseMilliseconds: 1000, clockDriftPartsPerMillionMax: driftPartsPerMillion)
    return settings
}

@Suite("Leases (dissertation section 6.4.1)")
struct LeaseClaimTests {
    /// Three replicas under replica 1, which has just sent a round that was answered.
    private func leading(_ settings: RaftSettings = leased()) throws -> TestCluster {
        var cluster = try TestCluster(voters: 3, leader: 1, settings: settings)
        try cluster.run(milliseconds: 300)
        return cluster
    }

    @Test("Under a lease a read is served at once and asks nobody")
    func servesAtOnce() throws {
        var cluster = try leading()
        try cluster.propose(1, "a")
        try cluster.settle()
        cluster.messages = []
        try cluster.read(1, 1)
        #expect(cluster[1].reads.map(\.index) == [LogIndex(2)])
        #expect(cluster.messages.isEmpty)
    }

    @Test("The lease ends before the earliest election, by the drift allowed, counted from the sending of the round")
    func length() throws {
        var cluster = try leading()
        cluster.now = cluster.now.adding(milliseconds: 100)
        let sent = cluster.now
        try cluster.event(0) { $0.tick(now: $1) }
        // The answers take their time, which counts against the lease.
        cluster.now = cluster.now.adding(milliseconds: 400)
        try cluster.settle()
        let end = try #require(cluster[1].raft?.status.leaseEnd)
        let expected = sent.adding(nanoseconds: 1_000_000_000 * 99 / 101)
        #expect(end <= expected && end.adding(milliseconds: 1) > expected)
        for (time, isServed) in [(end, false), (MonotonicTime(nanoseconds: end.nanoseconds - 1), true)] {
            var raft = try #require(cluster[1].raft)
            #expect(raft.read(9, now: time).reads.isEmpty != isServed)
        }
    }

    @Test("After a suspension nothing is served before a majority has answered anew")
    func suspension() throws {
        var cluster = try leading()
        cluster.now = cluster.now.adding(milliseconds: 990)
        try cluster.read(1, 1)
        #expect(cluster[1].reads.isEmpty)
        try cluster.settle()
        #expect(cluster[1].reads.map(\.id) == [1])
    }

    @Test("Where the clock jumped the lease ends; only a round that was sent later gives another")
    func clockJumped() throws {
        let cluster = try leading()
        var raft = try #require(cluster[1].raft)
        func send(at now: MonotonicTime) throws -> UInt64 {
            let rounds = raft.tick(now: now).sendNow.compactMap { message -> UInt64? in
                if case .heartbeatRequest(_, let round) = message.body { round } else { nil }
            }
            return try #require(rounds.first)
        }
        func answer(_ round: UInt64, at now: MonotonicTime) {
            let body = Message.Body.heartbeatResponse(round: round)
            _ = raft.receive(Message(from: ReplicaID(2), to: ReplicaID(1), term: raft.term, body: body), now: now)
        }
        let now = cluster.now.adding(milliseconds: 100)
        let underWay = try send(at: now)
        #expect(raft.status.leaseEnd != nil)
        raft.clockJumped()
        answer(underWay, at: now)
        #expect(raft.status.leaseEnd == nil)
        #expect(raft.read(1, now: now).reads.isEmpty)
        let later = now.adding(milliseconds: 100)
        let next = try send(at: later)
        #expect(next > underWay)
        answer(next, at: later)
        #expect(raft.status.leaseEnd != nil)
        #expect(raft.read(2, now: later).reads.map(\.id) == [2])
    }

    @Test("A minority's answers give no lease")
    func minority() throws {
        let settings = leased()
        var cluster = try TestCluster(voters: 5, leader: 1, settings: settings)
        try cluster.run(milliseconds: 300)
        let before = try #require(cluster[1].raft?.status.leaseEnd)
        try cluster.run(milliseconds: 500, without: ids([3, 4, 5]))
        #expect(cluster[1].raft?.status.leaseEnd == before)
    }

    @Test("A new leader has a lease by its first round, but serves nothing before it has committed in its term")
    func committedFirst() throws {
        let cluster = try leading()
        var raft = try #require(cluster[2].raft)
        let term = raft.term.next
        let now = cluster.now.adding(milliseconds: 3000)
        func answer(_ body: Message.Body) -> Message {
            Message(from: ReplicaID(3), to: ReplicaID(2), term: term, body: body)
        }
        _ = raft.tick(now: now)
        _ = raft.receive(answer(.preVoteResponse(granted: true)), now: now)
        let vote = HardState(term: term, vote: ReplicaID(2))
        _ = raft.persisted(raft.lastLog, hardState: vote, now: now)
        _ = raft.receive(answer(.voteResponse(granted: true)), now: now)
        #expect(raft.role == .leader && raft.status.leaseEnd == nil)
        let later = now.adding(milliseconds: 100)
        _ = raft.tick(now: later)
        _ = raft.receive(answer(.heartbeatResponse(round: 1)), now: later)
        #expect(raft.status.leaseEnd != nil)
        #expect(raft.read(1, now: later).reads.isEmpty)
        _ = raft.persisted(raft.lastLog, hardState: vote, now: later)
        let match = Message.Body.appendResponse(.accepted(match: raft.lastLog.index))
        _ = raft.receive(answer(match), now: later)
        #expect(raft.read(2, now: later).reads.map(\.id) == [2])
    }

    @Test("It is given up before another is asked to take over, and does not come back in this term")
    func givenUp() throws {
        var cluster = try leading()
        try cluster.event(0) { $0.transferLeadership(to: ReplicaID(2), now: $1) }
        #expect(cluster[1].raft?.status.leaseEnd == nil)
        // The request is lost, for all the leader knows; it may still come.
        cluster.messages = []
        try cluster.run(milliseconds: 500)
        #expect(cluster[1].raft?.role == .leader && cluster[1].raft?.status.leaseEnd == nil)
        try cluster.read(1, 1)
        #expect(cluster[1].reads.isEmpty)
        try cluster.settle()
        #expect(cluster[1].reads.map(\.id) == [1])
    }

    @Test("A follower keeps its promise over a restart: nobody is elected while the old lease runs")
    func restart() throws {
        var cluster = try leading()
        let end = try #require(cluster[1].raft?.status.leaseEnd)
        for offset in [1, 2] {
            cluster.nodes[offset].crash()
            cluster.start(offset)
        }
        while cluster.now < end {
            cluster.now = cluster.now.adding(milliseconds: 20)
            for offset in [1, 2] { try cluster.event(offset) { $0.tick(now: $1) } }
            try cluster.settle(without: ids([1]))
            #expect(cluster[2].raft?.role != .leader && cluster[3].raft?.role != .leader)
        }
    }

    @Test("It counts the members in force: new voters must have answered, learners do not count")
    func membership() throws {
        var cluster = TestCluster(voters: 1, settings: leased())
        try cluster.settle()
        for joining: UInt64 in [2, 3] { cluster.join(joining) }
        try cluster.change(1, voters: [1], learners: [2, 3])
        try cluster.run(milliseconds: 400)
        try cluster.change(1, voters: [2, 3, 1])
        try cluster.run(milliseconds: 300)
        let before = try #require(cluster[1].raft?.status.leaseEnd)
        try cluster.run(milliseconds: 300, without: ids([2, 3]))
        #expect(cluster[1].raft?.status.leaseEnd == before)
    }

    @Test("Without the setting every read waits for a round")
    func off() throws {
        var cluster = try leading(RaftSettings())
        #expect(cluster[1].raft?.status.leaseEnd == nil)
        try cluster.read(1, 1)
        #expect(cluster[1].reads.isEmpty)
    }
}
