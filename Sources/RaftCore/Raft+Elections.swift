extension Raft {
    /// Time has passed. Call it at or after the `wakeAt` of the latest effects; calling it more often does no harm.
    public mutating func tick(now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader {
            if self.now >= quorumDeadline {
                becomeFollower(term: term, leader: nil)
            } else if self.now >= heartbeatDeadline {
                startRound()
            }
        } else if self.now >= electionDeadline {
            if isPromotable {
                startElection()
            } else {
                resetElectionTimer()
            }
        }
        return finish()
    }

    /// When a leader that hears nothing more steps down (dissertation section 6.2): when the promises of the majority
    /// heard last have expired, and another replica may be elected.
    var quorumDeadline: MonotonicTime {
        let heard = Quorum.reached(configuration) { voter in
            voter == id ? now : followers.first { $0.id == voter }?.lastHeard ?? .zero
        }
        return (heard ?? .zero).adding(milliseconds: settings.patienceMilliseconds)
    }

    /// Draws the next election timeout from `[t, 2t)`; where the leader was lost, waits for this replica's next turn.
    mutating func resetElectionTimer() {
        if let turns {
            electionDeadline = now.adding(nanoseconds: turns.count * turns.nanoseconds + dither(turns))
        } else {
            let least = settings.electionTimeoutNanoseconds
            electionDeadline = now.adding(nanoseconds: least + UInt64.random(in: 0..<least, using: &generator))
        }
    }

    /// Whether this replica may campaign: it votes in the configuration in force, or did before one that may never be
    /// committed without it (dissertation section 4.2.2).
    var isPromotable: Bool {
        if pendingInstall != nil { return false }
        let committed = configurations.lastIndex { $0.index <= commitIndex } ?? 0
        return configurations[committed...].contains { $0.configuration.isVoter(id) }
    }

    /// Whether a leader was heard so recently that no other may be elected.
    var hasLiveLeader: Bool {
        if role == .leader { return true }
        guard let contact = lastLeaderContact else { return false }
        return now < contact.adding(milliseconds: settings.patienceMilliseconds)
    }

    /// Starts a pre-vote: asks whether a campaign would win, which disturbs no leader (dissertation section 9.6).
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
            // A pre-vote is not binding, so it does not wait for a persist.
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

    /// Whether this replica may vote at all now. It need not be a voter by its own configuration: an entry that it
    /// lacks may have made it one. The candidate decides which votes count (dissertation section 4.1).
    var mayVote: Bool { now >= votesFrom }

    /// A replica asks whether this one would vote for it (dissertation section 9.6). Answering changes no state.
    mutating func receivePreVoteRequest(lastLog: LogPosition, _ message: Message) {
        if !mayVote || hasLiveLeader { return }
        guard message.term > term, lastLog.isAtLeastAsUpToDate(as: log.last) else {
            send(.preVoteResponse(granted: false), to: message.from)
            return
        }
        // In the term of the sender's campaign, so that the sender can match the answer to it.
        let answer = Message(from: id, to: message.from, term: message.term, body: .preVoteResponse(granted: true))
        output.sendNow.append(answer)
    }

    /// A response to a pre-vote. A yes carries the next term, a no the voter's own.
    mutating func receivePreVoteResponse(granted: Bool, _ message: Message) {
        guard role == .preCandidate, message.term == (granted ? term.next : term) else { return }
        addBallot(message.from, granted: granted)
        countPreVotes()
    }

    /// A candidate asks for a vote (dissertation sections 3.4 and 3.6.1). The vote is durable before it is sent.
    mutating func receiveVoteRequest(lastLog: LogPosition, isTransfer: Bool, _ message: Message) {
        if !mayVote || hasLiveLeader && !isTransfer { return }
        let isFree = hardState.vote == message.from || hardState.vote == nil && leader == nil
        guard isFree, lastLog.isAtLeastAsUpToDate(as: log.last) else {
            send(.voteResponse(granted: false), to: message.from)
            return
        }
        precondition(role == .follower || role == .preCandidate, "a \(role) votes for \(message.from)")
        if role == .preCandidate { becomeFollower(term: term, leader: nil) }
        hardState.vote = message.from
        resetElectionTimer()
        send(.voteResponse(granted: true), to: message.from)
    }

    /// A response to a vote request. It is of this term, so it belongs to this campaign.
    mutating func receiveVoteResponse(granted: Bool, _ message: Message) {
        guard role == .candidate else { return }
        addBallot(message.from, granted: granted)
        countVotes()
    }

    /// Becomes a follower, in this term or a later one. The leader is nil while it is unknown.
    mutating func becomeFollower(term newTerm: Term, leader newLeader: ReplicaID?) {
        precondition(newTerm >= term, "back from term \(term) to \(newTerm)")
        precondition(newLeader != id, "replica \(id) follows itself")
        if newTerm > term {
            hardState = HardState(term: newTerm, vote: nil)
            owedMatch = nil
        }
        leader = newLeader
        ballots = []
        isTransferElection = false
        let led = role == .leader
        role = .follower
        guard led else { return }
        for read in reads.removeAll() {
            output.failedReads.append(FailedRead(id: read, leader: newLeader, reason: .notLeader))
        }
        followers = []
        uncommittedBytes = 0
        rounds = HeartbeatRounds()
        leaving = []
        isLeaseGivenUp = false
        resetElectionTimer()
    }

    /// Becomes leader and appends an empty entry. When that is committed, the leader knows what is committed
    /// (dissertation section 6.4).
    mutating func becomeLeader() {
        precondition(role == .candidate, "a \(role) cannot become leader")
        precondition(hardState == durableHardState, "leader in term \(term), which is not durable")
        precondition(hardState.vote == id, "leader without its own vote")
        role = .leader
        leader = id
        ballots = []
        owedMatch = nil
        lastLeaderContact = nil
        round = 0
        // Entries of earlier leaders count, too: they stay in memory until they are committed.
        uncommittedBytes = log.cachedBytes(after: commitIndex, through: log.last.index)
        precondition(followers.isEmpty && reads.count == 0, "a candidate with a leader's state")
        updateFollowers()
        heartbeatDeadline = nextHeartbeat
        appendOwn([.empty])
    }

    /// The leader of this term was heard.
    mutating func heardLeader(_ sender: ReplicaID) {
        precondition(role != .leader, "replicas \(id) and \(sender) both lead term \(term)")
        precondition(
            leader == nil || leader == sender, "two leaders of term \(term): \(sender), \(leader?.rawValue ?? 0)")
        if role != .follower || leader != sender { becomeFollower(term: term, leader: sender) }
        lastLeaderContact = now
        // A dead leader's last messages may be read after its end was noticed, so only a new connection ends the turns.
        let isStillLost = lostLeader.map { $0.id == sender && $0.term == term && !$0.isBack } ?? false
        lostLeader = nil
        resetElectionTimer()
        if isStillLost { loseLeader() }
    }

    /// Takes the configurations of new entries into force. Returns whether there were any.
    @discardableResult
    mutating func adoptConfigurations(of entries: [Entry]) -> Bool {
        var hasNew = false
        for entry in entries {
            guard case .configuration(let configuration) = entry.payload else { continue }
            configurations.append(ConfigurationAt(index: entry.index, configuration: configuration))
            hasNew = true
        }
        return hasNew
    }

    /// Goes back to the configuration before `index`.
    mutating func rollBackConfigurations(from index: LogIndex) {
        while let latest = configurations.last, latest.index >= index, configurations.count > 1 {
            configurations.removeLast()
        }
        precondition(configuration == configurations.last?.configuration, "no configuration before \(index)")
    }
}

/// Elections after the connection to a leader broke. The connections of a killed process break at once.
///
/// Election timeouts are long because silence may have many reasons, and random because a replica does not know which
/// others heard nothing either. A broken connection says more: the other followers of that leader most likely lost it,
/// too. So they campaign in turns, in an order that all know, and the first begins as soon as the promise to that
/// leader has expired. Turns only decide when a replica campaigns; the rules of voting stay the same.
extension Raft {
    /// There is a connection to a replica, for the first time or again after `peerDisconnected`. A leader that is heard
    /// over it is followed as before.
    public mutating func peerConnected(_ replica: ReplicaID) {
        if lostLeader?.id == replica { lostLeader?.isBack = true }
    }

    /// Waits for this replica's first turn, if that comes before its election timeout is over.
    mutating func loseLeader() {
        precondition(role == .follower, "replica \(id) lost its leader as a \(role)")
        guard let leader, let contact = lastLeaderContact else { return }
        let promised = max(now, contact.adding(milliseconds: settings.patienceMilliseconds))
        lostLeader = LostLeader(
            id: leader, term: term, until: promised.adding(milliseconds: settings.electionTimeoutMilliseconds))
        guard let turns else { return }
        electionDeadline = min(
            electionDeadline, promised.adding(nanoseconds: turns.place * turns.nanoseconds + dither(turns)))
    }

    /// Nil if no leader was lost recently in this term, or this replica is not a voter of the configuration in force.
    var turns: Turns? {
        guard let lost = lostLeader, lost.term == term, now < lost.until else { return nil }
        let voters = configuration.all.filter { configuration.isVoter($0) && $0 != lost.id }
        guard let place = voters.firstIndex(of: id) else { return nil }
        let count = UInt64(voters.count)
        // Counted from the first one's place.
        let turn = (UInt64(place) + count - settings.firstTurn % count) % count
        return Turns(count: count, place: turn, nanoseconds: settings.heartbeatIntervalMilliseconds * 1_000_000)
    }

    /// At most half a turn, so that two replicas whose turns began at different times do not always collide.
    mutating func dither(_ turns: Turns) -> UInt64 {
        UInt64.random(in: 0...turns.nanoseconds / 2, using: &generator)
    }
}

/// The order of campaigns: `count` replicas have `nanoseconds` each, and this one's turn is number `place`.
struct Turns: Hashable, Sendable {
    var count: UInt64
    var place: UInt64
    var nanoseconds: UInt64
}

/// A leader whose connection broke, in the term in which it led.
struct LostLeader: Hashable, Sendable {
    var id: ReplicaID
    var term: Term
    /// After this time, replicas wait as if the connection had not told them anything.
    var until: MonotonicTime
    /// Whether there is a connection again. It may be to a restarted process that no longer leads.
    var isBack = false
}

extension Raft {
    /// Asks a follower to take over at once. Nothing is sent unless this replica leads and the follower is a voter that
    /// has the whole log; try again later then.
    ///
    /// It refuses no proposals. The caller should hold them back for an election timeout, or until another leads: with
    /// entries that the target lacks it would lose its election, and the group would wait for another. Safety does not
    /// depend on it. The leader continues until it sees a greater term, but without a lease.
    public mutating func transferLeadership(to target: ReplicaID, now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader, configuration.voters.contains(target), hasWholeLog(target) { askToTakeOver(target) }
        return finish()
    }

    mutating func askToTakeOver(_ target: ReplicaID) {
        precondition(role == .leader, "a \(role) hands over")
        isLeaseGivenUp = true
        send(.timeoutNow, to: target)
    }

    private func hasWholeLog(_ target: ReplicaID) -> Bool {
        followers.contains { $0.id == target && $0.state == .replicate && $0.match == log.last.index }
    }

    /// The leader hands over: campaigns at once, without a pre-vote (dissertation section 3.10).
    mutating func receiveTimeoutNow(_ message: Message) {
        guard role == .follower, leader == message.from, isPromotable else { return }
        campaign(isTransfer: true)
    }
}
