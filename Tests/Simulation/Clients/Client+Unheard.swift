import Cluster
import Directory
import RecordModel
import Service

// What a client sees at a node that cannot hear of a change.
extension Client {
    /// Changes a limit that nothing comes near to, while one node is cut off, or is told everything late and then cut
    /// off. Once the change is acknowledged, that node does not go by what was before, either.
    func changeUnheard() async {
        let present = nodes.filter { $0.running != nil }.shuffled(using: &world.generator)
        guard limitsDoubtfulUntil <= world.now, present.count > 2, recorder.mayDisturb(20 * World.second) else {
            return
        }
        let (limit, value) = newLimit()
        let (deaf, network) = (present[0], present[0].network)
        if world.chance(50) {
            for other in 1...network.nodeCount where other != deaf.number {
                network.slowDown(from: other, to: deaf.number, byMicroseconds: 4_000_000)
            }
            await sleep(world.milliseconds(1_000...6_000))
            // What it asked before is answered by then, and what it is told of the change is on its way.
            world.schedule(after: 1_500 * World.millisecond, .fault, for: nil) { network.isolate(deaf.number) }
        } else {
            network.isolate(deaf.number)
        }
        goTo(present[1].number)
        let isDone = await settle([.setLimits(container: Place.container, [LimitChange(limit, value)])])
        if isDone {
            await lookUp(limit, value, at: deaf)
        } else {
            limitsDoubtfulUntil = world.now + 60 * World.second
        }
        network.heal()
    }

    /// Changes a limit that nobody else changes, while a node that was removed is cut off.
    func changeUnheard(by stray: SimulatedNode) async {
        let present = nodes.filter { $0.running != nil && $0 !== stray }
        guard let node = present.randomElement(using: &world.generator) else { return }
        goTo(node.number)
        let limit = ContainerLimit.userAssetBytes
        let value = limit.standard + Int64(world.random(1...1_000_000))
        if await settle([.setLimits(container: Place.container, [LimitChange(limit, value)])]) {
            world.met(.strayAsked)
            await lookUp(limit, value, at: stray)
        }
        stray.network.heal()
    }

    private func lookUp(_ limit: ContainerLimit, _ value: Int64, at node: SimulatedNode) async {
        let answer = await ServerCall.make(
            to: node, as: UserSession("none"), recorder, patienceMilliseconds: 1_000
        ) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            return visit.node.directory.snapshot.limits(of: Place.container)[limit]
        }
        guard case .value(let seen) = answer, seen != value else { return }
        recorder.violated(
            "client \(number): node \(node.number), cut off, relies on \(limit.rawValue) \(seen), and \(value) is set"
        )
    }
}
