import Admission
import Cluster
import PeerTransport
import RaftCore
import Service

/// A node that holds much of the rate, and is to be cut off once the ledger has another leader.
struct Robbery {
    var ledger: GroupID
    var leader: UInt64
    /// Who holds a share, and who asks for one.
    var holder: Int
    var other: Int
    var until: UInt64
}

// Shares of the rate that their ledger cannot hear of.
extension Simulation {
    /// The shares in force at all nodes that are alive, in requests a second.
    func sharesInForce(_ kind: RateKind) -> Double {
        let key = RateKey(container: Place.container, kind: kind)
        return nodes.reduce(0) { sum, node in
            guard let (service, process, _) = node.running else { return sum }
            let now = process.clock.local(at: world.now).nanoseconds
            return sum + Double(service.peerExchange.rates.limiters.microRate(of: key, now: now)) / 1e6
        }
    }

    /// Has one node hold most of the rate, and then not hear its ledger, or not be heard by the next leader of it,
    /// while another node asks for all of it.
    /// - Parameter former: who led the ledger before the present leader, where it may lead it again.
    func rob(former: UInt64? = nil) {
        guard let map = newestMap, !isCalm, !isHealed else { return }
        let ledger = RateExchange.group(of: Place.container, in: map)
        guard let leader = raftWatch.reigns[ledger]?.leader.node.rawValue else { return }
        let present = nodes.filter { $0.running != nil && UInt64($0.number) != leader }.map(\.number)
        let holders = present.filter { UInt64($0) != former }
        guard present.count > 1, !holders.isEmpty else { return }
        let holder = world.pick(holders)
        let other = world.pick(present.filter { $0 != holder })
        world.note("ROB: node \(holder) holds a share of the ledger of node \(leader), and node \(other) asks")
        disturbed(for: 12 * World.second)
        press(nodes: [holder], for: 4 * World.second)
        world.schedule(after: 2_200 * World.millisecond, .fault, for: nil) { [unowned self] in
            guard !isHealed, !isCalm else { return }
            if former == nil, world.chance(40) {
                network.cut(from: Int(leader), to: holder)
                press(nodes: [holder, other], for: 3 * World.second)
            } else {
                robbery = Robbery(
                    ledger: ledger, leader: leader, holder: holder, other: other, until: world.now + 3 * World.second)
                depose(ledger)
            }
        }
        world.schedule(after: 7 * World.second, .fault, for: nil) { [unowned self] in network.heal() }
    }

    /// Cuts the holder of a share off from a ledger's new leader, before that hears of the share.
    func rob(inNewReign group: GroupID, of node: Int) {
        guard let robbery, robbery.ledger == group, !isHealed, !isCalm else { return }
        self.robbery = nil
        guard world.now < robbery.until, node != robbery.holder else { return }
        network.isolate(robbery.holder)
        press(nodes: [robbery.holder, robbery.other], for: 3 * World.second)
        // Perhaps the former leader comes to lead again.
        world.schedule(after: 6 * World.second, .fault, for: nil) { [unowned self] in rob(former: robbery.leader) }
    }
}
