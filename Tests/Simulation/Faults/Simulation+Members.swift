import Cluster
import Directory
import RaftCore
import Service
import Wire

// Who runs the cluster changes its members, while everything else goes on.
extension Simulation {
    /// The newest map that a running node knows.
    var newestMap: ClusterMap? {
        nodes.compactMap { $0.running?.service.node.map }.max { $0.epoch < $1.epoch }
    }

    func scheduleChange() {
        world.schedule(after: world.milliseconds(20_000...80_000), .fault, for: nil) { [unowned self] in
            guard !isHealed else { return }
            if manager.hasEnded, !isCalm { changeMembers() }
            scheduleChange()
        }
    }

    private func changeMembers() {
        guard let map = newestMap else { return }
        let present = map.nodes.filter { !$0.isLeaving }.map(\.id)
        let fresh = nodes.first { !$0.isEnlisted }
        switch world.random(0...9) {
        case 0..<3:
            guard let fresh else { return }
            count("add")
            fresh.start()
            change(.addNode(Self.member(UInt64(fresh.number))))
        case 3..<5:
            // No fewer than the replicas of a shard.
            guard present.count > 3 else { return }
            remove(world.pick(present)) { .removeNode($0) }
        case 5..<6:
            guard let fresh else { return }
            fresh.start()
            let member = Self.member(UInt64(fresh.number))
            remove(world.pick(present)) { .replaceNode($0, with: member) }
        case 6..<9:
            count("transfer")
            change(
                .preferLeader(
                    shard: world.pick([nil] + map.shards.indices.map(Optional.init)), node: world.pick(present)))
        default:
            count("transfer")
            change(.moveLeaders(from: world.pick(present), to: world.chance(50) ? world.pick(present) : nil))
        }
    }

    private func remove(_ id: UInt64, _ command: (UInt64) -> MapChange) {
        count("remove")
        nodes[Int(id) - 1].mayLeave = true
        change(command(id))
    }

    /// A node was just removed, and does not hear of it. It relies on nothing that is changed from now on.
    func lookForStray(_ node: SimulatedNode) {
        guard node.running != nil, manager.hasEnded, !isHealed, !isCalm, recorder.isSetUp else { return }
        disturbed(for: 15 * World.second)
        world.note("STRAY \(node.number)")
        network.isolate(node.number)
        manager.perform { await $0.changeUnheard(by: node) }
    }

    func change(_ change: MapChange) {
        world.note("CHANGE \(change)")
        let entry = DirectoryEntry(.changeMap(change)).encoded()
        manager.perform { client in
            _ = await client.ask(repeats: true, triesMax: 8) { visit throws(RequestFailure) in
                try await visit.submit(.machine(entry), to: .directory)
            }
        }
    }

    func count(_ fault: String) { report.faults[fault, default: 0] += 1 }
}
