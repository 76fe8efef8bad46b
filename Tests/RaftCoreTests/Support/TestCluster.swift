import RaftCore

/// A broken promise, with what is needed to see it.
struct Violation: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}

/// Replicas, their disks and the messages between them. Nothing happens unless it is asked for, and every step is
/// checked.
struct TestCluster {
    var nodes: [TestNode]
    var messages: [Message] = []
    var transfers: [Transfer] = []
    var now = MonotonicTime(milliseconds: 0)
    var settings: RaftSettings
    var seed: UInt64
    var checker = Checker()
    /// Effects in words, for scenarios.
    var notes: [String] = []
    /// Shells with this bug send before they persist.
    var sendsBeforePersist = false

    struct Transfer {
        var from: ReplicaID
        var to: ReplicaID
        var term: Term
        var mark: SnapshotMark
        var applied: [Entry]
    }

    init(voters: Int, learners: Int = 0, settings: RaftSettings = RaftSettings(), seed: UInt64 = 1) {
        let ids = (1...UInt64(voters + learners)).map { ReplicaID($0) }
        let configuration = Configuration(voters: Array(ids[..<voters]), learners: Array(ids[voters...]))
        self.init(ids: ids, configuration: configuration, settings: settings, seed: seed)
    }

    init(ids: [ReplicaID], configuration: Configuration, settings: RaftSettings = RaftSettings(), seed: UInt64 = 1) {
        nodes = ids.map { TestNode(id: $0, configuration: configuration) }
        self.settings = settings
        self.seed = seed
        for offset in nodes.indices { start(offset) }
    }

    /// A cluster in which one replica was elected.
    init(voters: Int, leader: UInt64, settings: RaftSettings = RaftSettings()) throws {
        self.init(voters: voters, settings: settings)
        try elect(leader)
    }

    func offset(_ id: ReplicaID) -> Int { nodes.firstIndex { $0.id == id } ?? 0 }
    subscript(_ id: UInt64) -> TestNode { nodes[offset(ReplicaID(id))] }
    var leaders: [ReplicaID] { nodes.filter { $0.raft?.role == .leader }.map(\.id) }

    mutating func start(_ offset: Int) {
        seed &+= 1
        nodes[offset].start(settings: settings, seed: seed &* 7919 &+ UInt64(offset), now: now)
        try? event(offset) { $0.tick(now: $1) }
    }

    /// Gives a running replica an event and does what its effects say, short of disk and network.
    mutating func event(_ offset: Int, _ body: (inout Raft, MonotonicTime) throws -> Effects) throws {
        guard var raft = nodes[offset].raft else { return }
        let before = raft
        nodes[offset].raft = nil
        let effects = try { () throws -> Effects in
            defer { nodes[offset].raft = raft }
            return try body(&raft, now)
        }()
        try checker.transition(from: before, to: raft)
        try perform(effects, at: offset)
    }

    private mutating func perform(_ effects: Effects, at offset: Int) throws {
        let id = nodes[offset].id
        note(effects, id)
        messages += effects.sendNow
        if sendsBeforePersist { messages += effects.sendAfterPersist }
        if effects.hardState != nil || !effects.append.isEmpty {
            let waiting = sendsBeforePersist ? [] : effects.sendAfterPersist
            nodes[offset].work.append(.persist(effects.hardState, effects.append, waiting))
        }
        nodes[offset].loads += effects.loads
        nodes[offset].reads += effects.reads
        nodes[offset].failedReads += effects.failedReads
        for read in effects.reads { try checker.readReady(read) }
        for follower in effects.snapshots {
            guard let term = nodes[offset].raft?.term else { continue }
            let disk = nodes[offset].disk
            let position = disk.applied.last?.position ?? .zero
            var configuration = disk.snapshot.configuration
            for case .configuration(let newer) in disk.applied.map(\.payload) { configuration = newer }
            let mark = SnapshotMark(position: position, configuration: configuration)
            transfers.append(Transfer(from: id, to: follower, term: term, mark: mark, applied: disk.applied))
        }
        if let commit = effects.commitIndex { try apply(through: commit, at: offset) }
    }

    private mutating func apply(through commit: LogIndex, at offset: Int) throws {
        guard var raft = nodes[offset].raft else { return }
        let from = nodes[offset].disk.appliedIndex.next
        let entries =
            raft.entries(from: from, through: commit, bytesMax: .max)
            ?? nodes[offset].disk.entries.filter { $0.index >= from && $0.index <= commit }
        for entry in entries {
            guard nodes[offset].disk.entries.contains(entry) else {
                throw Violation("\(nodes[offset].id) applies \(entry.position), which is not durable")
            }
            try checker.applied(entry, by: nodes[offset].id)
        }
        nodes[offset].disk.applied += entries
        guard nodes[offset].disk.appliedIndex == commit else {
            throw Violation("\(nodes[offset].id) could apply to \(nodes[offset].disk.appliedIndex) of \(commit)")
        }
        raft.applied(commit)
        nodes[offset].raft = raft
    }

    /// Does the oldest thing that the disk was asked for.
    mutating func persistOne(_ offset: Int) throws {
        guard nodes[offset].raft != nil, !nodes[offset].work.isEmpty else { return }
        switch nodes[offset].work.removeFirst() {
        case .persist(let hardState, let entries, let waiting):
            if let hardState { nodes[offset].disk.hardState = hardState }
            nodes[offset].append(entries)
            messages += waiting
            let disk = nodes[offset].disk
            try event(offset) { $0.persisted(disk.lastLog, hardState: disk.hardState, now: $1) }
        case .install(let mark, let applied):
            nodes[offset].disk.snapshot = mark
            nodes[offset].disk.entries = []
            nodes[offset].disk.applied = applied
            try event(offset) { $0.snapshotInstalled(mark, now: $1) }
        }
    }

    mutating func persistAll(_ offset: Int) throws {
        while nodes[offset].raft != nil, !nodes[offset].work.isEmpty { try persistOne(offset) }
    }

    mutating func loadOne(_ offset: Int) throws {
        guard nodes[offset].raft != nil, !nodes[offset].loads.isEmpty else { return }
        let request = nodes[offset].loads.removeFirst()
        let entries = nodes[offset].loaded(request)
        try event(offset) { $0.loaded(request, entries: entries, now: $1) }
    }

    mutating func deliver(_ message: Message) throws {
        try event(offset(message.to)) { $0.receive(message, now: $1) }
    }

    mutating func finishTransfer(_ transfer: Transfer, succeeds: Bool) throws {
        let receiver = offset(transfer.to)
        if succeeds {
            var wanted = false
            try event(receiver) {
                let effects = $0.snapshotReceived(transfer.mark, from: transfer.from, term: transfer.term, now: $1)
                wanted = effects.install != nil
                return effects
            }
            if wanted { nodes[receiver].work.append(.install(transfer.mark, transfer.applied)) }
        }
        let through = succeeds ? transfer.mark.position.index : nil
        try event(offset(transfer.from)) { $0.snapshotSent(to: transfer.to, through: through, now: $1) }
    }

    /// Persists, loads and delivers until nothing is left to do.
    mutating func settle(without lost: [ReplicaID] = []) throws {
        for _ in 0..<100_000 {
            for offset in nodes.indices {
                try persistAll(offset)
                while nodes[offset].raft != nil, !nodes[offset].loads.isEmpty { try loadOne(offset) }
            }
            if !transfers.isEmpty {
                let transfer = transfers.removeFirst()
                let isUp = !lost.contains(transfer.from) && !lost.contains(transfer.to)
                try finishTransfer(transfer, succeeds: isUp)
            } else if !messages.isEmpty {
                let message = messages.removeFirst()
                if !lost.contains(message.from) && !lost.contains(message.to) { try deliver(message) }
            } else if nodes.allSatisfy({ $0.raft == nil || ($0.work.isEmpty && $0.loads.isEmpty) }) {
                return
            }
        }
        throw Violation("the cluster does not come to rest")
    }

    /// Lets time pass in small steps, with the network and the disks working.
    mutating func run(milliseconds: UInt64, without lost: [ReplicaID] = []) throws {
        for _ in 0..<(milliseconds / 50) {
            now = now.adding(milliseconds: 50)
            for offset in nodes.indices where !lost.contains(nodes[offset].id) {
                try event(offset) { $0.tick(now: $1) }
            }
            try settle(without: lost)
        }
    }

    /// Makes the replica the leader by letting its election timeout, and no other, pass.
    mutating func elect(_ id: UInt64, without lost: [ReplicaID] = []) throws {
        now = now.adding(milliseconds: 2000)
        try event(offset(ReplicaID(id))) { $0.tick(now: $1) }
        try settle(without: lost)
    }

    @discardableResult
    mutating func propose(_ id: UInt64, _ text: String) throws -> LogPosition {
        var first = LogPosition.zero
        try event(offset(ReplicaID(id))) {
            let (proposal, effects) = try $0.propose([Array(text.utf8)], now: $1)
            first = proposal.first
            return effects
        }
        return first
    }

    /// Has the replica lead a change from the configuration it has in force to this one.
    mutating func change(_ id: UInt64, voters: [UInt64], learners: [UInt64] = []) throws {
        let target = Configuration(voters: voters.map { ReplicaID($0) }, learners: learners.map { ReplicaID($0) })
        try event(offset(ReplicaID(id))) {
            try $0.propose(configuration: target, replacing: $0.configuration, now: $1).effects
        }
    }

    /// Starts a replica that knows nothing of the group yet.
    mutating func join(_ id: UInt64) {
        nodes.append(TestNode(id: ReplicaID(id), configuration: Configuration(voters: [])))
        start(nodes.count - 1)
    }

    mutating func read(_ id: UInt64, _ read: UInt64) throws {
        checker.readInvoked(read)
        try event(offset(ReplicaID(id))) { $0.read(read, now: $1) }
    }

    private mutating func note(_ effects: Effects, _ id: ReplicaID) {
        if let hardState = effects.hardState {
            notes.append("\(id) persist term \(hardState.term) vote \(hardState.vote?.description ?? "-")")
        }
        if let first = effects.append.first, let last = effects.append.last {
            notes.append("\(id) append \(first.position)..\(last.position)")
        }
        notes += effects.sendNow.map { "\(id) send \(describe($0))" }
        notes += effects.sendAfterPersist.map { "\(id) send after persist \(describe($0))" }
        if let commit = effects.commitIndex { notes.append("\(id) apply to \(commit)") }
        notes += effects.reads.map { "\(id) read \($0.id) at \($0.index)" }
        notes += effects.failedReads.map { "\(id) read \($0.id) failed, \($0.reason)" }
        notes += effects.loads.map { "\(id) load \($0.from)..\($0.through) for \($0.follower)" }
        notes += effects.snapshots.map { "\(id) snapshot for \($0)" }
        if let install = effects.install { notes.append("\(id) install \(install.position)") }
        if let change = effects.roleChange {
            notes.append("\(id) is \(change.role) in term \(change.term), leader \(change.leader?.description ?? "-")")
        }
    }
}
