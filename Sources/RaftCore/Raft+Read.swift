extension Raft {
    /// Asks for an index that a linearizable read must wait for (dissertation section 6.4): by a round of heartbeats
    /// (ReadIndex), or at once while `RaftSettings.lease` gives a lease.
    ///
    /// These or later effects hold a `ReadReady` or a `FailedRead` with this id, exactly one.
    /// - Parameter now: with a lease, the clock as read *after* the request came in; an earlier reading could fall in a
    ///   lease that is over by now.
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
        if canServeReads && (isOnlyVoter || isLeaseHeld) {
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
        if let lease = settings.lease { rounds.begin(round, now: now, lease: lease) }
        if canServeReads { reads.begin(round: round, index: commitIndex) }
        for follower in followers {
            send(.heartbeatRequest(commit: min(announcedCommit, follower.match), round: round), to: follower.id)
        }
        heartbeatDeadline = nextHeartbeat
        askTarget()
        advanceReads()
    }

    /// The next multiple of the interval: all groups that a node leads are then due at the same times, so that their heartbeats to another
    /// node can share a frame.
    var nextHeartbeat: MonotonicTime {
        let interval = settings.heartbeatIntervalMilliseconds * 1_000_000
        return MonotonicTime(nanoseconds: now.nanoseconds - now.nanoseconds % interval).adding(nanoseconds: interval)
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
