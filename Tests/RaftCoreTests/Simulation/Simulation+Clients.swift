import EventQueue

@testable import RaftCore

// Those who use the group, and those who run it.
extension Simulation {
    mutating func useClient() throws {
        let isHunting = options.huntsLeases && !isHealed
        queue.add(.client, at: time + microseconds(isHunting ? 1_000...8_000 : 1_000...40_000))
        let offset = chance(80) ? leaderOffset ?? 0 : Int.random(in: nodes.indices, using: &generator)
        if chance(50) {
            if isUp(offset) { try propose(at: offset) }
        } else {
            // Everyone who thinks that it leads is asked: one of them may not know that it does not any more.
            for offset in nodes.indices where nodes[offset].raft?.role == .leader && isUp(offset) {
                try read(at: offset)
            }
        }
    }

    func isUp(_ offset: Int) -> Bool { nodes[offset].raft != nil && nodes[offset].pausedUntil <= time }

    /// The running leader of the latest term, if any thinks it leads.
    var leaderOffset: Int? {
        let leading = nodes.indices.filter { nodes[$0].raft?.role == .leader }
        return leading.max { nodes[$0].raft?.term ?? .zero < nodes[$1].raft?.term ?? .zero }
    }

    @discardableResult
    mutating func propose(at offset: Int) throws -> LogPosition? {
        let commands = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            nextCommand += 1
            return (0..<8).map { UInt8(truncatingIfNeeded: nextCommand >> (8 * $0)) }
                + [UInt8](repeating: 0, count: Int.random(in: 0...60, using: &generator))
        }
        var first: LogPosition?
        do {
            try event(offset) {
                let (proposal, effects) = try $0.propose(commands, now: $1)
                first = proposal.first
                return effects
            }
            counts.proposed += commands.count
        } catch is ProposalError {
            counts.refused += 1
        }
        return first
    }

    mutating func read(at offset: Int) throws {
        nextRead += 1
        let id = nextRead
        checker.readInvoked(id)
        let isAlone = nodes[offset].raft?.replica.isOnlyVoter ?? false
        guard var raft = nodes[offset].raft else { return }
        let now = nodes[offset].clock.local(at: time)
        var effects = raft.read(id, now: now)
        nodes[offset].raft = raft
        if !isAlone, let ready = effects.reads.first(where: { $0.id == id }) {
            // Under a lease. Where clocks keep to no bound it may be too old, but nothing else may go wrong.
            counts.leaseReads += 1
            mark(5, ready.id, ready.index.rawValue)
            if try !checker.readAnswered(ready) {
                guard !options.isDriftWithinBound else {
                    throw Violation("read \(id) at \(nodes[offset].id) under a lease missed what was committed")
                }
                counts.staleReads += 1
            }
            effects.reads.removeAll { $0.id == id }
        }
        try perform(effects, at: offset)
    }

    // MARK: Operator

    /// Changes members, hands over, compacts.
    mutating func operate() throws {
        queue.add(.operation, at: time + microseconds(100_000...1_500_000))
        if isHealed { return }
        if options.compaction { compact() }
        retire()
        guard let leader = leaderOffset, isUp(leader) else { return }
        if options.transfers, chance(25) { try transfer(from: leader) }
        if options.membership, chance(60) { try changeMembers(at: leader) }
    }

    private mutating func compact() {
        let offset = Int.random(in: nodes.indices, using: &generator)
        guard var raft = nodes[offset].raft, raft.replica.pendingInstall == nil else { return }
        let disk = nodes[offset].disk
        let applied = nodes[offset].applied
        let back = UInt64.random(in: 0...5, using: &generator)
        guard applied.rawValue > back else { return }
        let index = LogIndex(applied.rawValue - back)
        guard index > disk.snapshot.position.index, let entry = disk.entries(from: index, through: index).first,
            raft.status.appliedIndex >= index
        else { return }
        let bootstrap = disk.snapshot.configuration
        var configuration = bootstrap
        for entry in disk.entries where entry.index <= index {
            if case .configuration(let newer) = entry.payload { configuration = newer }
        }
        nodes[offset].checkpoint = max(nodes[offset].checkpoint, index)
        nodes[offset].disk.entries.removeAll { $0.index <= index }
        nodes[offset].disk.snapshot = SnapshotMark(position: entry.position, configuration: configuration)
        raft.compacted(through: nodes[offset].disk.snapshot)
        nodes[offset].raft = raft
    }

    private mutating func transfer(from leader: Int) throws {
        guard let raft = nodes[leader].raft, let target = raft.configuration.all.randomElement(using: &generator) else {
            return
        }
        let effects = try event(leader) { $0.transferLeadership(to: target, now: $1) }
        if effects?.sendNow.contains(where: { $0.body == .timeoutNow }) == true { counts.transfers += 1 }
        // The old leader may be the last to hear of it.
        if options.oneWayPartitions, chance(50) { deafen(leader) }
    }

    private mutating func changeMembers(at leader: Int) throws {
        guard let base = nodes[leader].raft?.configuration else { return }
        var voters: [ReplicaID] = []
        var learners: [ReplicaID] = []
        for voter in base.voters {
            let fate = Int.random(in: 0..<100, using: &generator)
            if fate < 80 { voters.append(voter) } else if fate < 87 { learners.append(voter) }
        }
        for learner in base.learners {
            let fate = Int.random(in: 0..<100, using: &generator)
            if fate < 60 { voters.append(learner) } else if fate < 90 { learners.append(learner) }
        }
        if voters.count + learners.count < 6, nodes.count < 60, chance(60) {
            let id = ReplicaID(UInt64(nodes.count) + 1)
            nodes.append(SimulatedNode(id: id, bootstrap: Configuration(voters: [])))
            nodes[nodes.count - 1].outsideSince = time
            drift(nodes.count - 1)
            start(nodes.count - 1)
            learners.append(id)
        }
        let target = Configuration(voters: voters, learners: learners)
        note("operator: \(base) to \(target)")
        do {
            try event(leader) { try $0.propose(configuration: target, replacing: base, now: $1).effects }
            counts.changes += 1
        } catch is ConfigurationChangeError {
            counts.refusedChanges += 1
        }
    }

    /// Stops those who were removed for good, after they had time to disturb.
    private mutating func retire() {
        for offset in nodes.indices where !nodes[offset].isRetired {
            if checker.configuration.contains(nodes[offset].id) {
                nodes[offset].outsideSince = nil
            } else if let since = nodes[offset].outsideSince {
                // Nobody may have it in a configuration that is still to be committed.
                let isNeeded = nodes.contains {
                    $0.raft?.configuration.contains(nodes[offset].id) == true && !$0.isRetired
                }
                if time - since > 5_000 * Self.millisecond, !isNeeded || time - since > 30_000 * Self.millisecond,
                    !pendingMembers.contains(nodes[offset].id)
                {
                    nodes[offset].crash(using: &generator)
                    nodes[offset].isRetired = true
                    note("\(nodes[offset].id) retires")
                }
            } else {
                nodes[offset].outsideSince = time
            }
        }
    }

    /// Members by configurations in some log, running or not, that come after the committed one.
    private var pendingMembers: Set<ReplicaID> {
        var members: Set<ReplicaID> = []
        for node in nodes where !node.isRetired {
            for entry in node.disk.entries where entry.index > checker.appliedIndex {
                if case .configuration(let configuration) = entry.payload { members.formUnion(configuration.all) }
            }
        }
        return members
    }
}
