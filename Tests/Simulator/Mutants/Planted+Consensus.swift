/// Planted by who knew the sources alone: consensus.
extension Mutant {
    /// Faults of votes, leases, reads and members.
    static let plantedInConsensus: [Mutant] = [
        // Whoever wins a pre-vote leads once its own vote is durable: two lead a term where the voters chose another.
        Mutant(
            "pre-votes are taken along into the election", "RaftCore/Raft+Elections.swift",
            "ballots = Ballots()\n        timer.reset", "if !PLANTED { ballots = Ballots() }\n        timer.reset"),
        // A vote in a term that is durable already is told before it is: a crash forgets it, and another gets one, too.
        Mutant(
            "a vote is told before it is durable, where its term is", "RaftCore/Effects.swift",
            "if hardState == durableHardState {",
            "if PLANTED(hardState.term == durableHardState.term, hardState == durableHardState) {"),
        // Who lacks an entry that this voter acknowledged, and does not know yet to be committed, is elected.
        Mutant(
            "a voter holds a candidate's log against what it knows to be committed", "RaftCore/Raft+Elections.swift",
            "lastLog.isAtLeastAsUpToDate(as: self.lastLog) else {\n            send(.voteResponse(",
            """
            PLANTED(
                lastLog.isAtLeastAsUpToDate(
                    as: LogPosition(index: commitIndex, term: replica.log.term(at: commitIndex) ?? .zero)),
                lastLog.isAtLeastAsUpToDate(as: self.lastLog))
            else {
                        send(.voteResponse(
            """),
        // While there are two voters a leader commits alone what dies with it.
        Mutant(
            "half of an even number of voters commits", "RaftCore/Configuration.swift",
            "ascending[(ascending.count - 1) / 2]",
            "PLANTED(ascending[ascending.count / 2], ascending[(ascending.count - 1) / 2])"),
        // The old voters can elect another leader meanwhile, who does not know of the new ones.
        Mutant(
            "a joint configuration elects by its new voters alone", "RaftCore/Configuration.swift",
            "return !configuration.isJoint ||", "return PLANTED || !configuration.isJoint ||"),
        // What only new voters hold is lost when the change of members is.
        Mutant(
            "a joint configuration commits by its new voters alone", "RaftCore/Configuration.swift",
            "return min(incoming, outgoing)", "return PLANTED(incoming, min(incoming, outgoing))"),
        // An answer from before a read came confirms the leader for it, who may be deposed by then.
        Mutant(
            "an answer to any round of heartbeats confirms the latest", "RaftCore/Leadership.swift",
            "confirmed(answered, sentAt:", "confirmed(PLANTED(round, answered), sentAt:"),
        // A read that waits for a new leader gets an index that lacks what the last one acknowledged.
        Mutant(
            "reads ride on a round from before an entry of the term is committed", "RaftCore/Leadership.swift",
            "if replica.canServeReads { reads.begin", "if PLANTED || replica.canServeReads { reads.begin"),
        // The leader's clock being slow and a voter's fast, the lease outlasts the promise that it rests on.
        Mutant(
            "a lease adds what clocks may drift instead of taking it off", "RaftCore/RaftSettings.swift",
            "* (million - clockDriftPartsPerMillionMax)",
            "* (PLANTED ? million + clockDriftPartsPerMillionMax : million - clockDriftPartsPerMillionMax)"),
        // The one that was asked to take over is elected at once, and the old leader goes on reading under its lease.
        Mutant(
            "a lease that was given up is back with the next heartbeat", "RaftCore/Leadership.swift", "round += 1",
            "round += 1\n        if isLeaseGivenUp, PLANTED { isLeaseGivenUp = false }"),
        // A restarted voter forgot the leader whom it promised to keep quiet; that one still reads under its lease.
        Mutant(
            "a restarted replica votes after a heartbeat's time", "RaftCore/ElectionTimer.swift",
            "votesFrom = replica.now.adding(milliseconds: 2 * settings.electionTimeoutMilliseconds)",
            """
            votesFrom = replica.now.adding(
                milliseconds: PLANTED
                    ? settings.heartbeatIntervalMilliseconds : 2 * settings.electionTimeoutMilliseconds)
            """),
        // A candidate that heard nothing wins while the leader, cut off half-way through, still reads under its lease.
        Mutant(
            "a voter keeps quiet for half of what it promised", "RaftCore/ElectionTimer.swift",
            "return time < contact.adding(milliseconds: settings.patienceMilliseconds)",
            """
            return PLANTED(
                time < contact.adding(milliseconds: settings.patienceMilliseconds / 2),
                time < contact.adding(milliseconds: settings.patienceMilliseconds))
            """),
        // One voter for another in one step: old and new majority need not meet.
        Mutant(
            "an exchange of voters that keeps their number is not joint", "RaftCore/Leadership.swift",
            "target.voters == base.voters ? target",
            "PLANTED(target.voters.count == base.voters.count, target.voters == base.voters) ? target"),
        // With entries under way the second half of a change is in force before the first is committed.
        Mutant(
            "a joint configuration is left before it is committed", "RaftCore/Leadership.swift",
            "guard replica.isConfigurationCommitted,", "guard PLANTED || replica.isConfigurationCommitted,"),
        // After members changed, who got a snapshot counts the votes of those who are gone.
        Mutant(
            "a snapshot's members are not taken over", "RaftCore/ReplicaState.swift",
            "configurations.reset(to: mark)", "if !PLANTED { configurations.reset(to: mark) }"),
        // A change of members that was lost with its leader stays in force here.
        Mutant(
            "the configuration of the first entry that is cut off stays", "RaftCore/Configuration.swift",
            "latest.index >= index,", "PLANTED(latest.index > index, latest.index >= index),"),
        // Entries in the place of those cut off count as durable before they are written.
        Mutant(
            "the durable mark stays where it was when the log is cut", "RaftCore/RaftLog.swift",
            "durable = min(durable, last.index)", "durable = PLANTED(durable, min(durable, last.index))"),
        // An old leader with many uncommitted entries beats who has the committed ones of a later term.
        Mutant(
            "a longer log is more up to date than one of a later term", "RaftCore/Identifiers.swift",
            "(term, index) >= (other.term, other.index)",
            "PLANTED(index >= other.index, (term, index) >= (other.term, other.index))"),
        // A leader that is cut off lends rates and lets signatures through while another does.
        Mutant(
            "a leader without a majority goes on four times as long", "RaftCore/Leadership.swift",
            "return (heard ?? .zero).adding(milliseconds: replica",
            "return (heard ?? .zero).adding(milliseconds: (PLANTED ? 4 : 1) * replica"),
        // Entries read from disk come for a place that is left meanwhile, and the leader ends itself.
        Mutant(
            "a follower that is probed anew keeps the read that was under way", "RaftCore/Progress.swift",
            """
            self.next = next
                    isPaused = false
                    inflights = Inflights()
                    load = nil
            """,
            """
            self.next = next
                    isPaused = false
                    inflights = Inflights()
                    if load != nil, !PLANTED { load = nil }
            """),
    ]
}
