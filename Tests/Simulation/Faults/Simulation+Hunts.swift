import Cluster
import Directory
import PeerTransport
import RaftCore

// Faults that come together where an answer could go wrong: random ones meet too seldom.

/// A leader that will not hear of the next one.
struct Ambush {
    var group: GroupID
    var leader: ReplicaID
    var until: UInt64
}

extension Simulation {
    // MARK: A leader that does not know

    /// Has a group elect another leader, and sees to it that the old one does not hear of it while clients go on asking
    /// it. What it answers from then on must still be what all were told.
    func ambush() {
        guard let (group, leader, others) = replicasOfAnyGroup() else { return }
        trap = Ambush(group: group, leader: leader, until: world.now + 20 * World.second)
        switch world.random(0...2) {
        case 0: preferLeader(others[0], of: group)
        case 1: silence(leader, for: others[0])
        default:
            // Who promised the leader time forgets it, perhaps.
            silence(leader, for: others[0])
            guard others.count > 1 else { break }
            world.schedule(after: world.milliseconds(1_500...4_000), .fault, for: nil) { [unowned self] in
                if isHealed || isCalm { return }
                crashShortly(nodes[others[1] - 1], .process)
            }
        }
        world.schedule(after: 25 * World.second, .fault, for: nil) { [unowned self] in network.heal() }
    }

    /// Has a follower not hear the leader. Nobody writes meanwhile: nobody elects who has missed something.
    private func silence(_ leader: ReplicaID, for follower: Int) {
        network.cut(from: Int(leader.node.rawValue), to: follower)
        for client in clients { client.rest(for: 6 * World.second) }
    }

    /// Cuts the leader off from the others' voices as soon as another one campaigns.
    func spring(at sent: PeerMessage) {
        guard let trap, trap.group == sent.group, !isHealed else { return }
        switch sent.message.body {
        case .voteRequest where sent.message.from.node != trap.leader.node: break
        case .timeoutNow: break
        default: return
        }
        self.trap = nil
        guard world.now < trap.until else { return }
        let leader = Int(trap.leader.node.rawValue)
        world.note("AMBUSH of \(trap.leader), which leads group \(trap.group)")
        network.deafen(leader)
        ask(leader, what: trap.group)
        let duration = world.milliseconds(world.chance(70) ? 3_000...8_000 : 500...3_000)
        world.schedule(after: duration, .fault, for: nil) { [unowned self] in network.heal() }
    }

    /// Has some clients read what the others write, the ones at a node and the others everywhere else. One goes on
    /// writing at that node, which another leader's entries take the place of.
    func ask(_ node: Int, what group: GroupID) {
        let zones = recorder.zones.indices.filter { recorder.zones[$0].group == group }
        let others = nodes.filter { $0.running != nil && $0.number != node }.map(\.number)
        guard !zones.isEmpty, !others.isEmpty else { return }
        let zone = world.pick(zones)
        let member = NodeID(UInt64(node))
        for (place, client) in clients.enumerated() {
            let isReading = place % 2 == 0
            let isAtNode = isReading || place % 4 == 3
            var aim = Client.Aim(node: isAtNode ? node : world.pick(others), zone: zone, isReading: isReading)
            aim.isDeposed = { [unowned self] in raftWatch.reigns[group].map { $0.leader.node != member } ?? false }
            client.hurry(for: 4 * World.second, aim: aim)
        }
    }

    private func preferLeader(_ node: Int, of group: GroupID) {
        guard manager.hasEnded else { return }
        change(.preferLeader(shard: group.shard, node: UInt64(node)))
    }

    // MARK: A node that forgets

    /// Lets two of three go on, the disk of one of them slow; then takes its power and the other one's network away.
    /// What was acknowledged meanwhile must be known to whoever is left.
    func causeAmnesia() {
        guard let (_, leader, others) = replicasOfAnyGroup(), others.count > 1 else { return }
        let leading = Int(leader.node.rawValue)
        let (forgetful, keeper) = world.chance(50) ? (leading, others[0]) : (others[0], leading)
        network.isolate(others[1])
        nodes[forgetful - 1].slowDisk(byMicroseconds: UInt64(world.random(200_000...1_000_000)))
        hurry(for: 8 * World.second)
        world.schedule(after: world.milliseconds(500...4_000), .fault, for: nil) { [unowned self] in
            if isHealed || isCalm { return }
            crashShortly(nodes[forgetful - 1], .power)
            network.heal()
            network.isolate(keeper)
            world.schedule(after: world.milliseconds(4_000...12_000), .fault, for: nil) { [unowned self] in
                network.heal()
            }
        }
    }

    // MARK: A change that not every node can hear of

    /// Cuts the directory's leader and one node off from each other, for longer than the node may rely on what it
    /// knows.
    /// - Returns: another node, which hears both.
    func hideDirectory() -> Int? {
        guard !isHealed, !isCalm, let leader = raftWatch.reigns[.directory]?.leader.node else { return nil }
        let leading = Int(leader.rawValue)
        let present = nodes.filter { $0.running != nil && $0.number != leading }.map(\.number)
        guard present.count > 1 else { return nil }
        let (hidden, other) = (present.shuffled(using: &world.generator)[0], present[0])
        let between = other == hidden ? present[1] : other
        world.note("node \(hidden) and node \(leading), which leads the directory, do not hear each other")
        network.cut(from: leading, to: hidden)
        network.cut(from: hidden, to: leading)
        disturbed(for: 15 * World.second)
        world.schedule(after: 15 * World.second, .fault, for: nil) { [unowned self] in network.heal() }
        return between
    }

    // MARK: A share that was given back

    /// Now and then has a node give its share of the rate back, as nobody asks it for a second, and then both it and
    /// the node that takes the share over be asked for more than the limit.
    func schedulePressing() {
        world.schedule(after: world.milliseconds(15_000...45_000), .client, for: nil) { [unowned self] in
            guard !isHealed else { return }
            if world.chance(25) { press() } else { rob() }
            schedulePressing()
        }
    }

    private func press() {
        let present = nodes.filter { $0.running != nil }.map(\.number).shuffled(using: &world.generator)
        guard present.count > 1 else { return }
        world.note("PRESS node \(present[0]), then node \(present[1]), too")
        press(nodes: [present[0]])
        world.schedule(after: World.second, .client, for: nil) { [unowned self] in
            for client in clients { client.rest(for: 4 * World.second) }
        }
        world.schedule(after: world.milliseconds(2_020...2_600), .client, for: nil) { [unowned self] in
            guard !isHealed else { return }
            press(nodes: [present[0], present[1]])
        }
    }

    func press(nodes numbers: [Int], for nanoseconds: UInt64 = World.second) {
        for (place, client) in clients.enumerated() {
            let node = numbers[place % numbers.count]
            client.hurry(
                for: nanoseconds, aim: Client.Aim(node: node, zone: 0, isReading: false, isPressing: true))
        }
    }

    // MARK: Parts

    /// Who leads a group of which there is a history, and the nodes that hold its other replicas, in any order.
    func replicasOfAnyGroup() -> (GroupID, ReplicaID, others: [Int])? {
        let group = world.pick(groups.filter { $0 != .directory })
        guard let map = newestMap, let leader = raftWatch.reigns[group]?.leader else { return nil }
        let others = map.replicas(ofShard: group.shard).filter { $0.node != leader.node.rawValue }.map { Int($0.node) }
        return others.isEmpty ? nil : (group, leader, others.shuffled(using: &world.generator))
    }

    /// Ends a process and starts it again within the time that leases and elections take.
    func crashShortly(_ node: SimulatedNode, _ crash: SimulatedDisk.Crash) {
        guard !node.isDown else { return }
        node.crash(crash)
        world.schedule(after: world.milliseconds(20...400), .process, for: nil) { node.start() }
    }

    private func hurry(for nanoseconds: UInt64) {
        for client in clients { client.hurry(for: nanoseconds) }
    }
}
