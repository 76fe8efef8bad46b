package import PeerTransport
package import RaftCore
import Synchronization

/// Which node leads each group, as far as this node knows. Readable from any thread.
package final class LeaderTable: Sendable {
    private let leaders = Mutex<[GroupID: NodeID]>([:])

    package init() {}

    package func leader(of group: GroupID) -> NodeID? { leaders.withLock { $0[group] } }

    package func set(_ leader: NodeID?, of group: GroupID) { leaders.withLock { $0[group] = leader } }

    /// Forgets a leader that turned out not to lead, unless another is known meanwhile.
    package func forget(_ leader: NodeID, of group: GroupID) {
        leaders.withLock { if $0[group] == leader { $0[group] = nil } }
    }
}
