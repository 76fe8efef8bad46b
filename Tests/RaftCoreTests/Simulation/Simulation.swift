import EventQueue

@testable import RaftCore

/// A group of replicas in one thread, with virtual time: the core is the real one; disks, clocks, network, clients and
/// the operator who changes the members are not. Everything that happens follows from the seed.
struct Simulation {
    enum Event {
        case deliver(Message)
        case wake(Int, life: Int)
        case persisted(Int, life: Int)
        case applied(Int, life: Int)
        case loaded(Int, life: Int, LoadRequest)
        case snapshot(Snapshot)
        case start(Int)
        case client
        case fault
        case operation
    }

    /// A snapshot on its way.
    struct Snapshot {
        var from: Int
        var life: Int
        var to: ReplicaID
        var term: Term
        var mark: SnapshotMark
    }

    /// What happened how often: a run in which nothing happens would prove nothing.
    struct Counts {
        var events = 0
        var proposed = 0
        var refused = 0
        var indexReads = 0
        var leaseReads = 0
        /// Reads under a lease that missed something, where clocks kept to no bound.
        var staleReads = 0
        var failedReads = 0
        var snapshots = 0
        var loads = 0
        var crashes = 0
        var pauses = 0
        var partitions = 0
        var transfers = 0
        var changes = 0
        var refusedChanges = 0
    }

    let options: SimulationOptions
    var generator: SplitMix64
    var nodes: [SimulatedNode] = []
    var queue = EventQueue<Event>()
    var time: UInt64 = 0
    var checker: SimulationChecker
    var counts = Counts()
    /// Links that carry nothing, by sender and receiver.
    var cuts: Set<Link> = []
    /// Links on which everything takes long.
    var slow: Set<Link> = []
    var isHealed = false
    var nextCommand: UInt64 = 0
    var nextRead: UInt64 = 0
    /// A number that two runs share only if the same things happened in the same order.
    private(set) var trace: UInt64 = 0xcbf2_9ce4_8422_2325
    /// Whether `log` is filled, for reading.
    var isLogging = false
    var log: [String] = []

    struct Link: Hashable {
        var from: Int
        var to: Int
    }

    static let millisecond: UInt64 = 1_000_000

    init(seed: UInt64) {
        generator = SplitMix64(seed: seed)
        options = SimulationOptions(using: &generator)
        let configuration = Configuration(voters: (1...UInt64(options.voters)).map { ReplicaID($0) })
        checker = SimulationChecker(initial: configuration)
        for id in configuration.voters { nodes.append(SimulatedNode(id: id, bootstrap: configuration)) }
    }

    // MARK: Running

    mutating func run(seconds: UInt64) throws {
        for offset in nodes.indices {
            drift(offset)
            start(offset)
        }
        queue.add(.client, at: 10 * Self.millisecond)
        queue.add(.fault, at: 1_000 * Self.millisecond)
        queue.add(.operation, at: 1_500 * Self.millisecond)
        try run(until: seconds * 1_000 * Self.millisecond)
        try checker.checkLogs(nodes)
    }

    mutating func run(until end: UInt64) throws {
        while time < end, let (due, event) = queue.next() {
            precondition(due >= time, "\(due) after \(time)")
            time = due
            counts.events += 1
            if counts.events % 4096 == 0 { try checker.checkLogs(nodes) }
            try handle(event)
        }
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    mutating func microseconds(_ range: ClosedRange<UInt64>) -> UInt64 {
        UInt64.random(in: range, using: &generator) * 1_000
    }

    /// Folds a value into the trace (FNV-1a by words).
    mutating func mark(_ values: UInt64...) {
        for value in values { trace = (trace ^ value) &* 0x0000_0100_0000_01b3 }
    }

    mutating func note(_ text: String) {
        if isLogging { log.append("\(time / Self.millisecond)ms \(text)") }
    }

    private mutating func handle(_ event: Event) throws {
        if let offset = replica(of: event), nodes[offset].pausedUntil > time {
            return queue.add(event, at: nodes[offset].pausedUntil)
        }
        switch event {
        case .deliver(let message): try deliver(message)
        case .wake(let offset, let life): try wake(offset, life)
        case .persisted(let offset, let life): try persisted(offset, life)
        case .applied(let offset, let life): try apply(offset, life)
        case .loaded(let offset, let life, let request): try loaded(offset, life, request)
        case .snapshot(let snapshot): try arrived(snapshot)
        case .start(let offset): start(offset)
        case .client: try useClient()
        case .fault: try causeFault()
        case .operation: try operate()
        }
    }

    /// Whose process an event needs; what waits for a paused one happens when it goes on.
    private func replica(of event: Event) -> Int? {
        switch event {
        case .deliver(let message): offset(of: message.to)
        case .wake(let offset, _), .persisted(let offset, _), .applied(let offset, _), .loaded(let offset, _, _): offset
        case .snapshot, .start, .client, .fault, .operation: nil
        }
    }

    // MARK: Replicas

    mutating func start(_ offset: Int) {
        guard nodes[offset].raft == nil, !nodes[offset].isRetired else { return }
        nodes[offset].start(settings: options.settings, at: time, using: &generator)
        note("\(nodes[offset].id) starts")
        queue.add(.wake(offset, life: nodes[offset].life), at: time)
    }

    /// Gives a running replica an event and does what its effects say.
    @discardableResult
    mutating func event(_ offset: Int, _ body: (inout Raft, MonotonicTime) throws -> Effects) throws -> Effects? {
        guard var raft = nodes[offset].raft else { return nil }
        let before = raft
        let now = nodes[offset].clock.local(at: time)
        nodes[offset].raft = nil
        let effects: Effects
        do {
            effects = try body(&raft, now)
        } catch {
            nodes[offset].raft = raft
            throw error
        }
        nodes[offset].raft = raft
        mark(time, UInt64(offset), raft.term.rawValue, raft.commitIndex.rawValue, raft.lastLog.index.rawValue)
        try checker.transition(from: before, to: raft)
        try perform(effects, at: offset)
        return effects
    }

    private mutating func wake(_ offset: Int, _ life: Int) throws {
        guard nodes[offset].life == life, nodes[offset].raft != nil else { return }
        nodes[offset].wakeAt = nil
        try event(offset) { $0.tick(now: $1) }
    }

    /// Moves every replica's clock to a rate of its own.
    mutating func drift(_ offset: Int) {
        let most = options.driftPartsPerMillionMax
        // The ends of the range are where it hurts.
        let rate = [-most, most, Int64.random(in: -most...most, using: &generator)].randomElement(using: &generator)
        nodes[offset].clock.setDrift(rate ?? 0, at: time)
        rewake(offset)
    }

    /// Schedules the next wake-up by the clock as it runs now.
    mutating func rewake(_ offset: Int) {
        guard let raft = nodes[offset].raft else { return }
        let due = nodes[offset].clock.trueTime(
            of: raft.leadership?.heartbeatDeadline ?? raft.timer.deadline)
        scheduleWake(offset, at: due)
    }

    mutating func scheduleWake(_ offset: Int, at due: UInt64) {
        let due = max(due, time + 1)
        if let wakeAt = nodes[offset].wakeAt, wakeAt <= due { return }
        nodes[offset].wakeAt = due
        queue.add(.wake(offset, life: nodes[offset].life), at: due)
    }
}
