import Admission
import Cluster
import Directory
import PeerTransport
import RaftCore
import Service

/// What is to happen once the ledger of the container's rate has another leader.
struct Robbery {
    enum Plan {
        /// A node that holds a share is cut off before the new leader hears of it, while another one asks for all.
        case hide(holder: Int, other: Int)
        /// The leader is deaf from the moment in which it hands over, and goes on asking itself.
        case usurp
        /// The leader that was cut off is to lead again, right after the next one has lent everything.
        case succeed
        /// It leads again, and does not hear of the share that the one in between lent.
        case comeBack(holder: Int)
    }

    var ledger: GroupID
    /// Who led the ledger at first.
    var leader: Int
    var plan: Plan
    var until: UInt64
}

// Shares of the rate that their ledger cannot hear of.
extension Simulation {
    /// The shares in force at all nodes that are alive, in requests a second.
    func sharesInForce(_ kind: RateKind) -> Double {
        let key = RateKey(container: Place.container, kind: kind)
        return nodes.reduce(0) { sum, node in
            // A share lasts by a node's monotonic clock, and for longer where that stood still.
            guard let (service, process, _) = node.running,
                !process.hasStoodStill(at: world.now, within: 30 * World.second)
            else { return sum }
            let now = process.clock.local(at: world.now).nanoseconds
            return sum + Double(service.peerExchange.rates.limiters.microRate(of: key, now: now)) / 1e6
        }
    }

    /// Has one node hold most of the rate, and then not hear its ledger, or not be heard by who leads it, while another
    /// node asks for all of it.
    func rob() {
        guard let map = newestMap, !isCalm, !isHealed else { return }
        let ledger = RateExchange.group(of: Place.container, in: map)
        guard let leader = raftWatch.reigns[ledger].map({ Int($0.leader.node.rawValue) }) else { return }
        let others = nodes.filter { $0.running != nil && $0.number != leader }.map(\.number)
            .shuffled(using: &world.generator)
        guard others.count > 1 else { return }
        let (holder, other) = (others[0], others[1])
        disturbed(for: 14 * World.second)
        switch world.random(0...3) {
        case 0: answerLate(ledger, of: leader, holder, other)
        case 1: hide(holder, from: ledger, other)
        case 2: usurp(ledger, of: leader, map)
        default: comeBack(ledger, leader)
        }
    }

    /// What the ledger lends comes late to a node, and then nothing does any more.
    private func answerLate(_ ledger: GroupID, of leader: Int, _ holder: Int, _ other: Int) {
        world.note("ROB: node \(holder) hears the ledger of node \(leader) late")
        press(nodes: [holder], for: 4 * World.second)
        network.slowDown(from: leader, to: holder, byMicroseconds: UInt64(world.random(500_000...900_000)))
        // What it was lent last is on its way to it then, and no more is heard of it.
        atTheRate(after: 2_000) { [self] in
            network.cut(from: holder, to: leader)
            press(nodes: [holder, other], for: 4 * World.second)
        }
        endRobbery(after: 8)
    }

    private func hide(_ holder: Int, from ledger: GroupID, _ other: Int) {
        world.note("ROB: node \(holder) holds a share of group \(ledger), and node \(other) asks the next leader")
        press(nodes: [holder], for: 4 * World.second)
        atTheRate(after: 2_200) { [self] in plan(.hide(holder: holder, other: other), ledger) }
        endRobbery(after: 7)
    }

    /// A clock that jumped would end what the leader may rely on, so the directory is asked for another one.
    private func usurp(_ ledger: GroupID, of leader: Int, _ map: ClusterMap) {
        let others = map.replicas(ofShard: ledger.shard).filter { $0.node != UInt64(leader) }
        guard manager.hasEnded, !others.isEmpty else { return }
        world.note("ROB: node \(leader) will not hear that another one leads group \(ledger)")
        robbery = Robbery(ledger: ledger, leader: leader, plan: .usurp, until: world.now + 20 * World.second)
        change(.preferLeader(shard: ledger.shard, node: world.pick(others).node))
    }

    private func comeBack(_ ledger: GroupID, _ leader: Int) {
        world.note("ROB: node \(leader) is to lead group \(ledger), and again after another one")
        press(nodes: [leader], for: World.second)
        atTheRate(after: 1_000) { [self] in
            network.isolate(leader)
            robbery = Robbery(
                ledger: ledger, leader: leader, plan: .succeed, until: world.now + 8 * World.second)
        }
        endRobbery(after: 14)
    }

    /// Has the ledger's leader hand over, and something done with it.
    private func plan(_ plan: Robbery.Plan, _ ledger: GroupID) {
        guard let leader = raftWatch.reigns[ledger].map({ Int($0.leader.node.rawValue) }) else { return }
        robbery = Robbery(ledger: ledger, leader: leader, plan: plan, until: world.now + 3 * World.second)
        depose(ledger)
    }

    private func atTheRate(after milliseconds: UInt64, _ body: @escaping () -> Void) {
        world.schedule(after: milliseconds * World.millisecond, .fault, for: nil) { [unowned self] in
            if !isHealed, !isCalm { body() }
        }
    }

    private func endRobbery(after seconds: UInt64) {
        world.schedule(after: seconds * World.second, .fault, for: nil) { [unowned self] in network.heal() }
    }

    /// A leader asks another node to take over: now and then the ledger's leader does not hear that it does.
    func rob(atHandover sent: PeerMessage) {
        guard options.hasPressing, case .timeoutNow = sent.message.body, !isHealed, !isCalm, let map = newestMap,
            sent.group == RateExchange.group(of: Place.container, in: map)
        else { return }
        let leader = Int(sent.message.from.node.rawValue)
        if let robbery, world.now < robbery.until {
            guard case .usurp = robbery.plan, robbery.leader == leader else { return }
        } else if !world.chance(40) {
            return
        }
        robbery = nil
        let others = nodes.filter { $0.running != nil && $0.number != leader }.map(\.number)
        guard !others.isEmpty else { return }
        network.deafen(leader)
        disturbed(for: 8 * World.second)
        press(nodes: [leader, world.pick(others)], for: 5 * World.second)
        endRobbery(after: 8)
    }

    /// A node leads a group that it did not lead before.
    func rob(inNewReign group: GroupID, of node: Int) {
        guard let robbery, robbery.ledger == group, !isHealed, !isCalm else { return }
        if case .usurp = robbery.plan { return }
        self.robbery = nil
        guard world.now < robbery.until else { return }
        switch robbery.plan {
        case .hide(let holder, let other) where node != holder:
            network.isolate(holder)
            press(nodes: [holder, other], for: 3 * World.second)
        case .succeed where node != robbery.leader: lendToAnother(robbery, than: node)
        case .comeBack(let holder) where node == robbery.leader:
            network.isolate(holder)
            press(nodes: [holder, node], for: 3 * World.second)
        default: break
        }
    }

    /// Has the leader in between lend everything to a third node, and then hand over.
    private func lendToAnother(_ robbery: Robbery, than leader: Int) {
        network.heal()
        let others = nodes.filter { $0.running != nil && ![leader, robbery.leader].contains($0.number) }.map(\.number)
        guard !others.isEmpty else { return }
        let holder = world.pick(others)
        press(nodes: [holder], for: 5 * World.second)
        atTheRate(after: 3_300) { [self] in
            plan(.comeBack(holder: holder), robbery.ledger)
            self.robbery?.leader = robbery.leader
        }
    }
}
