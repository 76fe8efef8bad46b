extension Raft {
    /// Time has passed. Call it at or after the `wakeAt` of the latest effects; calling it more often does no harm.
    public mutating func tick(now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader {
            if leadership?.tick(in: &replica) == .isOver { becomeFollower(term: term, leader: nil) }
        } else if replica.now >= timer.deadline {
            if replica.isPromotable {
                startElection()
            } else {
                timer.reset(replica)
            }
        }
        return finish()
    }

    /// Whether this replica may vote at all now.
    var mayVote: Bool { timer.mayVote(at: replica.now) }

    /// Whether a leader was heard so recently that no other may be elected.
    var hasLiveLeader: Bool { role == .leader || timer.hasLiveLeader(at: replica.now, settings) }

    /// Starts a pre-vote: asks whether a campaign would win, which disturbs no leader (dissertation section 9.6).
    mutating func startElection() {
        precondition(replica.isPromotable && role != .leader, "replica \(id) may not campaign as \(role)")
        if replica.isOnlyVoter {
            campaign(isTransfer: false)
            return
        }
        role = .preCandidate
        leader = nil
        ballots = Ballots()
        ballots.add(id, granted: true)
        timer.reset(replica)
        // A pre-vote is not binding, so it does not wait for a persist.
        for voter in otherVoters {
            replica.outbox.sendNow(.preVoteRequest(lastLog: lastLog), term: term.next, to: voter)
        }
        countPreVotes()
    }

    /// Campaigns in the next term. The own vote counts, and the requests go out, when it is durable.
    mutating func campaign(isTransfer: Bool) {
        precondition(replica.isPromotable && role != .leader, "replica \(id) may not campaign as \(role)")
        replica.enter(term.next, vote: id)
        role = .candidate
        leader = nil
        ballots = Ballots()
        timer.reset(replica)
        for voter in otherVoters { send(.voteRequest(lastLog: lastLog, isTransfer: isTransfer), to: voter) }
    }

    mutating func countPreVotes() {
        precondition(role == .preCandidate, "pre-votes for a \(role)")
        switch ballots.result(in: configuration) {
        case .won: campaign(isTransfer: false)
        case .lost: becomeFollower(term: term, leader: nil)
        case .pending: break
        }
    }

    mutating func countVotes() {
        precondition(role == .candidate, "votes for a \(role)")
        // A leader's term and vote are durable, whatever the order in which the shell reports.
        guard replica.outbox.isHardStateDurable else { return }
        ballots.add(id, granted: true)
        switch ballots.result(in: configuration) {
        case .won: becomeLeader()
        case .lost: becomeFollower(term: term, leader: nil)
        case .pending: break
        }
    }

    private var otherVoters: [ReplicaID] {
        configuration.all.filter { $0 != id && configuration.isVoter($0) }
    }

    /// A replica asks whether this one would vote for it (dissertation section 9.6). Answering changes no state.
    mutating func receivePreVoteRequest(lastLog: LogPosition, _ message: Message) {
        if !mayVote || hasLiveLeader { return }
        guard message.term > term, lastLog.isAtLeastAsUpToDate(as: self.lastLog) else {
            send(.preVoteResponse(granted: false), to: message.from)
            return
        }
        // In the term of the sender's campaign, so that the sender can match the answer to it.
        replica.outbox.sendNow(.preVoteResponse(granted: true), term: message.term, to: message.from)
    }

    /// A response to a pre-vote. A yes carries the next term, a no the voter's own.
    mutating func receivePreVoteResponse(granted: Bool, _ message: Message) {
        guard role == .preCandidate, message.term == (granted ? term.next : term) else { return }
        ballots.add(message.from, granted: granted)
        countPreVotes()
    }

    /// A candidate asks for a vote (dissertation sections 3.4 and 3.6.1). The vote is durable before it is sent.
    mutating func receiveVoteRequest(lastLog: LogPosition, isTransfer: Bool, _ message: Message) {
        if !mayVote || hasLiveLeader && !isTransfer { return }
        let vote = replica.hardState.vote
        let isFree = vote == message.from || vote == nil && leader == nil
        guard isFree, lastLog.isAtLeastAsUpToDate(as: self.lastLog) else {
            send(.voteResponse(granted: false), to: message.from)
            return
        }
        precondition(role == .follower || role == .preCandidate, "a \(role) votes for \(message.from)")
        if role == .preCandidate { becomeFollower(term: term, leader: nil) }
        replica.outbox.vote(for: message.from)
        timer.reset(replica)
        send(.voteResponse(granted: true), to: message.from)
    }

    /// A response to a vote request. It is of this term, so it belongs to this campaign.
    mutating func receiveVoteResponse(granted: Bool, _ message: Message) {
        guard role == .candidate else { return }
        ballots.add(message.from, granted: granted)
        countVotes()
    }

    /// Becomes a follower, in this term or a later one. The leader is nil while it is unknown.
    mutating func becomeFollower(term newTerm: Term, leader newLeader: ReplicaID?) {
        precondition(newTerm >= term, "back from term \(term) to \(newTerm)")
        precondition(newLeader != id, "replica \(id) follows itself")
        if newTerm > term { replica.enter(newTerm, vote: nil) }
        leader = newLeader
        ballots = Ballots()
        role = .follower
        guard let reads = leadership?.reads.all else { return }
        leadership = nil
        for read in reads { fail(read) }
        timer.reset(replica)
    }

    private mutating func becomeLeader() {
        precondition(role == .candidate && leadership == nil, "a \(role) cannot become leader")
        precondition(replica.outbox.isHardStateDurable, "leader in term \(term), which is not durable")
        precondition(replica.hardState.vote == id, "leader without its own vote")
        role = .leader
        leader = id
        ballots = Ballots()
        timer.led()
        leadership = Leadership(in: &replica)
    }

    /// The leader of this term was heard.
    mutating func heardLeader(_ sender: ReplicaID) {
        precondition(role != .leader, "replicas \(id) and \(sender) both lead term \(term)")
        precondition(
            leader == nil || leader == sender, "two leaders of term \(term): \(sender), \(leader?.rawValue ?? 0)")
        if role != .follower || leader != sender { becomeFollower(term: term, leader: sender) }
        timer.heard(sender, by: replica)
    }

    /// The leader hands over: campaigns at once, without a pre-vote (dissertation section 3.10).
    mutating func receiveTimeoutNow(_ message: Message) {
        guard role == .follower, leader == message.from, replica.isPromotable else { return }
        campaign(isTransfer: true)
    }
}
