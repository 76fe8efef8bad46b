import Testing

@testable import RaftCore

private func message(_ from: UInt64, _ to: UInt64, _ term: UInt64, _ body: Message.Body) -> Message {
    Message(from: ReplicaID(from), to: ReplicaID(to), term: Term(term), body: body)
}

/// Follows replica 3 in term 1 of five, and heard it last at 10 s. Its promise is 600 ms, its election timeout 900 ms.
private func follower(_ id: UInt64, voters: UInt64 = 5, firstTurn: UInt64 = 0) -> Raft {
    var settings = RaftSettings()
    settings.electionTimeoutMilliseconds = 900
    settings.lease = LeaseSettings(promiseMilliseconds: 600)
    settings.firstTurn = firstTurn
    let restored = RestoredState(bootstrap: Configuration(voters: (1...voters).map { ReplicaID($0) }))
    var raft = Raft(id: ReplicaID(id), settings: settings, seed: id, restored: restored, now: .zero)
    _ = raft.receive(message(3, id, 1, .heartbeatRequest(commit: .zero, round: 1)), now: contact)
    return raft
}

private let contact = MonotonicTime(milliseconds: 10_000)

@Suite("A leader whose connection breaks")
struct LostLeaderTests {
    /// When the replica campaigns, in milliseconds after it heard the leader last.
    private func campaign(_ raft: inout Raft, lostAt milliseconds: UInt64) -> UInt64 {
        let effects = raft.peerDisconnected(ReplicaID(3), now: contact.adding(milliseconds: milliseconds))
        return (effects.wakeAt.nanoseconds - contact.nanoseconds) / 1_000_000
    }

    @Test(
        "Those who are left campaign in turn, from the end of their promise on", arguments: 0...5 as ClosedRange<UInt64>
    )
    func turns(firstTurn: UInt64) {
        let order = ([1, 2, 4, 5] as [UInt64]).map { id in
            var raft = follower(id, firstTurn: firstTurn)
            let start = campaign(&raft, lostAt: 20) - 600
            #expect(start % 100 <= 50)
            return start / 100
        }
        #expect(order.sorted() == [0, 1, 2, 3])
        #expect(order[Int(firstTurn % 4)] == 0)
    }

    @Test("Without a lease the promise is the election timeout")
    func withoutLease() {
        let restored = RestoredState(bootstrap: Configuration(voters: [ReplicaID(1), ReplicaID(3)]))
        var raft = Raft(id: ReplicaID(1), settings: RaftSettings(), seed: 1, restored: restored, now: .zero)
        _ = raft.receive(message(3, 1, 1, .heartbeatRequest(commit: .zero, round: 1)), now: contact)
        #expect(1_000...1_050 ~= campaign(&raft, lostAt: 1))
    }

    @Test(
        "A connection that breaks after the promise is over lets the first campaign at once, and nobody later than before"
    )
    func late() {
        var first = follower(1)
        #expect(700...750 ~= campaign(&first, lostAt: 700))
        for id: UInt64 in [1, 2, 4, 5] {
            var raft = follower(id)
            let before = raft.tick(now: contact.adding(milliseconds: 890)).wakeAt
            // So late that some turns come after the election timeout.
            let time = MonotonicTime(nanoseconds: before.nanoseconds - 1_000_000)
            #expect(raft.peerDisconnected(ReplicaID(3), now: time).wakeAt <= before)
        }
    }

    @Test("A leader that is heard again over a new connection is followed as before")
    func heardAgain() {
        var raft = follower(1)
        _ = campaign(&raft, lostAt: 10)
        raft.peerConnected(ReplicaID(3))
        let again = contact.adding(milliseconds: 60)
        let effects = raft.receive(message(3, 1, 1, .heartbeatRequest(commit: .zero, round: 2)), now: again)
        #expect(effects.wakeAt >= again.adding(milliseconds: 900) && raft.timer.lostLeader == nil)
    }

    @Test("What a dead leader sent and is read after its end moves the turns, and does not end them")
    func heardLate() {
        var raft = follower(1)
        _ = campaign(&raft, lostAt: 10)
        let late = contact.adding(milliseconds: 12)
        let effects = raft.receive(message(3, 1, 1, .heartbeatRequest(commit: .zero, round: 2)), now: late)
        #expect(late.adding(milliseconds: 600) <= effects.wakeAt && effects.wakeAt <= late.adding(milliseconds: 650))
    }

    @Test("A connection to the process that led once does not end the turns: it may know nothing of it")
    func isBack() {
        var raft = follower(1)
        let start = campaign(&raft, lostAt: 10)
        raft.peerConnected(ReplicaID(3))
        #expect(raft.timer.deadline <= contact.adding(milliseconds: start + 1))
        let now = raft.timer.deadline
        #expect(raft.tick(now: now).wakeAt <= now.adding(milliseconds: 450))
    }

    @Test(
        "A leader that hears nobody gives up when the promises to it are over, though its own election timeout is longer"
    )
    func leaderGivesUp() {
        var settings = RaftSettings()
        settings.electionTimeoutMilliseconds = 900
        settings.lease = LeaseSettings(promiseMilliseconds: 600)
        let restored = RestoredState(bootstrap: Configuration(voters: (1...3).map { ReplicaID($0) }))
        var raft = Raft(id: ReplicaID(1), settings: settings, seed: 1, restored: restored, now: .zero)
        _ = raft.tick(now: contact)
        _ = raft.receive(message(2, 1, 1, .preVoteResponse(granted: true)), now: contact)
        _ = raft.persisted(.zero, hardState: HardState(term: Term(1), vote: ReplicaID(1)), now: contact)
        _ = raft.receive(message(2, 1, 1, .voteResponse(granted: true)), now: contact)
        #expect(raft.role == .leader)
        _ = raft.tick(now: contact.adding(milliseconds: 599))
        #expect(raft.role == .leader)
        _ = raft.tick(now: contact.adding(milliseconds: 600))
        #expect(raft.role == .follower)
    }

    @Test("The connection to anyone else changes no timer")
    func others() {
        var raft = follower(1)
        let before = raft.tick(now: contact).wakeAt
        #expect(raft.peerDisconnected(ReplicaID(2), now: contact.adding(milliseconds: 1)).wakeAt == before)
    }

    @Test("Who is not answered asks again when all others had their turns, and after an election timeout as ever")
    func again() {
        var raft = follower(1)
        _ = campaign(&raft, lostAt: 20)
        var waits: [UInt64] = []
        var now = raft.timer.deadline
        while waits.count < 8 {
            let next = raft.tick(now: now).wakeAt
            waits.append((next.nanoseconds - now.nanoseconds) / 1_000_000)
            now = next
        }
        // Four turns; the promise is over at 600, and the election timeout after it is 900.
        #expect(waits.prefix(2).allSatisfy { 400...450 ~= $0 })
        #expect(waits.dropFirst(3).allSatisfy { 900...1_800 ~= $0 })
        #expect(raft.role == .preCandidate && raft.term == Term(1))
    }

    @Test("A campaign that comes to nothing is repeated at random as ever: turns are for one term")
    func nextTerm() {
        var raft = follower(1, voters: 3)
        _ = campaign(&raft, lostAt: 20)
        let now = raft.timer.deadline
        _ = raft.tick(now: now)
        let effects = raft.receive(message(2, 1, 2, .preVoteResponse(granted: true)), now: now)
        #expect(raft.role == .candidate && raft.term == Term(2))
        #expect(effects.wakeAt >= now.adding(milliseconds: 900))
    }

    @Test("A voter lets the next one be elected when its promise is over, though its own election timeout is longer")
    func granted() {
        let last = LogPosition(index: LogIndex(1), term: Term(1))
        for (milliseconds, count): (UInt64, Int) in [(599, 0), (600, 1)] {
            var raft = follower(2)
            let now = contact.adding(milliseconds: milliseconds)
            #expect(raft.receive(message(1, 2, 2, .preVoteRequest(lastLog: last)), now: now).sendNow.count == count)
            let vote = raft.receive(message(1, 2, 2, .voteRequest(lastLog: last, isTransfer: false)), now: now)
            #expect(vote.sendAfterPersist.count == count)
        }
    }

    @Test("A learner has no turn")
    func learner() {
        var settings = RaftSettings()
        settings.lease = LeaseSettings(promiseMilliseconds: 600)
        let configuration = Configuration(voters: [ReplicaID(2), ReplicaID(3)], learners: [ReplicaID(1)])
        var raft = Raft(
            id: ReplicaID(1), settings: settings, seed: 1, restored: RestoredState(bootstrap: configuration), now: .zero
        )
        _ = raft.receive(message(3, 1, 1, .heartbeatRequest(commit: .zero, round: 1)), now: contact)
        #expect(campaign(&raft, lostAt: 1) >= 1_000)
    }
}
