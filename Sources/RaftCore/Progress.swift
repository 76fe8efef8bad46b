/// What a leader knows of one other replica (`nextIndex` and `matchIndex` of dissertation figure 3.1, and flow
/// control).
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
    private(set) var isPaused = false
    /// Where the last probe's entries end. What answers earlier appends ends no probe: over a network that reorders
    /// messages each of these answers would have the whole window sent again, whose answers would again.
    private var probeEnd: LogIndex?
    private(set) var inflights = Inflights()
    /// Entries that are being read from disk.
    var load: LoadRequest?
    /// When the follower last answered; the start of the reign if it has not.
    var lastHeard: MonotonicTime
    /// When `match` last grew, or the first append of an empty window went out.
    private(set) var lastProgress: MonotonicTime
    /// The latest round of heartbeats that it answered.
    private(set) var confirmedRound: UInt64 = 0
    /// When the latest answered round that counts for the lease was sent.
    private(set) var confirmedAt: MonotonicTime?
    private(set) var catchUp: CatchUp

    init(id: ReplicaID, next: LogIndex, now: MonotonicTime) {
        precondition(next > .zero, "next index \(next)")
        catchUp = CatchUp(target: next.previous, now: now)
        self.id = id
        self.next = next
        lastHeard = now
        lastProgress = now
    }

    /// Whether another append may go out now.
    func mayReceive(_ settings: RaftSettings) -> Bool {
        if load != nil { return false }
        switch state {
        case .probe: return !isPaused
        case .replicate: return !inflights.isFull(settings)
        case .snapshot: return false
        }
    }

    /// Notes an append of entries that end at `last`.
    mutating func sent(last: LogIndex, bytes: Int, now: MonotonicTime) {
        switch state {
        case .probe:
            isPaused = true
            probeEnd = last
        case .replicate:
            precondition(last >= next, "an append to \(last) when \(next) is next")
            if inflights.isEmpty { lastProgress = now }
            inflights.add(last: last, bytes: bytes)
            next = last.next
        case .snapshot:
            preconditionFailure("an append to \(id), which waits for a snapshot")
        }
    }

    /// Notes that the follower answered a round of heartbeats.
    /// - Parameter sentAt: when the round was sent; nil if it is too old to matter.
    mutating func confirmed(_ round: UInt64, sentAt: MonotonicTime?) {
        guard round > confirmedRound else { return }
        confirmedRound = round
        if let sentAt { confirmedAt = sentAt }
    }

    /// Rounds answered so far no longer count for the lease.
    mutating func forgetConfirmations() { confirmedAt = nil }

    /// Notes what the follower has of a log that ends at `last`. Returns whether that is more than was known.
    mutating func acknowledged(_ index: LogIndex, last: LogIndex, now: MonotonicTime) -> Bool {
        inflights.acknowledge(through: index)
        catchUp.acknowledged(index, last: last, now: now)
        guard index > match else { return false }
        match = index
        if next <= index {
            next = index.next
            // What is being read from disk has come by another way.
            load = nil
        }
        lastProgress = now
        return true
    }

    /// Whether the follower is known to agree with what the probe sent, if it is out, or with where it will begin.
    var isProbed: Bool { state == .probe && match >= probeEnd ?? next.previous }

    mutating func becomeProbe(next: LogIndex) {
        precondition(next > match, "probing \(id) at \(next), which has everything up to \(match)")
        state = .probe
        probeEnd = nil
        self.next = next
        isPaused = false
        inflights = Inflights()
        load = nil
    }

    mutating func becomeReplicate() {
        state = .replicate
        next = match.next
        isPaused = false
        inflights = Inflights()
        load = nil
    }

    mutating func becomeSnapshot() {
        precondition(state != .snapshot, "\(id) is already sent a snapshot")
        state = .snapshot
        inflights = Inflights()
        load = nil
    }

    mutating func pause() { isPaused = true }
    mutating func resume() { isPaused = false }
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
