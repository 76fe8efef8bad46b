/// What a replica has only while it leads: what it knows of its followers, and the reads and the lease that their
/// answers to heartbeats allow. Each function is given the replica that leads.
struct Leadership: Hashable, Sendable {
    /// The other members, sorted by id.
    private(set) var followers: [Progress] = []
    private(set) var heartbeatDeadline = MonotonicTime.zero
    /// The latest round of heartbeats.
    private(set) var round: UInt64 = 0
    private(set) var reads = PendingReads()
    /// Bytes of the entries in memory that are not committed.
    private(set) var uncommittedBytes: Int
    /// The rounds of heartbeats whose answers may still prolong the lease.
    private var rounds = HeartbeatRounds()
    /// Replicas that the change under way removes. They are told when it is committed.
    private var leaving: [ReplicaID] = []
    /// Whether another replica was asked to take over in this term. It may do so at any later time, and voters then do
    /// not wait for this leader, so there is no lease until the next term.
    private var isLeaseGivenUp = false

    /// Whether the leader leads on after an event. If not, the replica becomes a follower.
    enum Reign {
        case goesOn, isOver
    }

    /// Appends an empty entry. When that is committed, the leader knows what is committed (dissertation section 6.4).
    init(in replica: inout ReplicaState) {
        // Entries of earlier leaders count, too: they stay in memory until they are committed.
        uncommittedBytes = replica.log.cachedBytes(after: replica.log.committed, through: replica.log.last.index)
        updateFollowers(in: replica)
        scheduleHeartbeat(in: replica)
        append([.empty], in: &replica)
    }

    /// When `tick` is due.
    func wakeTime(in replica: ReplicaState) -> MonotonicTime { min(heartbeatDeadline, quorumDeadline(in: replica)) }

    /// Time has passed.
    mutating func tick(in replica: inout ReplicaState) -> Reign {
        if replica.now >= quorumDeadline(in: replica) { return .isOver }
        if replica.now >= heartbeatDeadline { startRound(in: &replica) }
        return .goesOn
    }

    /// When a leader that hears nothing more steps down (dissertation section 6.2): when the promises of the majority
    /// heard last have expired, and another replica may be elected.
    private func quorumDeadline(in replica: ReplicaState) -> MonotonicTime {
        // What is named is captured, and neither the replica nor this value is copied.
        let heard = Quorum.reached(replica.configuration) { [followers, id = replica.id, now = replica.now] voter in
            voter == id ? now : followers.first { $0.id == voter }?.lastHeard ?? .zero
        }
        return (heard ?? .zero).adding(milliseconds: replica.settings.patienceMilliseconds)
    }

    /// Traps unless the followers are the others of the configuration in force.
    func checkInvariants(in replica: ReplicaState) {
        let members = replica.configuration
        let others = members.voters.count + members.learners.count - (members.contains(replica.id) ? 1 : 0)
        precondition(members.isJoint || followers.count == others, "\(followers.count) followers in \(members)")
    }

    private func offset(of follower: ReplicaID) -> Int? { followers.firstIndex { $0.id == follower } }
}

/// Entries.
extension Leadership {
    /// The payloads of those commands, from the first on, that may be uncommitted, too.
    func admit(_ commands: [[UInt8]], _ settings: RaftSettings) throws(ProposalError) -> [Entry.Payload] {
        var payloads: [Entry.Payload] = []
        var bytes = uncommittedBytes
        for command in commands {
            let payload = Entry.Payload.command(command)
            let size = Entry(index: .zero, term: .zero, payload: payload).sizeBytes
            guard bytes == 0 || bytes + size <= settings.uncommittedBytesMax else { break }
            bytes += size
            payloads.append(payload)
        }
        guard !payloads.isEmpty else {
            throw .overloaded(uncommittedBytes: uncommittedBytes, uncommittedBytesMax: settings.uncommittedBytesMax)
        }
        return payloads
    }

    /// Appends entries of this term and sends them at once, while the own persist runs (dissertation section 10.2.1).
    mutating func append(_ payloads: [Entry.Payload], in replica: inout ReplicaState) {
        let (entries, changesMembers) = replica.append(payloads)
        for entry in entries { uncommittedBytes += entry.sizeBytes }
        // Replicas that these entries remove get them, too, if their window allows it.
        for offset in followers.indices { followers[offset].replicate(from: &replica) }
        if changesMembers {
            updateFollowers(in: replica)
            for offset in followers.indices { followers[offset].replicate(from: &replica) }
        }
    }

    /// Entries that a follower needs were read from disk.
    mutating func loaded(_ request: LoadRequest, _ entries: [Entry], in replica: inout ReplicaState) {
        guard let offset = offset(of: request.follower) else { return }
        followers[offset].loaded(request, entries, from: &replica)
    }

    /// A follower took entries, or could not.
    mutating func receive(
        _ response: AppendResponse, from sender: ReplicaID, in replica: inout ReplicaState
    ) -> Reign {
        guard let offset = offset(of: sender) else { return .goesOn }
        switch response {
        case .rejected(let previous, let hint):
            followers[offset].rejected(previous: previous, hint: hint, by: &replica)
        case .accepted(let match):
            if followers[offset].accepted(match, by: replica), advanceCommit(in: &replica) == .isOver { return .isOver }
            // A commit may change who follows.
            if let offset = self.offset(of: sender) { followers[offset].replicate(from: &replica) }
        }
        return .goesOn
    }

    /// Commits what a majority holds durably, counting only entries of this term (dissertation section 3.6.2).
    mutating func advanceCommit(in replica: inout ReplicaState) -> Reign {
        let reached = Quorum.reached(replica.configuration) { voter in
            voter == replica.id ? replica.log.durable : followers.first { $0.id == voter }?.match ?? .zero
        }
        let committed = replica.log.committed
        guard let reached, reached > committed, replica.log.term(at: reached) == replica.term else { return .goesOn }
        let wasReadable = replica.canServeReads
        // Entries that are not committed leave memory no more once they are in it.
        uncommittedBytes -= replica.log.cachedBytes(after: committed, through: reached)
        precondition(uncommittedBytes >= 0, "\(uncommittedBytes) bytes uncommitted")
        replica.commitAsLeader(through: reached)
        if !wasReadable { startRound(in: &replica) }
        return advanceMembership(in: &replica)
    }

    /// The connection to a follower broke.
    mutating func disconnected(_ follower: ReplicaID) {
        if let offset = offset(of: follower) { followers[offset].disconnected() }
    }

    /// The transfer of a snapshot to a follower has ended.
    mutating func snapshotSent(to follower: ReplicaID, through: LogIndex?, in replica: ReplicaState) {
        if let offset = offset(of: follower) {
            followers[offset].snapshotSent(through: through, last: replica.log.last)
        }
    }
}

/// Heartbeats, and the reads and the lease that their answers give.
extension Leadership {
    /// Serves a read now, or when a round of heartbeats has been answered.
    mutating func read(_ id: UInt64, in replica: inout ReplicaState) {
        guard reads.count < replica.settings.pendingReadsMax else {
            let failed = FailedRead(id: id, leader: replica.id, reason: .overloaded)
            replica.outbox.effects.failedReads.append(failed)
            return
        }
        if replica.canServeReads && (replica.isOnlyVoter || isLeaseHeld(in: replica)) {
            replica.outbox.effects.reads.append(ReadReady(id: id, index: replica.log.committed))
            return
        }
        reads.add(id)
        if replica.canServeReads && reads.batches.isEmpty { startRound(in: &replica) }
    }

    /// Sends all followers a heartbeat. Waiting reads are confirmed by its answers.
    private mutating func startRound(in replica: inout ReplicaState) {
        round += 1
        if let lease = replica.settings.lease { rounds.begin(round, now: replica.now, lease: lease) }
        if replica.canServeReads { reads.begin(round: round, index: replica.log.committed) }
        for follower in followers {
            let commit = min(replica.log.announced, follower.match)
            replica.outbox.send(.heartbeatRequest(commit: commit, round: round), to: follower.id)
        }
        scheduleHeartbeat(in: replica)
        advanceReads(in: &replica)
    }

    /// Due is the next multiple of the interval: all groups that a node leads are then due at the same times, so that
    /// their heartbeats to another node can share a frame.
    private mutating func scheduleHeartbeat(in replica: ReplicaState) {
        let interval = replica.settings.heartbeatIntervalMilliseconds * 1_000_000
        let now = replica.now.nanoseconds
        heartbeatDeadline = MonotonicTime(nanoseconds: now - now % interval).adding(nanoseconds: interval)
    }

    /// Releases reads whose round a majority answered, and starts a round for newer ones.
    private mutating func advanceReads(in replica: inout ReplicaState) {
        let confirmed = Quorum.reached(replica.configuration) { voter in
            voter == replica.id ? round : followers.first { $0.id == voter }?.confirmedRound ?? 0
        }
        guard let confirmed else { return }
        precondition(confirmed <= round, "round \(confirmed) is confirmed, \(round) is the latest")
        replica.outbox.effects.reads += reads.confirm(through: confirmed)
        if replica.canServeReads && reads.batches.isEmpty && !reads.waiting.isEmpty { startRound(in: &replica) }
    }

    /// A follower answered a round of heartbeats.
    mutating func receive(answerTo answered: UInt64, from sender: ReplicaID, in replica: inout ReplicaState) {
        guard let offset = offset(of: sender) else { return }
        precondition(answered <= round, "\(sender) answers round \(answered), the latest is \(round)")
        followers[offset].confirmed(answered, sentAt: rounds.sentAt(answered), by: &replica)
        advanceReads(in: &replica)
    }

    /// When the lease ends (dissertation section 6.4.1). Until then no other replica leads or commits anything. Nil if
    /// this replica has no lease, or gave it up.
    /// It is counted from the *sending* of the latest round that a majority of the configuration in force has answered;
    /// each member's answer stands for itself, so the count holds across changes of members. `DESIGN.md` has the proof.
    func leaseEnd(in replica: ReplicaState) -> MonotonicTime? {
        guard let lease = replica.settings.lease, !isLeaseGivenUp else { return nil }
        // One more than the time, so that 0 means never, whatever the clock's origin.
        let since = Quorum.reached(replica.configuration) { [followers, id = replica.id, now = replica.now] voter in
            let sentAt = voter == id ? now : followers.first { $0.id == voter }?.confirmedAt
            return sentAt.map { $0.adding(nanoseconds: 1).nanoseconds } ?? 0
        }
        guard let since, since > 0 else { return nil }
        return MonotonicTime(nanoseconds: since - 1).adding(nanoseconds: lease.nanoseconds)
    }

    /// Whether a read may be served without a round of heartbeats.
    private func isLeaseHeld(in replica: ReplicaState) -> Bool {
        leaseEnd(in: replica).map { replica.now < $0 } ?? false
    }

    /// The clock may have stood still: the lease ends. The next round that a majority answers gives another.
    mutating func clockJumped() {
        rounds = HeartbeatRounds()
        for offset in followers.indices { followers[offset].forgetConfirmations() }
    }
}

/// Changes of members, and the end of the reign.
extension Leadership {
    /// Appends the first entry of a change.
    mutating func change(
        _ base: Configuration, to target: Configuration, in replica: inout ReplicaState
    ) throws(ConfigurationChangeError) {
        // Before that, a configuration of an earlier term that is not committed may still come into force elsewhere:
        // the fault of the dissertation's single-server changes as first published. Joint majorities would meet all the
        // same; the rule costs a moment and keeps every change one step from a configuration that is committed.
        guard replica.canServeReads else { throw .termNotCommitted(replica.term) }
        let latest = replica.configurations.latest
        if latest.configuration.isJoint || !replica.isConfigurationCommitted { throw .changeUnderway(at: latest.index) }
        guard latest.configuration == base else { throw .unknownBase(inForce: latest.configuration) }
        try check(target, in: replica)
        // Learners do not count, so changing them alone needs no agreement of two majorities.
        append([.configuration(target.voters == base.voters ? target : base.joint(with: target))], in: &replica)
    }

    private func check(_ target: Configuration, in replica: ReplicaState) throws(ConfigurationChangeError) {
        if target.voters.isEmpty { throw .noVoters }
        if target.isJoint { throw .jointTarget }
        if target == replica.configuration { throw .unchanged }
        for voter in target.voters where !replica.configuration.voters.contains(voter) {
            guard let follower = followers.first(where: { $0.id == voter }) else { throw .notLearner(voter) }
            guard follower.isCaughtUp(with: replica) else {
                let missing = replica.log.last.index.rawValue - follower.match.rawValue
                throw .notCaughtUp(voter, missingEntries: missing)
            }
        }
        let silent = target.voters.filter { voter in
            voter != replica.id && !followers.contains { $0.id == voter && $0.wasHeardLately(by: replica) }
        }
        guard silent.count < target.voters.count - target.voters.count / 2 else { throw .majoritySilent(silent) }
    }

    /// Continues a change whose latest entry is committed: leaves a joint configuration, or ends the reign of a replica
    /// that is no longer a voter (dissertation sections 4.2.2 and 4.3).
    private mutating func advanceMembership(in replica: inout ReplicaState) -> Reign {
        guard replica.isConfigurationCommitted, replica.canServeReads else { return .goesOn }
        let configuration = replica.configuration
        if configuration.isJoint {
            append([.configuration(configuration.withoutOutgoing)], in: &replica)
            return .goesOn
        }
        dismissLeaving(in: &replica)
        if configuration.isVoter(replica.id) { return .goesOn }
        let heir = followers.first { follower in
            configuration.voters.contains(follower.id) && follower.wasHeardLately(by: replica)
                && follower.hasWholeLog(replica.log.last.index)
        }
        if let heir { askToTakeOver(heir.id, in: &replica) }
        return .isOver
    }

    /// Tells removed replicas that their removal is committed, so that they stop campaigning. Up-to-date ones have the
    /// entry. Others may still ask for votes, which does not disturb a leader (section 4.2.3).
    private mutating func dismissLeaving(in replica: inout ReplicaState) {
        let index = replica.configurations.latest.index
        guard !leaving.isEmpty, let indexTerm = replica.log.term(at: index) else { return }
        let position = LogPosition(index: index, term: indexTerm)
        let news = AppendRequest(previous: position, entries: [], commit: replica.log.announced)
        for peer in leaving { replica.outbox.send(.appendRequest(news), to: peer) }
        leaving = []
    }

    /// Makes the members of the configuration in force the followers. Members that stay keep their progress.
    private mutating func updateFollowers(in replica: ReplicaState) {
        let known = followers
        let configuration = replica.configuration
        leaving = (leaving + known.map(\.id)).filter { !configuration.contains($0) }
        followers = configuration.all.filter { $0 != replica.id }.map { member in
            known.first { $0.id == member } ?? Progress(id: member, leader: replica)
        }
    }

    /// Asks a voter that has the whole log to take over.
    mutating func transfer(to target: ReplicaID, in replica: inout ReplicaState) {
        guard replica.configuration.voters.contains(target),
            followers.contains(where: { $0.id == target && $0.hasWholeLog(replica.log.last.index) })
        else { return }
        askToTakeOver(target, in: &replica)
    }

    private mutating func askToTakeOver(_ target: ReplicaID, in replica: inout ReplicaState) {
        isLeaseGivenUp = true
        replica.outbox.send(.timeoutNow, to: target)
    }
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

    /// All reads, oldest first.
    var all: [UInt64] { batches.flatMap(\.ids) + waiting }
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
