extension Raft {
    /// The log up to `mark` is gone from disk.
    /// - Precondition: `mark` is applied, and is what the log and its configurations say.
    public mutating func compacted(through mark: SnapshotMark) {
        let position = mark.position
        precondition(position.index <= appliedIndex, "compacted \(position), but applied only \(appliedIndex)")
        guard position.index > log.snapshot.index else { return }
        precondition(log.contains(position), "compacted \(position), which the log does not hold")
        while configurations.count > 1, configurations[1].index <= position.index { configurations.removeFirst() }
        precondition(
            configurations[0].configuration == mark.configuration,
            "the configuration at \(position) came with entry \(configurations[0].index) and is not the mark's")
        configurations[0].index = position.index
        log.compact(through: position.index)
    }

    /// A whole snapshot has come from the leader and lies ready. It is wanted if these effects say `install`;
    /// otherwise the shell throws it away.
    /// - Parameter term: the leader's when it sent the snapshot; not less than that of the snapshot's last entry.
    public mutating func snapshotReceived(
        _ mark: SnapshotMark, from sender: ReplicaID, term senderTerm: Term, now: MonotonicTime
    ) -> Effects {
        begin(now)
        guard sender != id else { return finish() }
        guard senderTerm >= term else {
            send(.heartbeatResponse(round: 0), to: sender)
            return finish()
        }
        let position = mark.position
        // A leader that was deposed while it made the snapshot, and has entries of the next one in it.
        if position.term > senderTerm { return finish() }
        if senderTerm > term { becomeFollower(term: senderTerm, leader: sender) }
        heardLeader(sender)
        if pendingInstall != nil { return finish() }
        if position.index <= commitIndex {
            acknowledge(commitIndex)
        } else if log.contains(position) {
            // The log has it all; only the news that it is committed was missing.
            commitAsFollower(through: position.index)
            acknowledge(position.index)
        } else {
            pendingInstall = mark
            owedMatch = nil
            output.install = mark
        }
        return finish()
    }

    /// The snapshot is the state machine now, and the log is empty after its mark, durably.
    /// - Precondition: `mark` is the one that `Effects.install` named last.
    public mutating func snapshotInstalled(_ mark: SnapshotMark, now: MonotonicTime) -> Effects {
        begin(now)
        precondition(pendingInstall == mark, "installed \(mark.position), which was not asked for")
        precondition(mark.position.index > commitIndex, "installed \(mark.position), committed \(commitIndex)")
        pendingInstall = nil
        log.reset(to: mark.position, term: term)
        configurations = [ConfigurationAt(index: mark.position.index, configuration: mark.configuration)]
        commitIndex = mark.position.index
        appliedIndex = commitIndex
        reportedCommit = commitIndex
        if leader != nil { acknowledge(commitIndex) }
        return finish()
    }

    /// The transfer of a snapshot that `Effects.snapshots` asked for has ended.
    /// - Parameter through: where the snapshot stands that the follower has whole; nil if it has not. That it is
    ///   installed shows in its answers to appends, which begin there: what is before may be gone from the log, and
    ///   would ask for another snapshot.
    public mutating func snapshotSent(to replica: ReplicaID, through: LogIndex?, now: MonotonicTime) -> Effects {
        begin(now)
        guard role == .leader, let offset = followers.firstIndex(where: { $0.id == replica }),
            followers[offset].state == .snapshot
        else { return finish() }
        let match = followers[offset].match
        let held = max(through ?? .zero, match)
        precondition(held <= log.last.index, "a snapshot at \(held), but the log ends at \(log.last)")
        followers[offset].becomeProbe(next: held.next)
        // The answer to the next heartbeat tells whether the follower can be reached.
        followers[offset].pause()
        return finish()
    }

    /// Tells the leader of a match up to `index`, as far as it is durable now, and of the rest when it is.
    mutating func acknowledge(_ index: LogIndex) {
        precondition(role == .follower, "a \(role) acknowledges entries")
        guard let leader, let indexTerm = log.term(at: index) else {
            preconditionFailure("nobody to acknowledge \(index) to, or no such entry: \(log.snapshot)...\(log.last)")
        }
        send(.appendResponse(.accepted(match: min(index, log.durable))), to: leader)
        let owed = LogPosition(index: index, term: indexTerm)
        if index > log.durable { owedMatch = owedMatch.map { $0.index > index ? $0 : owed } ?? owed }
    }
}
