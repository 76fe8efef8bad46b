import Testing

@testable import RaftCore

private func message(_ from: UInt64, _ to: UInt64, _ term: UInt64, _ body: Message.Body) -> Message {
    Message(from: ReplicaID(from), to: ReplicaID(to), term: Term(term), body: body)
}

private let three = Configuration(voters: [ReplicaID(1), ReplicaID(2), ReplicaID(3)])

/// A replica of three with this log, long after its start.
private func replica(_ id: UInt64, term: UInt64, vote: UInt64? = nil, terms: [UInt64] = []) -> (Raft, MonotonicTime) {
    let entries = terms.enumerated().map {
        Entry(index: LogIndex(UInt64($0.offset) + 1), term: Term($0.element), payload: .command([UInt8($0.offset)]))
    }
    let restored = RestoredState(
        hardState: HardState(term: Term(term), vote: vote.map { ReplicaID($0) }),
        snapshot: SnapshotMark(position: .zero, configuration: three), entries: entries)
    let raft = Raft(id: ReplicaID(id), settings: RaftSettings(), seed: id, restored: restored, now: .zero)
    return (raft, MonotonicTime(milliseconds: 10_000))
}

@Suite("Elections (dissertation sections 3.4, 3.6.1, 3.8)")
struct ElectionClaimTests {
    @Test("A replica votes for at most one candidate in a term")
    func oneVote() {
        var (raft, now) = replica(1, term: 3)
        let first = raft.receive(message(2, 1, 4, .voteRequest(lastLog: .zero, isTransfer: false)), now: now)
        #expect(first.sendAfterPersist.map(\.body) == [.voteResponse(granted: true)])
        _ = raft.persisted(.zero, hardState: HardState(term: Term(4), vote: ReplicaID(2)), now: now)
        let second = raft.receive(message(3, 1, 4, .voteRequest(lastLog: .zero, isTransfer: false)), now: now)
        #expect(second.sendNow.map(\.body) == [.voteResponse(granted: false)])
    }

    @Test("The vote is persisted before it is told, even when it is asked for again meanwhile")
    func votePersisted() {
        var (raft, now) = replica(1, term: 3)
        let request = message(2, 1, 4, .voteRequest(lastLog: .zero, isTransfer: false))
        let vote = HardState(term: Term(4), vote: ReplicaID(2))
        for _ in 0..<2 {
            let effects = raft.receive(request, now: now)
            #expect(effects.hardState == vote)
            #expect(effects.sendNow.isEmpty)
            #expect(effects.sendAfterPersist.map(\.body) == [.voteResponse(granted: true)])
        }
        _ = raft.persisted(.zero, hardState: vote, now: now)
        #expect(raft.receive(request, now: now).sendNow.map(\.body) == [.voteResponse(granted: true)])
    }

    @Test("A vote survives a restart")
    func voteSurvives() {
        var (raft, now) = replica(1, term: 4, vote: 2)
        let other = raft.receive(message(3, 1, 4, .voteRequest(lastLog: .zero, isTransfer: false)), now: now)
        #expect(other.sendNow.map(\.body) == [.voteResponse(granted: false)])
        let same = raft.receive(message(2, 1, 4, .voteRequest(lastLog: .zero, isTransfer: false)), now: now)
        #expect(same.sendNow.map(\.body) == [.voteResponse(granted: true)])
    }

    @Test(
        "A candidate whose log is less up to date gets no vote: the later last term wins, then the longer log",
        arguments: [(3, 2, true), (4, 2, true), (1, 3, true), (2, 2, false), (3, 1, false), (5, 1, false)])
    func upToDate(index: UInt64, term: UInt64, isGranted: Bool) {
        var (raft, now) = replica(1, term: 3, terms: [1, 2, 2])
        let last = LogPosition(index: LogIndex(index), term: Term(term))
        let effects = raft.receive(message(2, 1, 4, .voteRequest(lastLog: last, isTransfer: false)), now: now)
        #expect(effects.sendAfterPersist.map(\.body) == [.voteResponse(granted: isGranted)])
        var (asked, _) = replica(1, term: 3, terms: [1, 2, 2])
        let pre = asked.receive(message(2, 1, 4, .preVoteRequest(lastLog: last)), now: now)
        #expect(pre.sendNow.map(\.body) == [.preVoteResponse(granted: isGranted)])
    }

    @Test("A candidate that hears of a leader of its term follows it; one of an earlier term it ignores")
    func candidateYields() {
        var (raft, now) = replica(1, term: 3)
        _ = raft.tick(now: now)
        _ = raft.receive(message(2, 1, 4, .preVoteResponse(granted: true)), now: now)
        #expect(raft.role == .candidate && raft.term == Term(4))
        _ = raft.receive(message(2, 1, 3, .heartbeatRequest(commit: .zero, round: 1)), now: now)
        #expect(raft.role == .candidate)
        _ = raft.receive(message(2, 1, 4, .heartbeatRequest(commit: .zero, round: 1)), now: now)
        #expect(raft.role == .follower && raft.leader == ReplicaID(2))
    }

    @Test("A candidate does not lead before its own vote is durable")
    func ownVote() {
        var (raft, now) = replica(1, term: 3)
        _ = raft.tick(now: now)
        let campaign = raft.receive(message(2, 1, 4, .preVoteResponse(granted: true)), now: now)
        #expect(campaign.sendNow.isEmpty && campaign.sendAfterPersist.count == 2)
        for voter: UInt64 in [2, 3] {
            _ = raft.receive(message(voter, 1, 4, .voteResponse(granted: true)), now: now)
            #expect(raft.role == .candidate)
        }
        let effects = raft.persisted(.zero, hardState: HardState(term: Term(4), vote: ReplicaID(1)), now: now)
        #expect(raft.role == .leader)
        #expect(effects.append.map(\.payload) == [.empty])
    }

    @Test("One voter's answer counts once, however often it comes")
    func duplicateVotes() {
        let configuration = Configuration(voters: (1...5).map { ReplicaID($0) })
        let restored = RestoredState(bootstrap: configuration)
        var raft = Raft(id: ReplicaID(1), settings: RaftSettings(), seed: 1, restored: restored, now: .zero)
        let now = MonotonicTime(milliseconds: 2000)
        _ = raft.tick(now: now)
        for _ in 0..<4 { _ = raft.receive(message(2, 1, 1, .preVoteResponse(granted: true)), now: now) }
        #expect(raft.role == .preCandidate)
    }

    @Test("Election timeouts are drawn from [t, 2t) and differ between replicas")
    func randomTimeouts() {
        let deadlines = (1...50).map { seed in
            var raft = Raft(
                id: ReplicaID(1), settings: RaftSettings(), seed: UInt64(seed),
                restored: RestoredState(bootstrap: three),
                now: .zero)
            return raft.tick(now: .zero).wakeAt.nanoseconds
        }
        #expect(deadlines.allSatisfy { $0 >= 1_000_000_000 && $0 < 2_000_000_000 })
        #expect(Set(deadlines).count > 45)
    }
}

@Suite("Keeping quiet (dissertation sections 4.2.3, 6.2, 6.4.1, 9.6)")
struct QuietClaimTests {
    @Test("A pre-vote changes neither the term nor the vote of who is asked")
    func preVoteIsFree() {
        var (raft, now) = replica(1, term: 3, vote: 3)
        let effects = raft.receive(message(2, 1, 9, .preVoteRequest(lastLog: .zero)), now: now)
        #expect(effects.sendNow.map(\.body) == [.preVoteResponse(granted: true)])
        #expect(effects.hardState == nil && raft.term == Term(3) && raft.replica.hardState.vote == ReplicaID(3))
    }

    @Test("A follower that hears its leader ignores campaigns, whatever their term, unless the leader asked for them")
    func leaderIsAlive() {
        var (raft, now) = replica(1, term: 3)
        _ = raft.receive(message(2, 1, 3, .heartbeatRequest(commit: .zero, round: 1)), now: now)
        let soon = now.adding(milliseconds: 999)
        let last = LogPosition(index: LogIndex(9), term: Term(3))
        #expect(raft.receive(message(3, 1, 9, .preVoteRequest(lastLog: last)), now: soon).sendNow.isEmpty)
        let vote = raft.receive(message(3, 1, 9, .voteRequest(lastLog: last, isTransfer: false)), now: soon)
        #expect(vote.sendNow.isEmpty && vote.sendAfterPersist.isEmpty && raft.term == Term(3))
        let transfer = raft.receive(message(3, 1, 4, .voteRequest(lastLog: last, isTransfer: true)), now: soon)
        #expect(transfer.sendAfterPersist.map(\.body) == [.voteResponse(granted: true)])
    }

    @Test("A restarted replica votes for nobody for one maximum election timeout")
    func silenceAfterStart() {
        let request = message(2, 1, 9, .voteRequest(lastLog: .zero, isTransfer: false))
        for (milliseconds, count): (UInt64, Int) in [(1999, 0), (2000, 1)] {
            var (raft, _) = replica(1, term: 3)
            let effects = raft.receive(request, now: MonotonicTime(milliseconds: milliseconds))
            #expect(effects.sendAfterPersist.count == count)
            #expect(raft.term == Term(count == 1 ? 9 : 3))
        }
    }

    @Test("A learner does not campaign; asked for its vote it gives it, for it may be a voter without knowing it yet")
    func learner() {
        let configuration = Configuration(voters: [ReplicaID(1), ReplicaID(2)], learners: [ReplicaID(3)])
        var raft = Raft(
            id: ReplicaID(3), settings: RaftSettings(), seed: 1, restored: RestoredState(bootstrap: configuration),
            now: .zero)
        let now = MonotonicTime(milliseconds: 60_000)
        #expect(raft.tick(now: now).sendNow.isEmpty && raft.role == .follower)
        let asked = raft.receive(message(1, 3, 1, .voteRequest(lastLog: .zero, isTransfer: false)), now: now)
        #expect(asked.sendAfterPersist.map(\.body) == [.voteResponse(granted: true)])
    }

    @Test("Messages for others and answers of strangers are ignored")
    func strangers() {
        var (raft, now) = replica(1, term: 3)
        let before = raft
        let last = LogPosition(index: LogIndex(9), term: Term(9))
        _ = raft.receive(message(4, 1, 9, .heartbeatResponse(round: 1)), now: now)
        _ = raft.receive(message(4, 1, 9, .voteResponse(granted: false)), now: now)
        _ = raft.receive(message(2, 3, 9, .voteRequest(lastLog: last, isTransfer: false)), now: now)
        #expect(raft.term == before.term && raft.leader == nil && raft.replica.hardState == before.replica.hardState)
    }

    @Test("A leader and a candidate outside of the configuration in force are accepted (section 4.1)")
    func unknownLeader() {
        var (raft, now) = replica(1, term: 3)
        let last = LogPosition(index: LogIndex(9), term: Term(9))
        let vote = raft.receive(message(4, 1, 9, .voteRequest(lastLog: last, isTransfer: false)), now: now)
        #expect(vote.sendAfterPersist.map(\.body) == [.voteResponse(granted: true)])
        _ = raft.receive(message(4, 1, 9, .heartbeatRequest(commit: .zero, round: 1)), now: now)
        #expect(raft.leader == ReplicaID(4) && raft.term == Term(9))
    }
}
