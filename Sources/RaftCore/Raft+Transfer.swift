extension Raft {
    /// Asks a follower to take over (dissertation section 3.10). Nothing is asked unless this replica leads and the follower is
    /// a voter that has the whole log; try again later then.
    ///
    /// Entries proposed between the request and the election may be replaced by the new leader's, as at any change of leader.
    /// The leader goes on until a greater term ends its reign, so a request that is lost costs nothing. A leader that reads
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
