import Cluster
import RaftCore
import Service

// Where effects of one group on another have to wait.
extension Simulation {
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
