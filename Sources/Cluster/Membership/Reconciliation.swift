package import Directory
package import RaftCore
import Synchronization

/// The next step of a group's leader towards the members in the cluster's map. Pure: called repeatedly, by the present
/// leader, with what is in force then; so it does not matter where an earlier leader stopped.
package enum Reconciliation: Hashable, Sendable {
    /// The members are as they shall be.
    case settled
    /// A change is under way, or something has to happen first; the words say what.
    case waiting(String)
    /// Ask for this change of members.
    case change(to: Configuration)

    /// Decides the next step.
    ///
    /// 1. Replicas that are missing join as learners, all at once; learners that are not wanted go with the same
    ///    change, and so do voters whose node shall hold a later replica: a node opens it only once the former one is
    ///    not in force any more. But half of the voters that are wanted stay, so that where several replicas are
    ///    exchanged at once no single one is left to commit alone; the others wait for the successors of the first.
    /// 2. Those that have caught up take the place of voters that are not wanted: of the lost ones first. The others
    ///    stay until there are as many voters as there shall be, so that a group is never left with fewer because a new
    ///    one is slow.
    ///
    /// - Parameters:
    ///   - present: the configuration in force.
    ///   - isCommitted: whether it is known to be committed.
    ///   - caughtUp: the members that have nearly the whole log.
    ///   - desired: as the map has it; its voters must not be empty.
    package static func next(
        from present: Configuration, isCommitted: Bool, caughtUp: [ReplicaID], to desired: Configuration
    ) -> Reconciliation {
        precondition(!desired.voters.isEmpty && !desired.isJoint, "\(desired) cannot be what a group shall be")
        guard !present.isJoint, isCommitted else { return .waiting("a change is under way") }
        if present == desired { return .settled }
        let wanted = desired.voters + desired.learners
        let superseded = present.voters.filter { isSuperseded($0, by: wanted) }
        let leaving = superseded.prefix(max(present.voters.count - (desired.voters.count + 1) / 2, 0))
        let voters = present.voters.filter { !leaving.contains($0) }
        let learners = wanted.filter { !voters.contains($0) && !present.voters.contains($0) }
        let joined = Configuration(voters: voters.isEmpty ? present.voters : voters, learners: learners)
        guard joined == present else { return .change(to: joined) }
        return exchange(present, caughtUp, desired)
    }

    /// Whether the replica's node shall hold another one.
    private static func isSuperseded(_ replica: ReplicaID, by wanted: [ReplicaID]) -> Bool {
        !wanted.contains(replica) && wanted.contains { $0.node == replica.node }
    }

    /// Exchanges voters, all wanted replicas being members.
    private static func exchange(
        _ present: Configuration, _ caughtUp: [ReplicaID], _ desired: Configuration
    ) -> Reconciliation {
        let new = desired.voters.filter { !present.voters.contains($0) }
        let ready = new.filter { caughtUp.contains($0) }
        if ready.count == new.count { return .change(to: desired) }
        let behind = "\(new.count - ready.count) of \(new.count) new replicas have not caught up yet"
        if ready.isEmpty { return .waiting(behind) }
        let all = desired.voters + desired.learners
        let unwanted = present.voters.filter { !desired.voters.contains($0) }
        let lost = unwanted.filter { isSuperseded($0, by: all) }
        let spare = present.voters.count + ready.count - desired.voters.count
        let gone = (lost + unwanted.filter { !lost.contains($0) }).prefix(min(max(lost.count, spare), ready.count))
        let voters = present.voters.filter { !gone.contains($0) } + ready
        let target = Configuration(voters: voters, learners: all.filter { !voters.contains($0) })
        return target == present ? .waiting(behind) : .change(to: target)
    }
}

/// The cluster's map as this node knows it: the newest that the directory here, or a peer, has shown; before there is
/// one, that of the founders. Readable from any thread.
final class Placement: Sendable {
    private let state: Mutex<ClusterMap?>
    private let bell = Bell<ClusterMap>()

    init(_ map: ClusterMap?) { state = Mutex(map) }

    /// Nil while this node is of no cluster.
    var map: ClusterMap? { state.withLock(\.self) }

    /// Sets what is called with each newer map, on whatever thread brings it.
    func listen(_ body: @escaping @Sendable (ClusterMap) -> Void) { bell.listen(body) }

    /// Takes a map that the directory has committed, unless a newer one is known.
    func offer(_ map: ClusterMap?) {
        guard let map else { return }
        let isNew = state.withLock { present in
            if let present, present.epoch > map.epoch || present == map { return false }
            present = map
            return true
        }
        if isNew { bell.ring(map) }
    }
}

/// What a node does to hold the replicas that the map wants on it. Pure.
package struct ReplicaPlan: Hashable, Sendable {
    /// A replica on this node.
    package struct Place: Hashable, Sendable {
        /// The group of the directory or of a shard.
        package var group: GroupID
        /// The generation by the map; 0 for the replicas that a cluster is made with.
        package var generation: UInt64
    }

    /// To be opened, empty.
    package var open: [Place] = []
    /// To be given up, as soon as the group's leader says that they are not in force.
    package var release: [Place] = []
    /// Wanted, but were here once and have lost their data: the directory has to give them later generations.
    package var renew: [Place] = []

    /// - Parameters:
    ///   - held: the generation of each replica that is open.
    ///   - used: the last generation that was ever open on this folder, of each group. No replica is opened under it
    ///     again: it may have voted.
    package init(map: ClusterMap, node: UInt64, held: [GroupID: UInt64], used: [GroupID: UInt64]) {
        for group in map.groups {
            let wanted = map.replicas(ofShard: group.shard).first { $0.node == node }?.generation
            switch (wanted, held[group]) {
            case (nil, nil): break
            case (let wanted?, nil):
                let place = Place(group: group, generation: wanted)
                if let last = used[group], last >= wanted { renew.append(place) } else { open.append(place) }
            case (let wanted, let present?):
                if wanted != present { release.append(Place(group: group, generation: present)) }
            }
        }
    }
}
