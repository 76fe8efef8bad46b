import Directory
import PeerTransport
import RaftCore

/// Hands leads to the nodes that should have them: by the map, and away from a node that cannot do the work.
final class LeadTransfers: @unchecked Sendable {
    // What changes is touched on the lane's event loop only, which makes it safe to share.
    private let context: LaneContext
    /// The node that should lead each group when it can.
    private var preferred: [GroupID: NodeID] = [:]
    private var nextRebalance = MonotonicTime.zero

    init(_ context: LaneContext) { self.context = context }

    /// Takes from a new map who should lead.
    func prefer(by map: ClusterMap) {
        for group in map.groups {
            preferred[group] = map.preferredLeader(of: group)
            if isPreferredHere(group) { context.replicas[group]?.leadershipSender = nil }
        }
    }

    /// Whether this node should lead a group.
    func isPreferredHere(_ group: GroupID) -> Bool { preferred[group] == context.settings.nodeID }

    /// Another node shall lead at once.
    func hurry() { nextRebalance = .zero }

    /// Transfers leadership to the preferred node, one group per interval; immediately if this node is unfit to lead.
    func rebalance(now: MonotonicTime, through runner: GroupRunner) {
        guard nextRebalance <= now else { return }
        nextRebalance = now.adding(milliseconds: context.settings.rebalanceDelayMilliseconds / 5)
        for group in context.replicas.groups {
            guard let replica = context.replicas[group], replica.raft.role == .leader,
                let successor = successor(of: replica, group, isStalled: runner.isStalled, now: now)
            else { continue }
            let effects = replica.raft.transferLeadership(to: successor, now: now)
            let isAsked = !effects.sendNow.isEmpty
            if isAsked {
                replica.transferUntil = now.adding(milliseconds: context.settings.electionTimeoutMilliseconds)
            }
            runner.perform(effects, of: replica)
            if isAsked, !context.isUnfit { return }
        }
    }

    /// Who is to lead next: any other replica if this node cannot do the work, otherwise the preferred one.
    private func successor(
        of replica: Replica, _ group: GroupID, isStalled: Bool, now: MonotonicTime
    ) -> ReplicaID? {
        let peers = context.peers
        let others = replica.raft.configuration.voters.filter {
            $0 != replica.raft.id && !peers.trust.rejects($0.node)
                && peers.trust.canFollow(replica.applier.level, $0.node) && peers.isConnected($0.node)
        }
        func hasLed(delays: UInt64) -> Bool {
            let delay = delays * context.settings.rebalanceDelayMilliseconds
            return replica.leadingSince.adding(milliseconds: delay) <= now
        }
        // The node that transferred leadership away had a reason, which may last; where all disks are full, leadership
        // must not go round in circles.
        let mayReturn = replica.leadershipSender == nil || hasLed(delays: 12)
        let isUnable = replica.applyFailure != nil || replica.damage != nil || context.disk.isShort && isStalled
        if isUnable || context.isUnfit && mayReturn {
            // Any: the first one may be no better.
            return others.isEmpty ? nil : others[Int(context.platform.random() % UInt64(others.count))]
        }
        guard hasLed(delays: 1), mayReturn || replica.leadershipSender != preferred[group] else { return nil }
        return others.first { $0.node == preferred[group] }
    }
}
