import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Wire

/// What this node's build and its peers' builds allow its replicas to do: raises the groups' feature levels.
final class BuildReview: @unchecked Sendable {
    // What changes is touched on the lane's event loop only, which makes it safe to share.
    private let context: LaneContext
    private let transfers: LeadTransfers
    private var nextReview = MonotonicTime.zero

    init(_ context: LaneContext, _ transfers: LeadTransfers) { (self.context, self.transfers) = (context, transfers) }

    /// How often groups are looked through for a level that all of their nodes can follow, and the clock is looked at;
    /// more often while a group is new, because clients wait for its level.
    private var buildIntervalMilliseconds: UInt64 {
        context.replicas.groups.contains { context.replicas[$0]?.applier.level == .first } ? 100 : 1_000
    }

    /// The next tick reviews.
    func hurry() { nextReview = .zero }

    /// Raises feature levels where all nodes can follow, says how the clock is, and judges rejected peers again.
    func review(now: MonotonicTime, through runner: GroupRunner) {
        guard nextReview <= now else { return }
        nextReview = now.adding(milliseconds: buildIntervalMilliseconds)
        context.clockWatch.say(context.logger)
        // A full disk may be why a peer could not be remembered, and was rejected; its connection may last.
        context.peers.judgeRejectedAgain()
        if context.isUnfit { transfers.hurry() }
        for group in context.replicas.groups { raiseLevel(of: group, now: now, through: runner) }
    }

    /// Proposes the level that every node can follow.
    private func raiseLevel(of group: GroupID, now: MonotonicTime, through runner: GroupRunner) {
        guard let replica = context.replicas[group], replica.raft.role == .leader, replica.applyFailure == nil,
            !context.isUnfit, !runner.isStalled, replica.transferUntil <= now, !replica.isRaising,
            let level = commonLevel(of: group, replica), level > replica.applier.level
        else { return }
        replica.isRaising = true
        runner.propose(GroupCommand.raise(level).encoded(), to: group) { [context] result in
            context.eventLoop.execute {
                replica.isRaising = false
                guard case .success = result else { return }
                context.logger.notice("group \(group): feature level \(level) is in force")
            }
        }
    }

    /// The highest level that all nodes of a group can follow; nil where one cannot be asked now.
    ///
    /// The directory goes first, which every node has a replica of. So a node that is in the cluster by the directory's
    /// level, which each hello says, can follow every group.
    private func commonLevel(of group: GroupID, _ replica: Replica) -> FeatureLevel? {
        guard let map = context.peers.map else { return nil }
        var level = context.settings.featureLevels.upperBound
        let trust = context.peers.trust
        var nodes = Set(replica.raft.configuration.all.map(\.node))
        if group == .directory {
            nodes.formUnion(map.nodes.map { NodeID(rawValue: $0.id) })
        } else {
            level = min(level, directoryLevel ?? .first)
        }
        for node in nodes where node != context.settings.nodeID {
            guard context.peers.isConnected(node), !trust.rejects(node), let most = trust.levels(of: node)?.upperBound
            else { return nil }
            level = min(level, FeatureLevel(most))
        }
        return level
    }

    /// The level that a new group reaches once its leader has proposed it; nil if it waits for none.
    ///
    /// A group begins at the first level, and what clients find in its documents may need a later one.
    func awaitedLevel(of group: GroupID, _ replica: Replica) -> FeatureLevel? {
        guard replica.applier.level == .first, let level = commonLevel(of: group, replica), level > .first else {
            return nil
        }
        return level
    }

    /// The level that the cluster has reached, as far as this node knows.
    var directoryLevel: FeatureLevel? { context.replicas[.directory]?.applier.level }
}
