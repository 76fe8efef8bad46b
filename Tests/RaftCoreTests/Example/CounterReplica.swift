import RaftCore

/// One replica of a counter: the shell round `Raft`. A real one writes to files and sockets where this one has arrays.
struct CounterReplica {
    private(set) var raft: Raft
    /// The state machine.
    private(set) var value = 0
    /// Reads that were answered, with the value they saw.
    private(set) var answers: [UInt64: Int] = [:]
    /// Messages for others, in their binary form.
    var outbox: [(to: ReplicaID, bytes: [UInt8])] = []
    /// When `tick` is due.
    private(set) var wakeAt = MonotonicTime.zero

    private var hardState = HardState()
    private var log: [Entry] = []
    private var applied = LogIndex.zero
    private var waitingReads: [ReadReady] = []

    /// A replica of a new group, or one that is about to join: then `members` has no voters.
    init(id: ReplicaID, members: Configuration, now: MonotonicTime) {
        let restored = RestoredState(bootstrap: members)
        raft = Raft(id: id, settings: RaftSettings(), seed: id.rawValue, restored: restored, now: now)
        perform(raft.tick(now: now), now: now)
    }

    // Each event of the outside world goes to the core, and what the core says is done.

    mutating func tick(now: MonotonicTime) { perform(raft.tick(now: now), now: now) }

    mutating func receive(_ bytes: [UInt8], now: MonotonicTime) throws {
        perform(raft.receive(try Message(serialized: bytes), now: now), now: now)
    }

    mutating func add(_ amount: UInt8, now: MonotonicTime) throws {
        perform(try raft.propose([[amount]], now: now).effects, now: now)
    }

    mutating func read(_ id: UInt64, now: MonotonicTime) { perform(raft.read(id, now: now), now: now) }

    mutating func change(to members: Configuration, now: MonotonicTime) throws {
        perform(try raft.propose(configuration: members, replacing: raft.configuration, now: now).effects, now: now)
    }

    private mutating func perform(_ effects: Effects, now: MonotonicTime) {
        wakeAt = effects.wakeAt
        outbox += effects.sendNow.map { ($0.to, $0.serialized()) }
        waitingReads += effects.reads
        if let index = effects.commitIndex { apply(through: index) }
        answerReads()
        for request in effects.loads {
            let entries = log.filter { $0.index >= request.from && $0.index <= request.through }
            perform(raft.loaded(request, entries: entries, now: now), now: now)
        }
        // This log is never compacted, so nobody needs a snapshot: `effects.snapshots` and `effects.install` stay
        // empty.
        guard effects.hardState != nil || !effects.append.isEmpty else { return }
        // One write and one fsync; only then may the messages go that promise what was written.
        if let newer = effects.hardState { hardState = newer }
        if let first = effects.append.first { log.removeAll { $0.index >= first.index } }
        log += effects.append
        outbox += effects.sendAfterPersist.map { ($0.to, $0.serialized()) }
        let durable = log.last?.position ?? .zero
        perform(raft.persisted(durable, hardState: hardState, now: now), now: now)
    }

    private mutating func apply(through index: LogIndex) {
        for entry in log where entry.index > applied && entry.index <= index {
            // Apply is a function of the state and the command alone, so that all replicas stay equal.
            if case .command(let bytes) = entry.payload { value += Int(bytes[0]) }
            applied = entry.index
        }
        raft.applied(applied)
    }

    private mutating func answerReads() {
        for read in waitingReads where read.index <= applied { answers[read.id] = value }
        waitingReads.removeAll { $0.index <= applied }
    }
}
