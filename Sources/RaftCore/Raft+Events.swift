/// What the shell asks for.
extension Raft {
    /// Appends commands, which may then be committed or, after a change of leader, lost: as many from the first on as
    /// may be uncommitted. The others were not appended, and proposing them again later is safe.
    ///
    /// - Returns: where they are, how many they are, and what to do.
    /// - Throws: `ProposalError` if nothing was appended.
    /// - Precondition: there is at least one command.
    public mutating func propose(
        _ commands: [[UInt8]], now: MonotonicTime
    ) throws(ProposalError) -> (proposal: Proposal, effects: Effects) {
        precondition(!commands.isEmpty, "a proposal of no commands")
        guard let payloads = try leadership?.admit(commands, settings) else { throw .notLeader(hint: leader) }
        begin(now)
        let proposal = Proposal(first: replica.nextEntry, count: payloads.count)
        leadership?.append(payloads, in: &replica)
        return (proposal, finish())
    }

    /// Changes the group's members from `base`, the configuration in force, to `target`.
    ///
    /// A replica joins as a learner first: it starts with `RestoredState(bootstrap: Configuration(voters: []))`, and
    /// its log or a snapshot comes from the leader. It can be made a voter when it has caught up. Any number of voters
    /// may change at once.
    ///
    /// The change is done when `configuration` is `target` and `isConfigurationCommitted`. The entry whose place is
    /// returned is only its beginning; like any entry it may be lost with its leader, and the group is then where it
    /// was. A leader that is not in `target` hands over and follows when the change is done.
    /// - Throws: `ConfigurationChangeError`, and then nothing was appended.
    public mutating func propose(
        configuration target: Configuration, replacing base: Configuration, now: MonotonicTime
    ) throws(ConfigurationChangeError) -> (proposal: Proposal, effects: Effects) {
        begin(now)
        let proposal = Proposal(first: replica.nextEntry, count: 1)
        guard try leadership?.change(base, to: target, in: &replica) != nil else { throw .notLeader(hint: leader) }
        return (proposal, finish())
    }

    /// Asks for an index that a linearizable read must wait for (dissertation section 6.4): by a round of heartbeats
    /// (ReadIndex), or at once while `RaftSettings.lease` gives a lease.
    ///
    /// These or later effects hold a `ReadReady` or a `FailedRead` with this id, exactly one.
    /// - Parameter now: with a lease, the clock as read *after* the request arrived; an earlier reading could fall in a
    ///   lease that has expired since.
    public mutating func read(_ id: UInt64, now: MonotonicTime) -> Effects {
        begin(now)
        if role != .leader { fail(id) }
        leadership?.read(id, in: &replica)
        return finish()
    }

    /// Says that this replica does not lead, or no longer.
    mutating func fail(_ read: UInt64) {
        replica.outbox.effects.failedReads.append(FailedRead(id: read, leader: leader, reason: .notLeader))
    }

    /// Asks a follower to take over at once. Nothing is sent unless this replica leads and the follower is a voter that
    /// has the whole log; try again later then.
    ///
    /// It refuses no proposals. The caller should hold them back for an election timeout, or until another leads: with
    /// entries that the target lacks it would lose its election, and the group would wait for another. Safety does not
    /// depend on it. The leader continues until it sees a greater term, but without a lease.
    public mutating func transferLeadership(to target: ReplicaID, now: MonotonicTime) -> Effects {
        begin(now)
        leadership?.transfer(to: target, in: &replica)
        return finish()
    }
}

/// What the shell reports of the disk and the state machine.
extension Raft {
    /// The shell made durable everything up to `position` and `hardState`.
    ///
    /// Persists are reported in the order in which they were asked for; some may be left out in favour of a later
    /// one. A position that the log no longer holds is ignored, `hardState` is not.
    /// - Parameter hardState: what is durable along with `position`, not something newer.
    public mutating func persisted(_ position: LogPosition, hardState: HardState, now: MonotonicTime) -> Effects {
        begin(now)
        replica.persisted(position, hardState)
        switch role {
        case .leader:
            if leadership?.advanceCommit(in: &replica) == .isOver { becomeFollower(term: term, leader: nil) }
        case .candidate: countVotes()
        case .preCandidate: break
        case .follower: replica.payOwedMatch(to: leader)
        }
        replica.trim()
        return finish()
    }

    /// The state machine holds the effects of everything up to `index`; memory may be freed.
    /// - Precondition: `index` was allowed by `Effects.commitIndex`.
    public mutating func applied(_ index: LogIndex) { replica.applied(index) }

    /// The log up to `mark` is gone from disk.
    /// - Precondition: `mark` is applied, and is what the log and its configurations say.
    public mutating func compacted(through mark: SnapshotMark) { replica.compacted(through: mark) }

    /// Entries that a `LoadRequest` asked for were read.
    ///
    /// - Parameter entries: from `request.from` without a gap, at least one; none if `request.from` is compacted
    ///   away, and then the follower gets a snapshot.
    public mutating func loaded(_ request: LoadRequest, entries: [Entry], now: MonotonicTime) -> Effects {
        begin(now)
        leadership?.loaded(request, entries, in: &replica)
        return finish()
    }

    /// A whole snapshot has come from the leader and lies ready. It is wanted if these effects say `install`;
    /// otherwise the shell throws it away.
    /// - Parameter term: the leader's when it sent the snapshot; not less than that of the snapshot's last entry.
    public mutating func snapshotReceived(
        _ mark: SnapshotMark, from sender: ReplicaID, term senderTerm: Term, now: MonotonicTime
    ) -> Effects {
        begin(now)
        guard sender != id else { return finish() }
        if senderTerm < term {
            send(.heartbeatResponse(round: 0), to: sender)
        } else if mark.position.term <= senderTerm {
            // Not of a leader that was deposed while it made the snapshot, and has entries of the next one in it.
            if senderTerm > term { becomeFollower(term: senderTerm, leader: sender) }
            heardLeader(sender)
            replica.receive(mark, from: sender)
        }
        return finish()
    }

    /// The snapshot is the state machine now, and the log is empty after its mark, durably.
    /// - Precondition: `mark` is the one that `Effects.install` named last.
    public mutating func snapshotInstalled(_ mark: SnapshotMark, now: MonotonicTime) -> Effects {
        begin(now)
        replica.installed(mark, from: leader)
        return finish()
    }

    /// The transfer of a snapshot that `Effects.snapshots` asked for has ended.
    /// - Parameter through: where the snapshot stands that the follower has whole; nil if it has not. That it is
    ///   installed shows in its answers to appends, which begin there: what is before may be gone from the log, and
    ///   would ask for another snapshot.
    public mutating func snapshotSent(to follower: ReplicaID, through: LogIndex?, now: MonotonicTime) -> Effects {
        begin(now)
        leadership?.snapshotSent(to: follower, through: through, in: replica)
        return finish()
    }
}

/// What the shell reports of connections and of the clock.
extension Raft {
    /// The connection to a replica broke: appends under way are taken for lost, and a leader for dead unless it is
    /// heard again soon. A transport that cannot tell reports nothing; then heartbeats and election timeouts find it
    /// out. One that can reports with `peerConnected` that there is a connection again.
    public mutating func peerDisconnected(_ peer: ReplicaID, now: MonotonicTime) -> Effects {
        begin(now)
        leadership?.disconnected(peer)
        if role == .follower, peer == leader { timer.lost(peer, by: replica) }
        return finish()
    }

    /// There is a connection to a replica, for the first time or again after `peerDisconnected`. A leader that is heard
    /// over it is followed as before.
    public mutating func peerConnected(_ peer: ReplicaID) { timer.connected(peer) }

    /// The clock may have stood still: the lease ends. The next round that a majority answers gives another.
    public mutating func clockJumped() { leadership?.clockJumped() }
}
