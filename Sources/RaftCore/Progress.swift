/// What a leader knows of one other replica (`nextIndex` and `matchIndex` of dissertation figure 3.1, and flow
/// control), and how it feeds it.
///
/// Invariants: `match < next`; only a replicating follower has appends under way; at most one load is.
struct Progress: Hashable, Sendable {
    let id: ReplicaID
    private(set) var state = FollowerState.probe
    /// The follower has durably what the leader has up to here.
    private(set) var match = LogIndex.zero
    /// The first entry to send next.
    private(set) var next: LogIndex
    /// Whether a probe waits for its answer, or for a heartbeat's.
    private var isPaused = false
    /// Where the last probe's entries end. What answers earlier appends ends no probe: over a network that reorders
    /// messages each of these answers would have the whole window sent again, whose answers would again.
    private var probeEnd: LogIndex?
    private(set) var inflights = Inflights()
    /// Entries that are being read from disk.
    private var load: LoadRequest?
    /// When the follower last answered; the start of the reign if it has not.
    private(set) var lastHeard: MonotonicTime
    /// When `match` last grew, or the first append of an empty window went out.
    private var lastProgress: MonotonicTime
    /// The latest round of heartbeats that it answered.
    private(set) var confirmedRound: UInt64 = 0
    /// When the latest answered round that counts for the lease was sent.
    private(set) var confirmedAt: MonotonicTime?
    private var catchUp: CatchUp

    /// A replica of which the leader does not know anything yet.
    init(id: ReplicaID, leader: ReplicaState) {
        let last = leader.log.last.index
        catchUp = CatchUp(target: last, now: leader.now)
        self.id = id
        next = last.next
        lastHeard = leader.now
        lastProgress = leader.now
    }

    /// Whether another append may go out now.
    private func mayReceive(_ settings: RaftSettings) -> Bool {
        if load != nil { return false }
        switch state {
        case .probe: return !isPaused
        case .replicate: return !inflights.isFull(settings)
        case .snapshot: return false
        }
    }

    /// Rounds answered so far no longer count for the lease.
    mutating func forgetConfirmations() { confirmedAt = nil }

    /// Whether the follower answered within an election timeout.
    func wasHeardLately(by leader: ReplicaState) -> Bool {
        leader.now < lastHeard.adding(milliseconds: leader.settings.electionTimeoutMilliseconds)
    }

    /// Whether the follower has all of a log that ends at `last`.
    func hasWholeLog(_ last: LogIndex) -> Bool { state == .replicate && match == last }

    /// Whether the follower keeps up: it lacks no more than it can be sent within an election timeout.
    func isCaughtUp(with leader: ReplicaState) -> Bool {
        guard state == .replicate, wasHeardLately(by: leader) else { return false }
        return match == leader.log.last.index
            || catchUp.isShort(leader.settings.electionTimeoutNanoseconds, now: leader.now)
    }

    /// Whether the follower is known to agree with what the probe sent, if it is out, or with where it will begin.
    private var isProbed: Bool { state == .probe && match >= probeEnd ?? next.previous }

    /// Whether appends under way have brought nothing for two heartbeat intervals, though the follower answers. If it
    /// is merely slow, probing costs one append that it has already.
    private func isStalled(at time: MonotonicTime, _ settings: RaftSettings) -> Bool {
        guard state == .replicate, !inflights.isEmpty else { return false }
        return time >= lastProgress.adding(milliseconds: 2 * settings.heartbeatIntervalMilliseconds)
    }

    private mutating func becomeProbe(next: LogIndex) {
        precondition(next > match, "probing \(id) at \(next), which has everything up to \(match)")
        state = .probe
        probeEnd = nil
        self.next = next
        isPaused = false
        inflights = Inflights()
        load = nil
    }

    private mutating func becomeReplicate() {
        state = .replicate
        next = match.next
        isPaused = false
        inflights = Inflights()
        load = nil
    }

}

/// What the follower is sent.
extension Progress {
    /// Sends as much as the window allows.
    mutating func replicate(from leader: inout ReplicaState) {
        while mayReceive(leader.settings) {
            let last = leader.log.last.index
            if state == .replicate && next > last { return }
            let previous = next.previous
            guard let previousTerm = leader.log.term(at: previous) else {
                startSnapshot(from: &leader)
                return
            }
            let bytesMax = state == .probe ? leader.settings.probeBytesMax : leader.settings.appendBytesMax
            guard let entries = leader.log.cached(from: next, through: last, bytesMax: bytesMax) else {
                startLoad(bytesMax: bytesMax, from: &leader)
                return
            }
            send(entries, after: LogPosition(index: previous, term: previousTerm), from: &leader)
        }
    }

    private mutating func send(_ entries: [Entry], after previous: LogPosition, from leader: inout ReplicaState) {
        precondition(entries.first?.index ?? previous.index.next == previous.index.next, "a gap after \(previous)")
        let request = AppendRequest(previous: previous, entries: entries, commit: leader.log.announced)
        leader.outbox.send(.appendRequest(request), to: id)
        let last = entries.last?.index ?? previous.index
        switch state {
        case .probe:
            isPaused = true
            probeEnd = last
        case .replicate:
            precondition(last >= next, "an append to \(last) when \(next) is next")
            if inflights.isEmpty { lastProgress = leader.now }
            inflights.add(last: last, bytes: entries.reduce(0) { $0 + $1.sizeBytes })
            next = last.next
        case .snapshot:
            preconditionFailure("an append to \(id), which waits for a snapshot")
        }
    }

    private mutating func startLoad(bytesMax: Int, from leader: inout ReplicaState) {
        let through = leader.log.cacheFirst.previous
        precondition(
            next <= through && through <= leader.log.durable,
            "load \(next)...\(through), durable \(leader.log.durable)")
        let request = LoadRequest(follower: id, from: next, through: through, bytesMax: bytesMax, term: leader.term)
        load = request
        leader.outbox.effects.loads.append(request)
    }

    private mutating func startSnapshot(from leader: inout ReplicaState) {
        precondition(state != .snapshot, "\(id) is already sent a snapshot")
        state = .snapshot
        inflights = Inflights()
        load = nil
        leader.outbox.effects.snapshots.append(id)
    }

    /// Entries were read from disk for the follower.
    mutating func loaded(_ request: LoadRequest, _ entries: [Entry], from leader: inout ReplicaState) {
        guard load == request else { return }
        load = nil
        guard !entries.isEmpty, let previousTerm = leader.log.term(at: request.from.previous) else {
            startSnapshot(from: &leader)
            return
        }
        var expected = request.from
        for entry in entries {
            precondition(entry.index == expected, "loaded \(entry.index) where \(expected) was due")
            let known = leader.log.term(at: expected)
            precondition(
                known == nil || known == entry.term, "loaded \(entry.position), but its term is \(known ?? .zero)")
            expected = expected.next
        }
        precondition(next == request.from, "loaded \(request.from), next \(next)")
        send(entries, after: LogPosition(index: request.from.previous, term: previousTerm), from: &leader)
        replicate(from: &leader)
    }
}

/// What the follower answers, and what else is heard of it.
extension Progress {
    /// The follower has durably what the leader has up to `index`. Returns whether that is more than was known.
    mutating func accepted(_ index: LogIndex, by leader: ReplicaState) -> Bool {
        let last = leader.log.last.index
        precondition(index <= last, "\(id) has \(index), but the leader's log ends at \(last)")
        lastHeard = leader.now
        inflights.acknowledge(through: index)
        catchUp.acknowledged(index, last: last, now: leader.now)
        let isNews = index > match
        if isNews {
            match = index
            if next <= index {
                next = index.next
                // What is being read from disk has come by another way.
                load = nil
            }
            lastProgress = leader.now
        }
        // A snapshot is installed, or was not needed, once the log holds what follows.
        if isProbed || state == .snapshot && isNews && match >= leader.log.snapshot.index { becomeReplicate() }
        return isNews
    }

    /// The follower's log does not match at `previous`.
    mutating func rejected(previous: LogIndex, hint: LogPosition, by leader: inout ReplicaState) {
        lastHeard = leader.now
        switch state {
        case .snapshot:
            return
        case .replicate:
            // Older than what was accepted since: a late answer.
            if previous <= match { return }
            becomeProbe(next: match.next)
        case .probe:
            if previous.next != next || previous <= match { return }
            // Without an index that may agree, the one before the snapshot makes a snapshot due.
            let agreed =
                leader.log.greatestIndex(through: hint.index, termAtMost: hint.term)
                ?? leader.log.snapshot.index.previous
            becomeProbe(next: max(min(previous, agreed.next), match.next))
        }
        replicate(from: &leader)
    }

    /// The follower lives and follows: it answered a round of heartbeats. That ends the wait of a probe, and shows
    /// whether appends were lost.
    /// - Parameter sentAt: when the round was sent; nil if it is too old to matter.
    mutating func confirmed(_ round: UInt64, sentAt: MonotonicTime?, by leader: inout ReplicaState) {
        lastHeard = leader.now
        if round > confirmedRound {
            confirmedRound = round
            if let sentAt { confirmedAt = sentAt }
        }
        isPaused = false
        if isStalled(at: leader.now, leader.settings) { becomeProbe(next: match.next) }
        replicate(from: &leader)
    }

    /// The connection broke: appends under way are taken for lost.
    mutating func disconnected() {
        guard state == .replicate else { return }
        becomeProbe(next: match.next)
        // The next heartbeat's answer says that there is someone to send to.
        isPaused = true
    }

    /// The transfer of a snapshot has ended.
    /// - Parameter through: where the snapshot stands that the follower has whole; nil if it has not.
    mutating func snapshotSent(through: LogIndex?, last: LogPosition) {
        guard state == .snapshot else { return }
        let held = max(through ?? .zero, match)
        precondition(held <= last.index, "a snapshot at \(held), but the log ends at \(last)")
        becomeProbe(next: held.next)
        // The answer to the next heartbeat tells whether the follower can be reached.
        isPaused = true
    }
}

/// The appends under way to one follower, oldest first.
struct Inflights: Hashable, Sendable {
    private var appends: [Append] = []
    private(set) var bytes = 0

    private struct Append: Hashable, Sendable {
        var last: LogIndex
        var bytes: Int
    }

    var count: Int { appends.count }
    var isEmpty: Bool { appends.isEmpty }

    /// Whether another append must wait. An empty window is never full, however large an append is.
    func isFull(_ settings: RaftSettings) -> Bool {
        !isEmpty && (count >= settings.inflightAppendsMax || bytes >= settings.inflightBytesMax)
    }

    /// Notes an append that ends at `last`.
    mutating func add(last: LogIndex, bytes: Int) {
        if let latest = appends.last { precondition(last > latest.last, "append to \(last) after \(latest.last)") }
        appends.append(Append(last: last, bytes: bytes))
        self.bytes += bytes
    }

    /// Frees the appends that end at or before `match`.
    mutating func acknowledge(through match: LogIndex) {
        var count = 0
        for append in appends {
            if append.last > match { break }
            bytes -= append.bytes
            count += 1
        }
        appends.removeFirst(count)
        precondition(bytes >= 0, "\(bytes) bytes under way")
    }
}

/// Whether a follower keeps up with a log that grows meanwhile (dissertation section 4.2.1).
///
/// Catching up goes in rounds: each brings the follower to where the log ended when the round began. After one that
/// took less than an election timeout, making the follower a voter delays commits by no more than that.
struct CatchUp: Hashable, Sendable {
    /// Where the log ended when the round began.
    private var target: LogIndex
    private var begin: MonotonicTime
    /// How long the last whole round took; nil before the first is done.
    private var lastNanoseconds: UInt64?

    init(target: LogIndex, now: MonotonicTime) {
        self.target = target
        begin = now
    }

    /// Notes that the follower has everything up to `match` of a log that ends at `last`.
    mutating func acknowledged(_ match: LogIndex, last: LogIndex, now: MonotonicTime) {
        guard match >= target else { return }
        lastNanoseconds = now.nanoseconds - begin.nanoseconds
        target = last
        begin = now
    }

    /// Whether the last round was short, and the one under way is not already longer.
    func isShort(_ limitNanoseconds: UInt64, now: MonotonicTime) -> Bool {
        guard let lastNanoseconds else { return false }
        return lastNanoseconds < limitNanoseconds && now.nanoseconds - begin.nanoseconds < limitNanoseconds
    }
}
