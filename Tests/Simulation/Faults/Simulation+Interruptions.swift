import Cluster
import PeerTransport
import RaftCore

// Writes that are under way as something happens to the node that leads their group.
extension Simulation {
    /// Has all clients write to one zone, without idempotency keys and by way of other nodes, and then ends the zone's
    /// leader or cuts it off. What was on its way must not be done twice.
    func interrupt() {
        guard let (group, leader, others) = replicasOfAnyGroup() else { return }
        let zones = recorder.zones.indices.filter { recorder.zones[$0].group == group }
        guard !zones.isEmpty else { return }
        let (zone, number) = (world.pick(zones), Int(leader.node.rawValue))
        let isDeaf = world.chance(60)
        for client in clients {
            let node = isDeaf ? number : world.pick(others)
            let aim = Client.Aim(node: node, zone: zone, isReading: false, isKeyless: true)
            client.hurry(for: 1_200 * World.millisecond, aim: aim)
        }
        if isDeaf { return deafenLeader(number) }
        world.schedule(after: world.milliseconds(300...1_200), .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm else { return }
            switch world.random(0...3) {
            case 0: crashShortly(nodes[number - 1], .process)
            case 1:
                network.isolate(number)
                world.schedule(after: world.milliseconds(500...4_000), .fault, for: nil) { [unowned self] in
                    network.heal()
                }
            default: nodes[number - 1].stop { [self] in restartLater(nodes[number - 1]) }
            }
        }
    }

    /// Has a webhook's receiver take long to answer now and then, while clients change more of what it is told. Then
    /// the node that waits for the answer ends, or it applies so slowly that reads get no answer in time.
    /// - Returns: for how long the receiver takes.
    func disturbDelivery(by node: Int) -> UInt64? {
        guard !isHealed, !isCalm, world.chance(10) else { return nil }
        count("delivery")
        let pause = world.milliseconds(1_000...4_000)
        disturbed(for: pause + 12 * World.second)
        for client in clients { client.hurry(for: pause) }
        if world.chance(50) {
            nodes[node - 1].slowApplying(byMicroseconds: 15_000_000)
            world.schedule(after: pause + 8 * World.second, .fault, for: nil) { [unowned self] in
                nodes[node - 1].quickenDisk()
            }
        } else {
            world.schedule(after: pause, .fault, for: nil) { [unowned self] in
                guard !isHealed, !isCalm else { return }
                crashShortly(nodes[node - 1], world.pick([.process, .power]))
            }
        }
        return pause + 100 * World.millisecond
    }

    /// Has a leader hear nobody, though all hear it, for longer than clients of that node are kept waiting: what it has
    /// begun is done, and it cannot know. Or it knows and has forgotten who asked, as it applies too slowly.
    private func deafenLeader(_ number: Int) {
        disturbed(for: 12 * World.second)
        let isSlow = world.chance(40)
        if isSlow { nodes[number - 1].slowApplying(byMicroseconds: UInt64(world.random(1_000_000...4_000_000))) }
        world.schedule(after: world.milliseconds(300...1_000), .fault, for: nil) { [unowned self] in
            if !isHealed, !isCalm, !isSlow { network.deafen(number) }
        }
        world.schedule(after: world.milliseconds(7_500...9_500), .fault, for: nil) { [unowned self] in
            network.heal()
            nodes[number - 1].quickenDisk()
        }
    }

    /// Has another node lead a group soon, with all its replicas there: the present leader's wall clock is wrong for a
    /// moment, and such a node leads nothing.
    func depose(_ group: GroupID) {
        guard let leader = raftWatch.reigns[group]?.leader else { return }
        let node = nodes[Int(leader.node.rawValue) - 1]
        // Where two clocks of three are wrong, nobody knows which are.
        guard !isHealed, !isCalm, node.running != nil, nodes.allSatisfy({ $0.wallError == 0 }) else { return }
        world.note("FAULT node \(node.number), which leads group \(group), is deposed")
        count("depose")
        wrongSince = world.now
        node.setWall(common: commonOffset, error: world.pick([-3_600_000, 3_600_000]))
        world.schedule(after: world.milliseconds(1_300...2_500), .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm else { return }
            wrongSince = world.now
            node.setWall(common: commonOffset, error: 0)
        }
    }
}
