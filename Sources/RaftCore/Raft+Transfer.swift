extension Raft {
    /// Asks a follower to take over (dissertation section 3.10). Nothing is asked unless this replica leads and the follower is
    /// a voter that has the whole log; try again later then.
    ///
    /// The shell should hold back proposals for an election timeout, or until another leads: with entries that the target lacks
    /// it would lose its election, and the group would wait for another. Safety does not depend on it. The leader goes on until a greater term ends its reign, so a request that is lost costs nothing. A leader that reads
    /// under a lease has to give it up first; there is none yet.
    public mutating func transferLeadership(to target: ReplicaID, now: MonotonicTime) -> Effects {
        begin(now)
        guard role == .leader, target != id, configuration.isVoter(target),
            let follower = followers.first(where: { $0.id == target }), follower.state == .replicate,
            follower.match == log.last.index
        else { return finish() }
        send(.timeoutNow, to: target)
        return finish()
    }
}
