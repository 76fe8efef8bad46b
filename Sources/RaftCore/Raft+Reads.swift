extension Raft {
    /// Asks for an index that a linearizable read must wait for (dissertation section 6.4): by a round of heartbeats
    /// (ReadIndex), or at once while `RaftSettings.lease` gives a lease.
    ///
    /// These or later effects hold a `ReadReady` or a `FailedRead` with this id, exactly one.
    /// - Parameter now: with a lease, the clock as read *after* the request arrived; an earlier reading could fall in a
    ///   lease that has expired since.
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

    /// Sends all followers a heartbeat. Waiting reads are confirmed by its answers.
    mutating func startRound() {
        precondition(role == .leader, "a \(role) sends heartbeats")
        round += 1
        if let lease = settings.lease { rounds.begin(round, now: now, lease: lease) }
        if canServeReads { reads.begin(round: round, index: commitIndex) }
        for follower in followers {
            send(.heartbeatRequest(commit: min(announcedCommit, follower.match), round: round), to: follower.id)
        }
        heartbeatDeadline = nextHeartbeat
        advanceReads()
    }

    /// The next multiple of the interval: all groups that a node leads are then due at the same times, so that their
    /// heartbeats to another node can share a frame.
    var nextHeartbeat: MonotonicTime {
        let interval = settings.heartbeatIntervalMilliseconds * 1_000_000
        return MonotonicTime(nanoseconds: now.nanoseconds - now.nanoseconds % interval).adding(nanoseconds: interval)
    }

    /// Releases reads whose round a majority answered, and starts a round for newer ones.
    mutating func advanceReads() {
        let confirmed = Quorum.reached(configuration) { voter in
            voter == id ? round : followers.first { $0.id == voter }?.confirmedRound ?? 0
        }
        guard let confirmed else { return }
        precondition(confirmed <= round, "round \(confirmed) is confirmed, \(round) is the latest")
        output.reads += reads.confirm(through: confirmed)
        if canServeReads && reads.batches.isEmpty && !reads.waiting.isEmpty { startRound() }
    }

    /// The leader of this term lives, and tells what is committed of the entries it knows to be here.
    mutating func receiveHeartbeatRequest(commit: LogIndex, round: UInt64, _ message: Message) {
        heardLeader(message.from)
        heardCommit(commit, from: message.from)
        commitAsFollower(through: commit)
        send(.heartbeatResponse(round: round), to: message.from)
    }

    /// A follower lives and follows. That ends the wait of a probe, and shows whether appends were lost.
    mutating func receiveHeartbeatResponse(round answered: UInt64, _ message: Message) {
        guard role == .leader, let offset = followers.firstIndex(where: { $0.id == message.from }) else { return }
        precondition(answered <= round, "\(message.from) answers round \(answered), the latest is \(round)")
        followers[offset].lastHeard = now
        followers[offset].confirmed(answered, sentAt: rounds.sentAt(answered))
        followers[offset].resume()
        if isStalled(followers[offset]) {
            followers[offset].becomeProbe(next: followers[offset].match.next)
        }
        replicate(to: offset)
        advanceReads()
    }

    /// Whether appends under way have brought nothing for two heartbeat intervals, though the follower answers. If it
    /// is merely slow, probing costs one append that it has already.
    private func isStalled(_ follower: Progress) -> Bool {
        guard follower.state == .replicate, !follower.inflights.isEmpty else { return false }
        return now >= follower.lastProgress.adding(milliseconds: 2 * settings.heartbeatIntervalMilliseconds)
    }

    /// When the lease ends (dissertation section 6.4.1). Until then no other replica leads or commits anything. Nil if
    /// this replica does not lead, has no lease, or gave it up.
    /// It is counted from the *sending* of the latest round that a majority of the configuration in force has answered;
    /// each member's answer stands for itself, so the count holds across changes of members. `DESIGN.md` has the proof.
    var leaseEnd: MonotonicTime? {
        guard role == .leader, let lease = settings.lease, !isLeaseGivenUp else { return nil }
        // One more than the time, so that 0 means never, whatever the clock's origin.
        let since = Quorum.reached(configuration) { voter in
            let sentAt = voter == id ? now : followers.first { $0.id == voter }?.confirmedAt
            return sentAt.map { $0.adding(nanoseconds: 1).nanoseconds } ?? 0
        }
        guard let since, since > 0 else { return nil }
        return MonotonicTime(nanoseconds: since - 1).adding(nanoseconds: lease.nanoseconds)
    }

    /// The clock may have stood still: the lease ends. The next round that a majority answers gives another.
    public mutating func clockJumped() {
        rounds = HeartbeatRounds()
        for offset in followers.indices { followers[offset].forgetConfirmations() }
    }

    /// Whether a read may be served without a round of heartbeats.
    var isLeaseHeld: Bool { leaseEnd.map { now < $0 } ?? false }
}

/// Reads that wait until a round of heartbeats proves that their leader still led after they came (dissertation
/// section 6.4). Reads that wait together share a round; one round that serves reads is under way at a time, unless the
/// heartbeat timer starts another.
struct PendingReads: Hashable, Sendable {
    private(set) var waiting: [UInt64] = []
    private(set) var batches: [Batch] = []
    private(set) var count = 0

    struct Batch: Hashable, Sendable {
        var round: UInt64
        var index: LogIndex
        var ids: [UInt64]
    }

    mutating func add(_ id: UInt64) {
        waiting.append(id)
        count += 1
    }

    /// Attaches the waiting reads to a round that begins now.
    mutating func begin(round: UInt64, index: LogIndex) {
        if let latest = batches.last { precondition(latest.round < round, "round \(round) after \(latest.round)") }
        if waiting.isEmpty { return }
        batches.append(Batch(round: round, index: index, ids: waiting))
        waiting = []
    }

    /// Takes the reads whose round, or a later one, is confirmed.
    mutating func confirm(through round: UInt64) -> [ReadReady] {
        var ready: [ReadReady] = []
        while let batch = batches.first, batch.round <= round {
            ready += batch.ids.map { ReadReady(id: $0, index: batch.index) }
            batches.removeFirst()
        }
        count -= ready.count
        precondition(count >= 0, "\(count) reads wait")
        return ready
    }

    /// Takes all reads, oldest first.
    mutating func removeAll() -> [UInt64] {
        let all = batches.flatMap(\.ids) + waiting
        self = PendingReads()
        return all
    }
}

/// When the latest rounds of heartbeats were sent: what a lease is counted from.
struct HeartbeatRounds: Hashable, Sendable {
    /// More rounds than this are not under way at once, so an answer to an older one is rare and worth nothing.
    private static let countMax = 64

    private var recent: [Round] = []

    private struct Round: Hashable, Sendable {
        var number: UInt64
        var sentAt: MonotonicTime
    }

    /// Notes a round that is sent now, and forgets those too old to give a lease.
    mutating func begin(_ number: UInt64, now: MonotonicTime, lease: LeaseSettings) {
        if let latest = recent.last { precondition(latest.number < number, "round \(number) after \(latest.number)") }
        let expired = recent.prefix { $0.sentAt.adding(nanoseconds: lease.nanoseconds) <= now }.count
        recent.removeFirst(max(expired, recent.count - (Self.countMax - 1), 0))
        recent.append(Round(number: number, sentAt: now))
    }

    /// When the round was sent; nil if that is too long ago to matter.
    func sentAt(_ number: UInt64) -> MonotonicTime? {
        recent.last { $0.number == number }?.sentAt
    }
}
