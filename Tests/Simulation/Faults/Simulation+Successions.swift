import Cluster
import PeerTransport
import RaftCore
import Storage

// Moments at which one leader follows another that random faults hit too seldom.
extension Simulation {
    // MARK: A log that is longer, and one of a later term

    /// Leaves a leader alone with what clients write, and its successor, too, once a third replica has an entry of the
    /// later term. The first one's log is longer then, and the third one's is more up to date: that one must win.
    func cutOffLeaders() {
        guard let (group, leader, others) = replicasOfAnyGroup(), others.count > 1 else { return }
        let number = Int(leader.node.rawValue)
        disturbed(for: 25 * World.second)
        rivalry = Ambush(group: group, leader: leader, until: world.now + 15 * World.second)
        network.isolate(number)
        for client in clients { aim(client, at: number, zoneOf: group, isReading: false, for: 2 * World.second) }
        world.schedule(after: 25 * World.second, .fault, for: nil) { [unowned self] in
            rivalry = nil
            network.heal()
        }
    }

    /// Exchanges the leader that is cut off for its successor, as somebody is about to tell that it has an entry.
    func springRivalry(at sent: PeerMessage) {
        guard let rivalry, rivalry.group == sent.group, !isHealed, sent.message.to.node != rivalry.leader.node,
            raftWatch.reigns[sent.group]?.leader == sent.message.to,
            case .appendResponse(.accepted) = sent.message.body
        else { return }
        self.rivalry = nil
        guard world.now < rivalry.until else { return }
        world.note("RIVALS \(rivalry.leader) and \(sent.message.from) in group \(rivalry.group)")
        network.heal()
        network.isolate(Int(sent.message.to.node.rawValue))
        world.schedule(after: 9 * World.second, .fault, for: nil) { [unowned self] in network.heal() }
    }

    // MARK: A leader that has not applied what was acknowledged

    /// Takes a leader away while all the others apply slowly and clients read from these what it acknowledged.
    func overtaxSuccessor() {
        guard let (group, leader, others) = replicasOfAnyGroup() else { return }
        let number = Int(leader.node.rawValue)
        disturbed(for: 15 * World.second)
        for other in others {
            nodes[other - 1].slowApplying(byMicroseconds: UInt64(world.random(1_000_000...4_000_000)))
        }
        for (place, client) in clients.enumerated() {
            let isReading = place % 2 == 0
            let node = isReading ? others[place / 2 % others.count] : number
            aim(client, at: node, zoneOf: group, isReading: isReading, for: 10 * World.second)
        }
        world.schedule(after: world.milliseconds(500...2_000), .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm, !nodes[number - 1].isDown else { return }
            nodes[number - 1].crash(.process)
            restartLater(nodes[number - 1])
        }
        world.schedule(after: 15 * World.second, .fault, for: nil) { [unowned self] in
            for other in others { nodes[other - 1].quickenDisk() }
        }
    }

    // MARK: A leader that is slow to read its log

    /// Has a follower miss more than its leader has in memory; then breaks the connection between the two while the
    /// leader reads from its disk, slowly, and the follower takes long to answer.
    func breakWhileLoading() {
        guard let (group, leader, others) = replicasOfAnyGroup() else { return }
        let (number, behind) = (Int(leader.node.rawValue), others[0])
        disturbed(for: 15 * World.second)
        network.cut(from: number, to: behind)
        let absence = UInt64(world.random(800...2_500)) * World.millisecond
        let padding = world.random(200...1_500)
        for client in clients {
            aim(client, at: number, zoneOf: group, isReading: false, padding: padding, for: absence)
        }
        // What is on its way is lost.
        world.schedule(after: absence, .fault, for: nil) { [unowned self] in
            network.breakConnections(between: number, behind)
        }
        world.schedule(after: absence + 50 * World.millisecond, .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm else { return }
            network.heal()
            nodes[number - 1].slowWork(byMicroseconds: UInt64(world.random(200_000...1_500_000)))
            nodes[behind - 1].slowDisk(byMicroseconds: UInt64(world.random(200_000...1_500_000)))
            breakNowAndThen(number, behind, times: 8)
        }
        world.schedule(after: 15 * World.second, .fault, for: nil) { [unowned self] in
            for node in [number, behind] { nodes[node - 1].quickenDisk() }
        }
    }

    private func breakNowAndThen(_ one: Int, _ other: Int, times: Int) {
        world.schedule(after: world.milliseconds(400...2_500), .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm else { return }
            network.breakConnections(between: one, other)
            if times > 1 { breakNowAndThen(one, other, times: times - 1) }
        }
    }

    // MARK: Members that change while a leader goes

    /// Now and then takes the leader away that is about to send new members, or that just did, or has them take long to
    /// be durable.
    func disturbChange(to members: Configuration, in group: GroupID, by leader: ProcessLife) {
        guard options.membership, !isHealed, !isCalm else { return }
        let number = leader.node
        if !members.isJoint, let learner = members.learners.first, world.chance(50) {
            return hideDirectory(from: number, until: Int(learner.node.rawValue))
        }
        guard options.hasDisturbedChanges, world.chance(50) else { return }
        count("change")
        disturbed(for: 10 * World.second)
        if !members.isJoint {
            for node in nodes { node.slowDisk(byMicroseconds: UInt64(world.random(50_000...1_000_000))) }
            world.schedule(after: 8 * World.second, .fault, for: nil) { [unowned self] in
                for node in nodes { node.quickenDisk() }
            }
        } else if world.chance(50) {
            world.note("CHANGE of group \(group) stays with node \(number)")
            network.isolate(number)
            world.schedule(after: world.milliseconds(4_000...10_000), .fault, for: nil) { [unowned self] in
                network.heal()
            }
        } else {
            world.schedule(after: world.milliseconds(0...300), .fault, for: nil) { [unowned self] in
                guard !isHealed, !isCalm, !leader.isDead else { return }
                nodes[number - 1].crash(.process)
                restartLater(nodes[number - 1])
            }
        }
    }

    /// Has a leader not hear the directory's, and a replica that learns not hear the leader, for longer than what the
    /// leader knows of the directory may be relied on; then the replica is ready to become a member.
    private func hideDirectory(from number: Int, until learner: Int) {
        guard let directory = raftWatch.reigns[.directory].map({ Int($0.leader.node.rawValue) }), directory != number
        else { return }
        count("change")
        disturbed(for: 20 * World.second)
        world.note(
            "node \(number) does not hear node \(directory), which leads the directory, as node \(learner) learns")
        for (one, other) in [(number, directory), (number, learner)] {
            network.cut(from: one, to: other)
            network.cut(from: other, to: one)
        }
        world.schedule(after: 11 * World.second, .fault, for: nil) { [unowned self] in
            if learner != directory { network.heal(number, learner) }
        }
        world.schedule(after: 18 * World.second, .fault, for: nil) { [unowned self] in network.heal() }
    }

    // MARK: Parts

    private func aim(
        _ client: Client, at node: Int, zoneOf group: GroupID, isReading: Bool, padding: Int = 0,
        for nanoseconds: UInt64
    ) {
        let zones = recorder.zones.indices.filter { recorder.zones[$0].group == group }
        guard let zone = zones.first else { return }
        var aim = Client.Aim(node: node, zone: zone, isReading: isReading)
        aim.padding = padding
        client.hurry(for: nanoseconds, aim: aim)
    }
}
