import EventQueue

@testable import RaftCore

// What goes wrong, and how it ends.
extension Simulation {
    mutating func causeFault() throws {
        if isHealed { return }
        queue.add(.fault, at: time + microseconds(10_000...(options.faultIntervalMilliseconds * 2_000)))
        if options.huntsLeases { return cutOffLeader() }
        let offset = chance(60) ? leaderOffset ?? 0 : Int.random(in: nodes.indices, using: &generator)
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<30: partition(round: offset)
        case 30..<40: slowDown(round: offset)
        case 40..<50: (cuts, slow) = ([], [])
        case 50..<65: if options.crashes { crash(offset) }
        case 65..<67: if options.crashes { for other in nodes.indices { crash(other) } }
        case 67..<82: pause(offset)
        case 82..<92: drift(offset)
        default:
            let other = ReplicaID(UInt64.random(in: 1...UInt64(nodes.count), using: &generator))
            try event(offset) { $0.peerDisconnected(other, now: $1) }
        }
    }

    /// The leader answers late, or is not heard, or is heard again.
    private mutating func cutOffLeader() {
        let leader = leaderOffset ?? 0
        counts.partitions += 1
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
            for other in nodes.indices { slow.insert(Link(from: other, to: leader)) }
        case 1: (cuts, slow) = ([], [])
        default:
            cuts = []
            for other in nodes.indices where other != leader { cuts.insert(Link(from: leader, to: other)) }
            drift(Int.random(in: nodes.indices, using: &generator))
        }
    }

    private mutating func partition(round offset: Int) {
        guard options.partitions || options.oneWayPartitions else { return }
        counts.partitions += 1
        cuts = []
        let others = nodes.indices.filter { $0 != offset }
        var kinds: [Int] = []
        if options.partitions { kinds += [0, 1, 1, 2] }
        if options.oneWayPartitions { kinds += [3, 4, 4, 5] }
        switch kinds.randomElement(using: &generator) ?? 0 {
        case 0:  // halves
            let sides = nodes.indices.map { _ in Bool.random(using: &generator) }
            for from in nodes.indices {
                for to in nodes.indices where sides[from] != sides[to] { cuts.insert(Link(from: from, to: to)) }
            }
        case 1:  // one alone
            for other in others {
                cuts.insert(Link(from: offset, to: other))
                cuts.insert(Link(from: other, to: offset))
            }
        case 2:  // a bridge: two sides meet in one
            for from in others {
                for to in others where (from + to) % 2 == 1 { cuts.insert(Link(from: from, to: to)) }
            }
        case 3:  // it hears nobody
            deafen(offset)
        case 4:  // nobody hears it
            for other in others { cuts.insert(Link(from: offset, to: other)) }
        default:  // links at random, each way by itself
            for from in nodes.indices {
                for to in nodes.indices where chance(30) { cuts.insert(Link(from: from, to: to)) }
            }
        }
    }

    /// Makes what one replica sends, or what it is sent, take long; the rest of the network stays quick.
    private mutating func slowDown(round offset: Int) {
        let isInward = Bool.random(using: &generator)
        slow = []
        for other in nodes.indices where other != offset {
            slow.insert(isInward ? Link(from: other, to: offset) : Link(from: offset, to: other))
        }
    }

    /// Has the replica hear nobody.
    mutating func deafen(_ offset: Int) {
        for other in nodes.indices where other != offset { cuts.insert(Link(from: other, to: offset)) }
    }

    private mutating func crash(_ offset: Int) {
        guard nodes[offset].raft != nil else { return }
        counts.crashes += 1
        note("\(nodes[offset].id) crashes")
        nodes[offset].crash(using: &generator)
        queue.add(.start(offset), at: time + microseconds(1_000...(chance(50) ? 50_000 : 3_000_000)))
    }

    /// Stops a replica as SIGSTOP does: messages wait for it, and its clock runs on.
    private mutating func pause(_ offset: Int) {
        guard options.pauses else { return }
        counts.pauses += 1
        nodes[offset].pausedUntil = time + microseconds(50_000...2_500_000)
        note("\(nodes[offset].id) is paused")
    }

    /// Mends the world and requires of the group what it is for (section 3.9): within seconds it has one leader, ends
    /// the change of members under way, commits, brings everyone up to date and serves reads.
    mutating func healAndProgress() throws {
        isHealed = true
        (cuts, slow) = ([], [])
        for offset in nodes.indices {
            nodes[offset].pausedUntil = 0
            nodes[offset].clock.setDrift(0, at: time)
            rewake(offset)
            start(offset)
        }
        note("healed")
        try run(until: time + 15_000 * Self.millisecond)
        guard let leader = leaderOffset, let raft = nodes[leader].raft else {
            throw Violation("no leader after healing")
        }
        guard raft.isConfigurationCommitted, !raft.configuration.isJoint, raft.configuration == checker.configuration
        else { throw Violation("the change of members to \(raft.configuration) does not end") }
        guard let position = try propose(at: leader) else {
            throw Violation("\(raft.id) refuses proposals after healing")
        }
        let served = counts.indexReads + counts.leaseReads
        try read(at: leader)
        try run(until: time + 2_000 * Self.millisecond)
        guard counts.indexReads + counts.leaseReads > served else { throw Violation("no read is served after healing") }
        for member in raft.configuration.all {
            let node = nodes[offset(of: member)]
            guard node.applied >= position.index else {
                throw Violation("\(member) has applied \(node.applied) of \(position.index) after healing")
            }
            guard node.raft?.term == nodes[leader].raft?.term else {
                throw Violation("\(member) is in term \(node.raft?.term ?? .zero) after healing")
            }
        }
        try checker.checkLogs(nodes)
    }
}
