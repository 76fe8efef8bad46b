/// A leader's attempt to hand over (dissertation section 3.10).
struct Transfer: Hashable, Sendable {
    var target: ReplicaID
    /// When the leader gives up and takes proposals again.
    var deadline: MonotonicTime
}

/// Why a leader does not hand over. Nothing was changed.
public enum TransferError: Error, Hashable, Sendable {
    /// This replica does not lead. A retry helps, at `hint` if there is one.
    case notLeader(hint: ReplicaID?)
    /// The target leads already.
    case alreadyLeads
    /// The target is no voter, or will not be one when the change of members under way is done. A retry helps after it was
    /// made one.
    case notVoter(ReplicaID)
    /// The target was not heard, or lacks more than it could be sent in an election timeout. A retry helps later.
    case notCaughtUp(ReplicaID, missingEntries: UInt64)
    /// The leader hands over to another one already. A retry helps when that is done, given up or cancelled.
    case underway(to: ReplicaID)
}

extension TransferError: CustomStringConvertible {
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
