import Cluster
import Directory
import PeerTransport
import RaftCore
import RecordModel
import Service

// Where effects of one group on another have to wait.
extension Simulation {
    /// Has groups lose their leaders with what must still have an effect on another group, and nobody write afterwards:
    /// what was answered for is told of all the same.
    func breakEffects() {
        strain { client, zone, group, home in
            await client.strainEffects(of: zone, in: group, home: home) { [unowned self] in endLeader(of: $0) }
        }
        strain { client, zone, _, home in
            await client.holdUpEffects(of: zone, home: home) { [unowned self] in endLeader(of: $0) }
        }
    }

    /// Has a client strain the effects of a zone on its user's home, which is another group's.
    private func strain(
        _ body: @escaping @Sendable (Client, WatchedHistory.Zone, _ group: GroupID, _ home: GroupID) async -> Void
    ) {
        guard let map = newestMap else { return }
        for client in clients.reversed() where client.watchbook.isUsed && client.watchbook.isMade {
            let book = client.watchbook
            func place(of name: String) -> GroupID {
                map.group(of: ZoneKey(database: book.privateDatabase, name: name))
            }
            let home = place(of: "_keyValueStore")
            guard let name = Watchbook.zoneNames.first(where: { place(of: $0) != home }) else { continue }
            let group = place(of: name)
            client.perform { client in await body(client, book.zone(name), group, home) }
            break
        }
        _ = wait(seconds: 120, "a change gets no answer, or a node does not come back, while leaders end") {
            [unowned self] in clientsHaveEnded() && isUpgraded
        }
    }

    /// Ends the node that leads a group, or all, and starts them again when others may have taken over.
    private func endLeader(of group: GroupID?) {
        let leader = group.flatMap { raftWatch.reigns[$0]?.leader.node.rawValue }
        let crash: SimulatedDisk.Crash = world.pick([.power, .process])
        for node in nodes where !node.isDown && (group == nil || UInt64(node.number) == leader) {
            node.crash(crash)
            world.schedule(after: world.milliseconds(500...4_000), .process, for: nil) { node.start() }
        }
    }

    /// Sees whether effects wait on a node, shortly after something happened to it: a snapshot takes a while.
    /// - Parameters:
    ///   - group: nil is any.
    ///   - situation: what was met, if they do.
    func lookForEffects(in group: GroupID? = nil, at node: Int, _ situation: Situation) {
        let pause = situation == .snapshotWithEffects ? 200 * World.millisecond : World.millisecond
        world.schedule(after: pause, .client, for: nil) { [unowned self] in
            guard let (service, _, executor) = nodes[node - 1].running else { return }
            executor.start { [world] in
                for status in await service.node.status()
                where status.waitingEffects > 0 && (group == nil || group == status.group) {
                    return world.met(situation)
                }
            }
        }
    }
}
