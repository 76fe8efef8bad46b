import Cluster
import PeerTransport
import RaftCore

// What goes wrong, and how it ends.
extension Simulation {
    func scheduleFault(after milliseconds: UInt64) {
        world.schedule(after: milliseconds * World.millisecond, .fault, for: nil) { [unowned self] in
            guard !isHealed else { return }
            if !isCalm { causeFault(world.pick(options.faults)) }
            scheduleFault(
                after: UInt64.random(in: 500...(2 * options.faultIntervalMilliseconds), using: &world.generator))
        }
    }

    private func causeFault(_ fault: SimulationOptions.Fault) {
        let node = world.pick(nodes.filter { $0.isEnlisted && !$0.isRetired })
        let duration = world.milliseconds(world.chance(70) ? 200...6_000 : 6_000...25_000)
        world.note("FAULT \(fault.rawValue) at node \(node.number) for \(duration / World.millisecond) ms")
        report.faults[fault.rawValue, default: 0] += 1
        if ![.jump, .drift].contains(fault) { disturbed(for: duration) }
        switch fault {
        case .halves, .alone, .bridge, .deaf, .mute, .holes: cut(fault, round: node.number, for: duration)
        case .slow: slowDown(round: node.number, for: duration)
        case .broken: network.breakConnections(percent: world.random(10...100))
        case .kill: crash(node, .process)
        case .power: crash(node, .power)
        case .powerAtCall: crashAtCall(node)
        case .blackout: for node in nodes where node.isEnlisted { crash(node, .power) }
        case .restart: node.stop { [self] in restartLater(node) }
        case .pause: pause(node, for: duration)
        case .suspend: suspend(node, for: duration)
        case .drift: drift(node)
        case .jump: jump(node, for: duration)
        case .failingDisk: failDisk(of: node, for: duration)
        case .fullDisk: fillDisk(of: node, for: duration)
        case .slowDisk: node.slowDisk(byMicroseconds: UInt64(world.random(50_000...1_000_000)))
        case .ambush: ambush()
        case .amnesia: causeAmnesia()
        case .interruption: interrupt()
        case .rivals: cutOffLeaders()
        case .lag: overtaxSuccessor()
        case .slowLoad: breakWhileLoading()
        }
    }

    // MARK: Network

    private func cut(_ fault: SimulationOptions.Fault, round node: Int, for duration: UInt64) {
        let all = Array(1...network.nodeCount)
        let others = all.filter { $0 != node }
        switch fault {
        case .halves:
            let sides = all.map { _ in Bool.random(using: &world.generator) }
            for from in all {
                for to in all where sides[from - 1] != sides[to - 1] { network.cut(from: from, to: to) }
            }
        case .bridge:
            for from in others {
                for to in others where (from + to) % 2 == 1 { network.cut(from: from, to: to) }
            }
        case .deaf: network.deafen(node)
        case .mute: for other in others { network.cut(from: node, to: other) }
        case .holes:
            for from in all {
                for to in all where world.chance(30) { network.cut(from: from, to: to) }
            }
        default: network.isolate(node)
        }
        world.schedule(after: duration, .fault, for: nil) { [unowned self] in network.heal() }
    }

    private func slowDown(round node: Int, for duration: UInt64) {
        let isInward = Bool.random(using: &world.generator)
        let most = UInt64.random(in: 20_000...1_500_000, using: &world.generator)
        for other in 1...network.nodeCount where other != node {
            network.slowDown(from: isInward ? other : node, to: isInward ? node : other, byMicroseconds: most)
        }
        world.schedule(after: duration, .fault, for: nil) { [unowned self] in network.heal() }
    }

    // MARK: Processes

    func crash(_ node: SimulatedNode, _ crash: SimulatedDisk.Crash) {
        guard !node.isDown else { return }
        node.crash(crash)
        restartLater(node)
    }

    /// The power fails in the middle of something: before one of the disk's next calls; of its next syncs, when what
    /// was written is torn at worst; or before it is asked to keep names that it was given.
    private func crashAtCall(_ node: SimulatedNode) {
        let aim: SimulatedDisk.Call? = world.pick([nil, .sync, .sync, .folderSync])
        let calls =
            aim == .folderSync ? 1 : aim == .sync || world.chance(50) ? world.random(1...10) : world.random(10...300)
        // Sometimes the calls of the next start are meant.
        if world.chance(40) { crash(node, .power) }
        failPower(of: node, before: calls, aim)
    }

    /// Takes a node's power before the n-th of its disk's next calls of a kind; nil is any.
    private func failPower(of node: SimulatedNode, before calls: Int, _ aim: SimulatedDisk.Call? = nil) {
        var calls = calls
        node.beforeDiskCall = { [unowned self, unowned node] call in
            if let aim, aim != call { return }
            calls -= 1
            guard calls <= 0 else { return }
            node.beforeDiskCall = nil
            crash(node, .power)
        }
    }

    /// Starts a node again that has ended by itself. What a disk that failed has lost is written again then, unless the
    /// power fails before; what was believed to be written must be there if it fails later.
    func recover(_ node: SimulatedNode) {
        if node.mayFail, !isHealed, world.chance(70) {
            failPower(of: node, before: world.chance(50) ? world.random(1...12) : world.random(15...150))
        }
        restartLater(node)
    }

    private func pause(_ node: SimulatedNode, for duration: UInt64) {
        guard let process = node.process, !process.isDead else { return }
        process.pausedUntil = max(process.pausedUntil, world.now + duration)
    }

    /// Has a machine stand still with its clock, and hears nothing for a while after: it may believe that it leads.
    private func suspend(_ node: SimulatedNode, for duration: UInt64) {
        // Nothing is promised of rates then.
        guard let process = node.process, !process.isDead, !options.hasPressing else { return }
        let leading = groups.filter { raftWatch.reigns[$0]?.leader.node.rawValue == UInt64(node.number) }
        let duration = min(duration, 8 * World.second)
        process.suspend(for: duration, at: world.now)
        guard let group = leading.last else { return }
        world.met(.suspendedLeader)
        network.deafen(node.number)
        world.schedule(after: duration, .fault, for: nil) { [unowned self] in
            if !isHealed, !isCalm { ask(node.number, what: group) }
        }
        world.schedule(after: duration + world.milliseconds(1_000...3_000), .fault, for: nil) { [unowned self] in
            network.heal()
        }
    }

    private func drift(_ node: SimulatedNode) {
        let most = options.driftPartsPerMillionMax
        // The ends of the range are where it hurts.
        node.driftPartsPerMillion = world.pick([
            -most, most, Int64.random(in: -most...most, using: &world.generator), 0,
        ])
        node.process?.clock.setDrift(node.driftPartsPerMillion, at: world.now)
    }

    /// Sets one wall clock wrong, by days where there are such clocks, and right again.
    private func jump(_ node: SimulatedNode, for duration: UInt64) {
        let most: Int64 = world.chance(options.wrongDaysPercent) ? 10 * 86_400_000 : 3_600_000
        wrongSince = world.now
        node.setWall(common: commonOffset, error: Int64.random(in: -most...most, using: &world.generator))
        world.schedule(after: duration, .fault, for: nil) { [unowned self] in
            wrongSince = world.now
            node.setWall(common: commonOffset, error: 0)
        }
    }

    /// Sets one clock wrong once everything else has been well for long enough that its node knows.
    func scheduleWrongClock() {
        let time = world.milliseconds(60_000...max(60_000, options.seconds * 600))
        world.schedule(after: time, .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm else { return }
            calmUntil = world.now + 90 * World.second
            mend()
            disturbed(for: 0)
            let node = world.pick(nodes.filter { $0.isEnlisted && !$0.isRetired })
            // A node that starts with a wrong clock never knew how far it is from the others'.
            let isFromStart = world.chance(40)
            if isFromStart { crashShortly(node, .process) }
            world.schedule(after: (isFromStart ? 0 : 45) * World.second, .fault, for: nil) { [unowned self] in
                guard !isHealed else { return }
                world.note("FAULT wrong clock, alone, of node \(node.number)")
                count("wrongClock")
                jump(node, for: (isFromStart ? 85 : 40) * World.second)
            }
            world.schedule(after: 65 * World.second, .fault, for: nil) { [unowned self] in
                guard !isHealed else { return }
                for client in clients { client.hurry(for: 3 * World.second) }
            }
        }
    }

    // MARK: Disks

    private func failDisk(of node: SimulatedNode, for duration: UInt64) {
        node.mayFail = true
        let share = world.pick([1_000, 20_000, 1_000_000])
        // What cannot be read is taken from the others, so one machine's disk alone does that.
        if node.number == 1, options.loss == nil, world.chance(50) {
            node.hasLostData = true
            node.diskFaults.readFailuresPerMillion = share
            // The log is read at a start above all.
            crash(node, .process)
            world.schedule(after: duration / 4, .process, for: nil) { node.start() }
        } else {
            node.diskFaults.failuresPerMillion = share
        }
        world.schedule(after: duration, .fault, for: nil) {
            node.diskFaults.failuresPerMillion = 0
            node.diskFaults.readFailuresPerMillion = 0
        }
    }

    private func fillDisk(of node: SimulatedNode, for duration: UInt64) {
        node.mayFail = true
        node.hasBeenFull = true
        node.diskFaults.isFull = true
        // More then waits for the log than it takes at once.
        if world.chance(50) { node.slowDisk(byMicroseconds: UInt64(world.random(100_000...1_000_000))) }
        if world.chance(60) { write(for: min(duration, 6 * World.second)) }
        world.schedule(after: duration, .fault, for: nil) { node.diskFaults.isFull = false }
    }

    /// Has every client write to some zone as often as it can.
    private func write(for nanoseconds: UInt64) {
        for client in clients {
            let (node, zone) = (world.pick(nodes).number, world.random(0...(recorder.zones.count - 1)))
            var aim = Client.Aim(node: node, zone: zone, isReading: false)
            aim.padding = world.random(500...2_000)
            client.hurry(for: nanoseconds, aim: aim)
        }
    }

    // MARK: Healing

    /// Mends everything that is broken, for good.
    func heal() {
        isHealed = true
        world.note("HEALED")
        network.conditions = SimulatedNetwork.Conditions()
        network.mend()
        receiver?.isReliable = true
        for node in nodes { node.quicken() }
        mend()
    }

    /// Ends the faults that go on.
    func mend() {
        trap = nil
        network.heal()
        for node in nodes {
            node.diskFaults = SimulatedDisk.Faults()
            node.beforeDiskCall = nil
            node.driftPartsPerMillion = 0
            node.setWall(common: commonOffset, error: 0)
            node.process?.clock.setDrift(0, at: world.now)
            node.process?.resume(at: world.now)
            node.quickenDisk()
            if node.isEnlisted { node.start() }
        }
    }
}
