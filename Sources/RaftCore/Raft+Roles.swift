extension Raft {
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
        // What a dead leader sent may be read after its end was noticed, so only a connection that is back ends the turns.
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
