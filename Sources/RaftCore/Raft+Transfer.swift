extension Raft {
    /// Hands over to another voter (dissertation section 3.10): proposals are refused, the target gets what it lacks,
    /// and is then asked to campaign at once. `Effects.roleChange` tells when it is done. After `milliseconds` the
    /// leader gives up and takes proposals again; an election timeout is a good choice.
    ///
    /// Safety does not depend on the target: it is elected like any other replica. Only one transfer is under way at a
    /// time.
    /// - Throws: `TransferError`, and then nothing has changed.
    public mutating func transferLeadership(
        to target: ReplicaID, within milliseconds: UInt64, now: MonotonicTime
    ) throws(TransferError) -> Effects {
        begin(now)
        guard role == .leader else { throw .notLeader(hint: leader) }
        if target == id { throw .alreadyLeads }
        guard configuration.voters.contains(target), let follower = followers.first(where: { $0.id == target }) else {
            throw .notVoter(target)
        }
        if let transfer { throw .underway(to: transfer.target) }
        guard isCaughtUp(follower) else {
            throw .notCaughtUp(target, missingEntries: log.last.index.rawValue - follower.match.rawValue)
        }
        transfer = Transfer(target: target, deadline: self.now.adding(milliseconds: milliseconds))
        askTarget()
        return finish()
    }

    /// Asks a follower to take over at once. Nothing is sent unless this replica leads and the follower is a voter that
    /// has the whole log; try again later then.
    ///
    /// Unlike `transferLeadership(to:within:now:)` it refuses no proposals. The caller should hold them back for an
    /// election timeout, or until another leads: with entries that the target lacks it would lose its election, and the
    /// group would wait for another. Safety does not depend on it. The leader continues until it sees a greater term,
    /// but without a lease.
    public mutating func transferLeadership(to target: ReplicaID, now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader, configuration.voters.contains(target), hasWholeLog(target) { askToTakeOver(target) }
        return finish()
    }

    /// Takes proposals again, if a hand-over is under way. The target may still take over if it has been asked already.
    public mutating func cancelTransfer(now: MonotonicTime) -> Effects {
        begin(now)
        endTransfer()
        return finish()
    }

    /// Asks the target as soon as it has everything; again with each round of heartbeats, because the request may be
    /// lost.
    mutating func askTarget() {
        guard let transfer, hasWholeLog(transfer.target) else { return }
        askToTakeOver(transfer.target)
    }

    mutating func askToTakeOver(_ target: ReplicaID) {
        precondition(role == .leader, "a \(role) hands over")
        isLeaseGivenUp = true
        send(.timeoutNow, to: target)
    }

    /// Gives up a hand-over whose time is over, or whose target is no longer to be a voter.
    mutating func expireTransfer() {
        guard let transfer else { return }
        if now >= transfer.deadline || !configuration.voters.contains(transfer.target) { endTransfer() }
    }

    private mutating func endTransfer() {
        guard transfer != nil else { return }
        transfer = nil
        // It waited, so that the target need not wait for it.
        advanceMembership()
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

/// A leader's attempt to hand over (dissertation section 3.10).
struct Transfer: Hashable, Sendable {
    var target: ReplicaID
    /// When the leader gives up and takes proposals again.
    var deadline: MonotonicTime
}

/// Why a leader does not hand over. Nothing was changed.
public enum TransferError: Error, Hashable, Sendable, CustomStringConvertible {
    /// This replica does not lead. A retry helps, at `hint` if there is one.
    case notLeader(hint: ReplicaID?)
    /// The target leads already.
    case alreadyLeads
    /// The target is not a voter, or will not be one after the change of members under way. A retry helps after it was
    /// made one.
    case notVoter(ReplicaID)
    /// The target was not heard, or lacks more than it could be sent in an election timeout. A retry helps later.
    case notCaughtUp(ReplicaID, missingEntries: UInt64)
    /// The leader hands over to another one already. A retry helps when that is done, given up or cancelled.
    case underway(to: ReplicaID)

    /// What was wrong and what to do about it.
    public var description: String {
        switch self {
        case .notLeader(let hint):
            "only a leader can hand over, and this replica is none; ask \(hint.map { "replica \($0)" } ?? "again later")"
        case .alreadyLeads: "the replica to hand over to leads already"
        case .notVoter(let id): "replica \(id) does not vote, so it cannot lead; make it a voter first"
        case .notCaughtUp(let id, let missing):
            "replica \(id) lacks \(missing) entries or does not answer; hand over when it has caught up"
        case .underway(let id): "leadership is being handed over to replica \(id); wait until that is done or cancel it"
        }
    }
}
