extension Raft {
    /// Time went by. To be called at or after the `wakeAt` of the latest effects; calling it more often does no harm.
    public mutating func tick(now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader {
            if self.now >= quorumDeadline {
                becomeFollower(term: term, leader: nil)
            } else {
                expireTransfer()
                if self.now >= heartbeatDeadline { startRound() }
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

    /// When a leader that hears nothing more gives up (dissertation section 6.2): when the promises of the majority
    /// that was last heard are over, and another may lead.
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

    /// Whether a leader was heard so short a time ago that no other may be elected.
    var hasLiveLeader: Bool {
        if role == .leader { return true }
        guard let contact = lastLeaderContact else { return false }
        return now < contact.adding(milliseconds: settings.patienceMilliseconds)
    }

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

    /// Whether this replica may vote for anyone at all now. It need not be a voter by its own configuration: an entry
    /// that it lacks may have made it one, and whose votes count is for the candidate to know (dissertation section
    /// 4.1).
    var mayVote: Bool { now >= votesFrom }

    /// Someone asks whether this replica would vote for it (dissertation section 9.6). Answering changes nothing here.
    mutating func receivePreVoteRequest(lastLog: LogPosition, _ message: Message) {
        if !mayVote || hasLiveLeader { return }
        guard message.term > term, lastLog.isAtLeastAsUpToDate(as: log.last) else {
            send(.preVoteResponse(granted: false), to: message.from)
            return
        }
        // In the term that the sender would campaign in, so that it can tell which campaign is meant.
        let answer = Message(from: id, to: message.from, term: message.term, body: .preVoteResponse(granted: true))
        output.sendNow.append(answer)
    }

    /// Someone says whether it would vote for this replica. A yes is in the next term, a no in the voter's own.
    mutating func receivePreVoteResponse(granted: Bool, _ message: Message) {
        guard role == .preCandidate, message.term == (granted ? term.next : term) else { return }
        addBallot(message.from, granted: granted)
        countPreVotes()
    }

    /// Someone wants to lead this term (dissertation sections 3.4 and 3.6.1). The vote is durable before it is told.
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

    /// Someone voted. The answer is of this term, so it is to this campaign.
    mutating func receiveVoteResponse(granted: Bool, _ message: Message) {
        guard role == .candidate else { return }
        addBallot(message.from, granted: granted)
        countVotes()
    }

    /// Follows `leader`, or nobody yet, in this term or a later one.
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
        transfer = nil
        leaving = []
        isLeaseGivenUp = false
        resetElectionTimer()
    }

    /// Leads: appends an empty entry, by whose commit it learns what is committed (dissertation section 6.4).
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
        // What earlier leaders left counts, too: it stays in memory until it is committed.
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
        // What a dead leader sent may be read after its end was noticed, so only a connection that is back ends the
        // turns.
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

/// Elections after the connection to a leader broke, which a killed process's does at once.
///
/// Election timeouts are long because silence may have many reasons, and random because nobody knows who else heard
/// nothing. A broken connection says more: those who follow the same leader most likely lost it too. So they take
/// turns, in an order that all know, and the first begins as soon as the promise to that leader is over. Turns only say
/// when a replica campaigns; votes are given as ever.
extension Raft {
    /// A leader whose connection broke, in the term in which it led.
    struct LostLeader: Hashable, Sendable {
        var id: ReplicaID
        var term: Term
        /// Who has won nothing by then waits as if there had been no connection.
        var until: MonotonicTime
        /// There is a connection again. It may be to a process that knows nothing of having led.
        var isBack = false
    }

    /// Who campaigns when: `count` replicas, each for `nanoseconds`, this one at `place`.
    struct Turns: Hashable, Sendable {
        var count: UInt64
        var place: UInt64
        var nanoseconds: UInt64
    }

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

    /// Nil where no leader was lost in this term, or a while ago, and for who is no voter of the configuration in
    /// force.
    var turns: Turns? {
        guard let lost = lostLeader, lost.term == term, now < lost.until else { return nil }
        let voters = configuration.all.filter { configuration.isVoter($0) && $0 != lost.id }
        guard let place = voters.firstIndex(of: id) else { return nil }
        let count = UInt64(voters.count)
        // Counted from the first one's place.
        let turn = (UInt64(place) + count - settings.firstTurn % count) % count
        return Turns(count: count, place: turn, nanoseconds: settings.heartbeatIntervalMilliseconds * 1_000_000)
    }

    /// At most half a turn, so that two whose turns began at different times do not meet each time.
    mutating func dither(_ turns: Turns) -> UInt64 {
        UInt64.random(in: 0...turns.nanoseconds / 2, using: &generator)
    }
}
