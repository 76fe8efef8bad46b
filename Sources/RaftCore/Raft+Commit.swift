extension Raft {
    /// What a leader tells of what is committed: nothing that it could lose itself.
    var announcedCommit: LogIndex { min(commitIndex, log.durable) }

    /// A leader of this term said that so much is committed.
    mutating func heardCommit(_ index: LogIndex, from leader: ReplicaID) {
        guard let known = leaderCommit, known.leader == leader, known.term == term else {
            leaderCommit = LeaderCommit(leader: leader, term: term, index: index)
            return
        }
        leaderCommit?.index = max(known.index, index)
    }

    /// The shell made durable everything up to `position` and `hardState`.
    ///
    /// Persists are reported in the order in which they were asked for; some may be left out in favour of a later
    /// one. A position that the log no longer holds is ignored, `hardState` is not.
    /// - Parameter hardState: what is durable along with `position`, not something newer.
    public mutating func persisted(
        _ position: LogPosition, hardState persisted: HardState, now: MonotonicTime
    ) -> Effects {
        begin(now)
        precondition(persisted.term <= term, "persisted term \(persisted.term) in term \(term)")
        precondition(
            persisted.term >= durableHardState.term, "persisted term \(persisted.term) after \(durableHardState.term)")
        durableHardState = persisted
        log.persisted(position, inTerm: persisted.term)
        switch role {
        case .leader: advanceCommit()
        case .candidate: countVotes()
        case .preCandidate: break
        case .follower: payOwedMatch()
        }
        trim()
        return finish()
    }

    /// The state machine holds the effects of everything up to `index`; memory may be freed.
    /// - Precondition: `index` was allowed by `Effects.commitIndex`.
    public mutating func applied(_ index: LogIndex) {
        precondition(index <= reportedCommit, "applied \(index), but only \(reportedCommit) was allowed")
        // A report from before a snapshot was installed is late, not wrong.
        appliedIndex = max(appliedIndex, index)
        trim()
    }

    /// Commits what a majority holds durably, counting only entries of this term (dissertation section 3.6.2).
    mutating func advanceCommit() {
        precondition(role == .leader, "a \(role) counts replicas")
        let reached = Quorum.reached(configuration) { voter in
            voter == id ? log.durable : followers.first { $0.id == voter }?.match ?? .zero
        }
        guard let reached, reached > commitIndex, log.term(at: reached) == term else { return }
        let wasReadable = canServeReads
        // Entries that are not committed leave memory no more once they are in it.
        uncommittedBytes -= log.cachedBytes(after: commitIndex, through: reached)
        precondition(uncommittedBytes >= 0, "\(uncommittedBytes) bytes uncommitted")
        commitIndex = reached
        trim()
        if !wasReadable { startRound() }
        advanceMembership()
    }

    /// Learns from the leader that everything up to `index` is committed.
    mutating func commitAsFollower(through index: LogIndex) {
        precondition(role == .follower, "a \(role) is told what is committed")
        if index <= commitIndex || pendingInstall != nil { return }
        precondition(
            index <= log.last.index,
            "committed to \(index), but the log ends at \(log.last): it lost entries that it had acknowledged")
        commitIndex = index
    }

    /// Tells the leader of a match that was not durable when it asked.
    mutating func payOwedMatch() {
        guard let owed = owedMatch, log.durable >= owed.index, hardState == durableHardState else { return }
        owedMatch = nil
        guard let leader, log.contains(owed) else { return }
        send(.appendResponse(.accepted(match: owed.index)), to: leader)
    }

    /// Frees memory: entries that are applied first, entries that are only committed if there are far too many.
    mutating func trim() {
        log.trim(toBytes: settings.cacheBytesMax, keepingAfter: appliedIndex)
        log.trim(toBytes: 4 * settings.cacheBytesMax, keepingAfter: commitIndex)
    }
}
