package import PeerTransport
package import RaftCore
import Synchronization

/// Who leads each group. Readable from any thread.
///
/// Whether this node leads is a fact, which only its replica's core states, through the lane. Which other node leads is
/// a guess: the core's, or what the answers of nodes show. Answers are noted late and in any order, so they fill in
/// what is unknown and speak of other nodes only; a guess that is wrong goes with the first denial.
package final class LeaderTable: Sendable {
    private struct State {
        /// Groups that this node leads.
        var led: Set<GroupID> = []
        /// The nodes that are believed to lead others; never this one.
        var guesses: [GroupID: NodeID] = [:]
    }

    private let nodeID: NodeID
    private let state = Mutex(State())

    /// - Parameter nodeID: this node.
    package init(nodeID: NodeID) { self.nodeID = nodeID }

    /// Whether this node leads a group.
    package func leads(_ group: GroupID) -> Bool { state.withLock { $0.led.contains(group) } }

    /// The node that leads a group, as far as this node knows.
    package func leader(of group: GroupID) -> NodeID? {
        state.withLock { $0.led.contains(group) ? nodeID : $0.guesses[group] }
    }

    /// The replica of this node changed its part in a group, or is gone.
    /// - Parameter leader: whom it follows, if that is known.
    package func roleChanged(isLeading: Bool, leader: NodeID?, of group: GroupID) {
        state.withLock { state in
            if isLeading { state.led.insert(group) } else { state.led.remove(group) }
            state.guesses[group] = leader == nodeID ? nil : leader
        }
    }

    /// A node answered as the leader of a group.
    package func answered(by node: NodeID, of group: GroupID) { guess(node, of: group) }

    /// Forgets a leader that turned out not to lead, unless another is known meanwhile.
    package func forget(_ leader: NodeID, of group: GroupID) {
        state.withLock { if $0.guesses[group] == leader { $0.guesses[group] = nil } }
    }

    /// A node says that it does not lead, and perhaps who does.
    package func denied(by node: NodeID, hint: NodeID?, of group: GroupID) {
        forget(node, of: group)
        if let hint, hint != node { guess(hint, of: group) }
    }

    private func guess(_ leader: NodeID, of group: GroupID) {
        guard leader != nodeID else { return }
        state.withLock { state in
            guard !state.led.contains(group), state.guesses[group] == nil else { return }
            state.guesses[group] = leader
        }
    }
}
