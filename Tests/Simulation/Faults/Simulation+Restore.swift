import Cluster
import Directory
import Storage

// A backup that is put back, which takes back what came after it.
extension Simulation {
    /// Copies the stopped cluster as `zonekeeper backup` does, has it go on for a while, and puts the copy back as
    /// `zonekeeper restore` does.
    ///
    /// Then all is as if that while had never been: the histories go on where the backup was made, and whatever
    /// clients know of the time since is refused.
    func restoreBackup() {
        guard let map = newestMap, recorder.isSetUp else { return }
        let members = nodes.filter { map.node(UInt64($0.number)) != nil }
        let others = nodes.filter { node in !members.contains { $0 === node } && node.running != nil }
        guard members.allSatisfy({ $0.running != nil }) else { return }
        // Some requests are on their way as the nodes end.
        for client in clients.prefix(2) { client.perform { await $0.changeSomething(times: 8) } }
        world.run(until: world.now + world.milliseconds(0...1_500))
        guard end(members + others) else { return }
        let (zones, stores) = (recorder.zones, recorder.stores)
        do throws(DiskError) {
            for node in members { try node.copyData(to: backup(of: node)) }
        } catch {
            return violated("no backup: \(error)")
        }
        for node in members { node.start() }
        guard areThere(members), goOn(members, { await $0.changeSomething(times: 12) }),
            goOn(members, { await $0.learnAll() }), end(members)
        else { return }
        // Far below a time in milliseconds, as it would be, for `ZoneModel` to count it.
        var incarnation: UInt64 = 1 << 20
        for node in members {
            incarnation = max(incarnation, ((try? NewIncarnation.newest(inStopped: backup(of: node))) ?? 0) + 1)
        }
        for node in members {
            node.replaceData(by: backup(of: node))
            mark(node, incarnation)
            // Whom a webhook tells may hear again what it knows.
            node.receiver = nil
        }
        forgetNodes()
        recorder.board = []
        recorder.restore(zones, stores, as: incarnation)
        world.note("RESTORED as \(incarnation)")
        for node in members { start(node) }
        guard goOn(members, { await $0.tryForgottenTokens() }), goOn(members, { await $0.changeSomething(times: 8) }),
            restartMarked(world.pick(members), incarnation), goOn(members, { await $0.watchRestored() }),
            requireOneState()
        else { return }
        world.met(.restoredBackup)
        readBackAll()
        readBack { await $0.recountUsage() }
    }

    /// Has the first clients do something, until they have and all nodes are there.
    private func goOn(_ members: [SimulatedNode], _ body: @escaping @Sendable (Client) async -> Void) -> Bool {
        for client in clients.prefix(3) { client.perform(body) }
        return areThere(members)
    }

    /// Waits until all nodes are there, and clients have done what they were at.
    private func areThere(_ members: [SimulatedNode]) -> Bool {
        let haveEnded = clientsHaveEnded
        return wait(seconds: 240, "a cluster that was restored, or copied, does not answer") {
            haveEnded() && members.allSatisfy { $0.running != nil }
        }
    }

    /// Ends nodes, in order or not.
    private func end(_ nodes: [SimulatedNode]) -> Bool {
        for node in nodes {
            switch world.random(0...5) {
            case 0: node.crash(.process)
            case 1: node.crash(.power)
            default: node.stop()
            }
        }
        return wait(seconds: 60, "a node does not end before it is copied") {
            nodes.allSatisfy { $0.isDown && $0.remains == 0 }
        }
    }

    private func backup(of node: SimulatedNode) -> String { "\(root)/backup-\(node.number)" }

    private func mark(_ node: SimulatedNode, _ incarnation: UInt64) {
        do throws(DiskError) {
            try NewIncarnation.mark(node.folder, with: incarnation)
        } catch {
            violated("no mark of a restore: \(error)")
        }
    }

    /// Starts a node with restored data, which may end before it has told the others.
    private func start(_ node: SimulatedNode) {
        node.start()
        guard world.chance(40) else { return }
        world.schedule(after: world.milliseconds(0...3_000), .fault, for: nil) { [unowned self] in
            node.crash(world.chance(50) ? .power : .process)
            restartLater(node)
        }
    }

    /// Starts a node again that finds its mark once more, whose removal was not synced: nothing may come of that.
    private func restartMarked(_ node: SimulatedNode, _ incarnation: UInt64) -> Bool {
        guard world.chance(40) else { return true }
        guard end([node]) else { return false }
        mark(node, incarnation)
        node.start()
        return wait(seconds: 60, "a node that was restored does not come back") { node.running != nil }
    }
}
