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

    /// A node says that it does not lead, and perhaps who does. This node's own word counts no less: an answer that it
    /// gave while it led may be noted after it stopped, and would hold here for ever.
    package func denied(by node: NodeID, hint: NodeID?, of group: GroupID) {
        forget(node, of: group)
        if let hint, hint != node { set(hint, of: group) }
    }
}
