extension Raft {
    /// Asks a follower to take over at once. Nothing is sent unless this replica leads and the follower is a voter that
    /// has the whole log; try again later then.
    ///
    /// It refuses no proposals. The caller should hold them back for an election timeout, or until another leads: with
    /// entries that the target lacks it would lose its election, and the group would wait for another. Safety does not
    /// depend on it. The leader continues until it sees a greater term, but without a lease.
    public mutating func transferLeadership(to target: ReplicaID, now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader, configuration.voters.contains(target), hasWholeLog(target) { askToTakeOver(target) }
        return finish()
    }

    mutating func askToTakeOver(_ target: ReplicaID) {
        precondition(role == .leader, "a \(role) hands over")
        isLeaseGivenUp = true
        send(.timeoutNow, to: target)
    }

    private func hasWholeLog(_ target: ReplicaID) -> Bool {
        followers.contains { $0.id == target && $0.state == .replicate && $0.match == log.last.index }
    }

    /// The leader hands over: campaigns at once, without a pre-vote (dissertation section 3.10).
    mutating func receiveTimeoutNow(_ message: Message) {
        guard role == .follower, leader == message.from, isPromotable else { return }
        campaign(isTransfer: true)
    }
}
