extension Raft {
    /// Asks for an index that a linearizable read must wait for (ReadIndex, dissertation section 6.4).
    ///
    /// These or later effects hold a `ReadReady` or a `FailedRead` with this id, exactly one.
    public mutating func read(_ id: UInt64, now: MonotonicTime) -> Effects {
        begin(now)
        guard role == .leader else {
            output.failedReads.append(FailedRead(id: id, leader: leader, reason: .notLeader))
            return finish()
        }
        guard reads.count < settings.pendingReadsMax else {
            output.failedReads.append(FailedRead(id: id, leader: leader, reason: .overloaded))
            return finish()
        }
        if canServeReads && isOnlyVoter {
            output.reads.append(ReadReady(id: id, index: commitIndex))
            return finish()
        }
        reads.add(id)
        if canServeReads && reads.batches.isEmpty { startRound() }
        return finish()
    }

    /// Whether the leader knows what is committed: not before an entry of its own term is.
    var canServeReads: Bool { log.term(at: commitIndex) == term }

    /// Sends everyone a heartbeat; the reads that wait ride on it.
    mutating func startRound() {
        precondition(role == .leader, "a \(role) sends heartbeats")
        round += 1
        if canServeReads { reads.begin(round: round, index: commitIndex) }
        for follower in followers {
            send(.heartbeatRequest(commit: min(commitIndex, follower.match), round: round), to: follower.id)
        }
        heartbeatDeadline = now.adding(milliseconds: settings.heartbeatIntervalMilliseconds)
        advanceReads()
    }

    /// Releases the reads whose round a majority has answered, and starts a round for those that came since.
    mutating func advanceReads() {
        let confirmed = Quorum.reached(configuration) { voter in
            voter == id ? round : followers.first { $0.id == voter }?.confirmedRound ?? 0
        }
        guard let confirmed else { return }
        precondition(confirmed <= round, "round \(confirmed) is confirmed, \(round) is the latest")
        output.reads += reads.confirm(through: confirmed)
        if canServeReads && reads.batches.isEmpty && !reads.waiting.isEmpty { startRound() }
    }
}
