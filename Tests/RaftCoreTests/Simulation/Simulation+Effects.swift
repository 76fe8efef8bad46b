import EventQueue

@testable import RaftCore

// The shell, the disk and the network of a simulation.
extension Simulation {
    mutating func perform(_ effects: Effects, at offset: Int) throws {
        let life = nodes[offset].life
        for message in effects.sendNow { try send(message, from: offset) }
        if effects.hardState != nil || !effects.append.isEmpty {
            nodes[offset].work.append(.persist(effects.hardState, effects.append, effects.sendAfterPersist))
        } else {
            guard effects.sendAfterPersist.isEmpty else { throw Violation("messages wait for no persist") }
        }
        if let mark = effects.install { nodes[offset].work.append(.install(mark)) }
        startDisk(offset)
        for load in effects.loads {
            counts.loads += 1
            queue.add(.loaded(offset, life: life, load), at: time + microseconds(50...3_000))
        }
        for follower in effects.snapshots { sendSnapshot(from: offset, to: follower) }
        if let commit = effects.commitIndex {
            nodes[offset].commitTarget = commit
            startApplying(offset)
        }
        for failed in effects.failedReads {
            mark(4, failed.id)
            counts.failedReads += 1
        }
        nodes[offset].reads += effects.reads
        if let change = effects.roleChange {
            note(
                "\(nodes[offset].id) is \(change.role) in term \(change.term), leader \(change.leader?.description ?? "-")"
            )
        }
        scheduleWake(offset, at: nodes[offset].clock.trueTime(of: effects.wakeAt))
        try answerReads(offset)
    }

    // MARK: Disk

    private mutating func startDisk(_ offset: Int) {
        guard !nodes[offset].isDiskBusy, !nodes[offset].work.isEmpty else { return }
        nodes[offset].isDiskBusy = true
        let delay = microseconds(20...(isHealed ? 2_000 : options.persistMicrosecondsMax))
        queue.add(.persisted(offset, life: nodes[offset].life), at: time + delay)
    }

    /// Some of what was asked for becomes durable at once, and is reported once.
    mutating func persisted(_ offset: Int, _ life: Int) throws {
        guard nodes[offset].life == life, nodes[offset].raft != nil else { return }
        nodes[offset].isDiskBusy = false
        var messages: [Message] = []
        var installed: SnapshotMark?
        for _ in 0..<Int.random(in: 1...max(1, nodes[offset].work.count), using: &generator) {
            guard !nodes[offset].work.isEmpty, installed == nil else { break }
            if case .install = nodes[offset].work[0], !messages.isEmpty { break }
            let work = nodes[offset].work.removeFirst()
            nodes[offset].perform(work)
            switch work {
            case .persist(_, _, let waiting): messages += waiting
            case .install(let mark): installed = mark
            }
        }
        for message in messages { try send(message, from: offset) }
        if let installed {
            nodes[offset].commitTarget = installed.position.index
            try event(offset) { $0.snapshotInstalled(installed, now: $1) }
        } else {
            let disk = nodes[offset].disk
            try event(offset) { $0.persisted(disk.lastLog, hardState: disk.hardState, now: $1) }
        }
        startDisk(offset)
    }

    mutating func loaded(_ offset: Int, _ life: Int, _ request: LoadRequest) throws {
        guard nodes[offset].life == life else { return }
        let entries = Array(nodes[offset].disk.entries(from: request.from, through: request.through).prefix(3))
        try event(offset) { $0.loaded(request, entries: entries, now: $1) }
    }

    // MARK: State machine

    private mutating func startApplying(_ offset: Int) {
        guard !nodes[offset].isApplying else { return }
        nodes[offset].isApplying = true
        queue.add(.applied(offset, life: nodes[offset].life), at: time + microseconds(10...5_000))
    }

    mutating func apply(_ offset: Int, _ life: Int) throws {
        guard nodes[offset].life == life, var raft = nodes[offset].raft else { return }
        nodes[offset].isApplying = false
        let from = nodes[offset].applied.next
        let through = nodes[offset].commitTarget
        // While a snapshot is being installed nothing is applied.
        guard from <= through, raft.replica.pendingInstall == nil else { return }
        let stored = nodes[offset].disk.entries(from: from, through: through)
        let entries = raft.entries(from: from, through: through, bytesMax: .max) ?? Array(stored)
        guard entries == Array(stored) else {
            throw Violation("\(nodes[offset].id) applies \(from)...\(through), which its disk does not hold so")
        }
        guard entries.last?.index == through else { throw Violation("\(nodes[offset].id) lacks \(through) to apply") }
        for entry in entries { try checker.apply(entry, by: nodes[offset].id) }
        nodes[offset].applied = through
        raft.applied(through)
        nodes[offset].raft = raft
        try answerReads(offset)
    }

    private mutating func answerReads(_ offset: Int) throws {
        guard !nodes[offset].reads.isEmpty else { return }
        let applied = nodes[offset].applied
        let ready = nodes[offset].reads.filter { $0.index <= applied }
        nodes[offset].reads.removeAll { $0.index <= applied }
        for read in ready {
            mark(3, read.id, read.index.rawValue)
            counts.indexReads += 1
            guard try checker.readAnswered(read) else {
                throw Violation("read \(read.id) at \(nodes[offset].id) missed what was committed when it came")
            }
        }
    }

    // MARK: Network

    private mutating func send(_ message: Message, from offset: Int) throws {
        try checker.sent(message, disk: nodes[offset].disk)
        if isLogging { note(describe(message)) }
        if chance(isHealed ? 0 : options.lossPercent) { return }
        let copies = chance(isHealed ? 0 : options.duplicatePercent) ? 2 : 1
        for _ in 0..<copies {
            // Each has a delay of its own, so they overtake each other.
            let most = isHealed ? 2_000 : options.delayMicrosecondsMax
            let extra =
                slow.contains(Link(from: offset, to: self.offset(of: message.to))) ? microseconds(0...300_000) : 0
            queue.add(.deliver(message), at: time + extra + microseconds(50...most))
        }
    }

    func offset(of id: ReplicaID) -> Int { Int(id.rawValue) - 1 }

    mutating func deliver(_ message: Message) throws {
        let receiver = offset(of: message.to)
        guard !cuts.contains(Link(from: offset(of: message.from), to: receiver)) else { return }
        try event(receiver) { $0.receive(message, now: $1) }
    }

    private mutating func sendSnapshot(from offset: Int, to follower: ReplicaID) {
        guard let term = nodes[offset].raft?.term else { return }
        let index = nodes[offset].applied
        let disk = nodes[offset].disk
        let position =
            index == disk.snapshot.position.index
            ? disk.snapshot.position : disk.entries(from: index, through: index).first?.position ?? .zero
        let bootstrap = disk.snapshot.configuration
        let mark = SnapshotMark(
            position: position, configuration: checker.configuration(at: index, bootstrap: bootstrap))
        let snapshot = Snapshot(from: offset, life: nodes[offset].life, to: follower, term: term, mark: mark)
        queue.add(.snapshot(snapshot), at: time + microseconds(500...200_000))
    }

    mutating func arrived(_ snapshot: Snapshot) throws {
        let receiver = offset(of: snapshot.to)
        let link = Link(from: snapshot.from, to: receiver)
        let isLost = cuts.contains(link) || !isHealed && chance(20) || nodes[receiver].raft == nil
        if !isLost, nodes[receiver].raft?.replica.pendingInstall == nil {
            counts.snapshots += 1
            note("\(snapshot.to) received a snapshot at \(snapshot.mark.position)")
            try event(receiver) {
                $0.snapshotReceived(
                    snapshot.mark, from: ReplicaID(UInt64(snapshot.from) + 1), term: snapshot.term, now: $1)
            }
        }
        guard nodes[snapshot.from].life == snapshot.life else { return }
        let through = isLost ? nil : snapshot.mark.position.index
        try event(snapshot.from) { $0.snapshotSent(to: snapshot.to, through: through, now: $1) }
    }
}
