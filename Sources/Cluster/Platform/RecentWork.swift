package import RaftCore
import Synchronization

/// Whose requests a node worked on a moment ago, by container: with that, who has the machine for itself is told from
/// who shares it.
///
/// A node works for whoever asks it, and as leader or follower for those who ask other nodes. The two that were noted
/// last and are not the same are enough to know.
package final class RecentWork: Sendable {
    private struct State: Sendable {
        var last: (owner: String, time: MonotonicTime)?
        /// Of the other one that was noted last.
        var before: (owner: String, time: MonotonicTime)?
    }

    /// For so long work counts. Followers learn of work with the next heartbeat.
    package static let memoryMilliseconds: UInt64 = 250

    private let now: @Sendable () -> MonotonicTime
    private let state = Mutex(State())

    /// - Parameter now: the node's clock.
    package init(now: @escaping @Sendable () -> MonotonicTime) { self.now = now }

    /// Takes note of work for an owner; the cluster's own work, which has none, shares with everybody.
    package func note(_ owner: String) {
        if owner.isEmpty { return }
        let time = now()
        state.withLock { state in
            if let last = state.last, last.owner != owner { state.before = last }
            state.last = (owner, time)
        }
    }

    /// Whether others than an owner were worked for.
    package func hasOthers(than owner: String) -> Bool {
        let time = now()
        return state.withLock { state in
            guard let last = state.last, let other = last.owner == owner ? state.before : last else { return false }
            return time < other.time.adding(milliseconds: Self.memoryMilliseconds)
        }
    }
}
