import RaftCore
import Synchronization

/// What applies the groups of which this node holds a replica. They come and go; readable from any thread.
final class HostedGroups: Sendable {
    private let appliers = Mutex<[GroupID: Applier]>([:])

    /// In the order of their groups.
    var all: [Applier] { appliers.withLock { $0.values.sorted { $0.group < $1.group } } }

    subscript(group: GroupID) -> Applier? { appliers.withLock { $0[group] } }

    func add(_ applier: Applier) { appliers.withLock { $0[applier.group] = applier } }

    func remove(_ group: GroupID) { _ = appliers.withLock { $0.removeValue(forKey: group) } }
}
