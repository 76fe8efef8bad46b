extension Raft {
    /// Campaigns: first asks whether it would win, which disturbs nobody (dissertation section 9.6).
    mutating func startElection() {
        precondition(isPromotable && role != .leader, "replica \(id) may not campaign as \(role)")
        if isOnlyVoter {
            campaign(isTransfer: false)
            return
        }
        role = .preCandidate
        leader = nil
        ballots = [Ballot(voter: id, granted: true)]
        resetElectionTimer()
        for voter in otherVoters {
            let body = Message.Body.preVoteRequest(lastLog: log.last)
            // Binds nobody, so it does not wait for a persist.
            output.sendNow.append(Message(from: id, to: voter, term: term.next, body: body))
        }
        countPreVotes()
    }

    /// Campaigns in the next term. The own vote counts, and the requests go out, when it is durable.
    mutating func campaign(isTransfer: Bool) {
        precondition(isPromotable && role != .leader, "replica \(id) may not campaign as \(role)")
        hardState = HardState(term: term.next, vote: id)
        role = .candidate
        leader = nil
        owedMatch = nil
        ballots = []
        isTransferElection = isTransfer
        resetElectionTimer()
        for voter in otherVoters { send(.voteRequest(lastLog: log.last, isTransfer: isTransfer), to: voter) }
    }

    /// Notes an answer; the first of each voter counts.
    mutating func addBallot(_ voter: ReplicaID, granted: Bool) {
        guard !ballots.contains(where: { $0.voter == voter }) else { return }
        ballots.append(Ballot(voter: voter, granted: granted))
    }

    mutating func countPreVotes() {
        precondition(role == .preCandidate, "pre-votes for a \(role)")
        switch election {
        case .won: campaign(isTransfer: false)
        case .lost: becomeFollower(term: term, leader: nil)
        case .pending: break
        }
    }

    mutating func countVotes() {
        precondition(role == .candidate, "votes for a \(role)")
        // A leader's term and vote are durable, whatever the order in which the shell reports.
        guard hardState == durableHardState else { return }
        addBallot(id, granted: true)
        switch election {
        case .won: becomeLeader()
        case .lost: becomeFollower(term: term, leader: nil)
        case .pending: break
        }
    }

    private var election: Quorum.Result {
        Quorum.election(configuration) { voter in ballots.first { $0.voter == voter }?.granted }
    }

    private var otherVoters: [ReplicaID] {
        configuration.all.filter { $0 != id && configuration.isVoter($0) }
    }

    /// Whether this replica may vote for anyone at all now. It need not be a voter by its own configuration: an entry that
    /// it lacks may have made it one, and whose votes count is for the candidate to know (dissertation section 4.1).
    var mayVote: Bool { now >= votesFrom }
}
