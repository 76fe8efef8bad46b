import NIOCore
import RaftCore
import Storage

/// What is known to be wrong with this node's replicas. Their leads go elsewhere, and who mends them is told.
final class ReplicaHealth: @unchecked Sendable {
    // Touched on the lane's event loop only, which makes it safe to share.
    private let context: LaneContext
    private let transfers: LeadTransfers
    /// Called when a replica's data are damaged.
    var onDamage: @Sendable (GroupID, ReplicaDamage) -> Void = { _, _ in }

    init(_ context: LaneContext, _ transfers: LeadTransfers) {
        self.context = context
        self.transfers = transfers
    }

    /// A replica's data are damaged: told once for each, and again where it is worse than it was.
    func damaged(_ group: GroupID, _ error: any Error, _ kind: ReplicaDamage.Kind) {
        context.eventLoop.preconditionInEventLoop()
        guard let replica = context.replicas[group],
            replica.damage.map({ $0.kind.rawValue < kind.rawValue }) ?? true
        else { return }
        let damage = ReplicaDamage(error, kind, generation: replica.raft.id.generation)
        replica.damage = damage
        transfers.hurry()
        onDamage(group, damage)
    }

    /// The data of this node's replica differ from the others', unless it is another one by now.
    func distrust(_ group: GroupID, _ replica: ReplicaID, at index: LogIndex) {
        guard context.replicas[group]?.raft.id == replica else { return }
        let error = StorageMismatch("at \(index) the data differ from those of the other nodes, which agree")
        damaged(group, error, .reading)
    }

    /// A replica that could not apply an entry could after all.
    func recovered(_ group: GroupID) {
        context.eventLoop.preconditionInEventLoop()
        let replica = context.replicas[group]
        if replica?.damage?.kind == .applying { replica?.damage = nil }
    }

    /// This build cannot apply the next entry of a replica: it keeps its log and votes, answers nothing that it has not
    /// applied, and waits for a build that can.
    func stopped(_ replica: Replica, by error: BuildTooOld) {
        replica.tooOld = error
        replica.applyFailure = error.description
        // Trying again changes nothing.
        replica.nextApply = MonotonicTime(nanoseconds: .max)
        replica.failReads(replica.refusal ?? .unavailable(error.description))
        transfers.hurry()
    }

    /// The condition of this node's replica; nil without one, or while the node is not accepted.
    func condition(of group: GroupID) -> ReplicaCondition? {
        context.eventLoop.preconditionInEventLoop()
        guard !context.peers.trust.isHeld, let replica = context.replicas[group] else { return nil }
        return ReplicaCondition(
            replica.raft.id, applied: replica.applied, applies: replica.applyFailure == nil,
            isDamaged: replica.damage != nil, isVoter: replica.raft.configuration.voters.contains(replica.raft.id))
    }
}
