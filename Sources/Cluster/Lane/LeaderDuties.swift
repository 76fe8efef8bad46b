import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore
import RecordModel
import Storage
import Wire

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
            // A node that the directory's log adds, and that is not on the map yet, may not follow.
            group != .directory || replica.applied == replica.raft.lastLog.index,
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

/// The work that a state machine has of its own: index building, cascades, reclaiming. The leader proposes it in
/// bounded parts, so that it is replicated like any command and requests get their turn in between.
final class Maintenance: @unchecked Sendable {
    // What changes is touched on the lane's event loop only, which makes it safe to share.
    /// How often databases are looked through for what time alone made due, such as tombstones past their age.
    private static let searchIntervalMilliseconds: UInt64 = 60_000
    /// How long a leader waits after a part that failed.
    private static let failurePauseMilliseconds: UInt64 = 1_000

    private let context: LaneContext
    private let runner: GroupRunner
    /// When the databases of groups that this node leads are next looked through for work that came by time alone.
    private var nextSearch = MonotonicTime.zero

    init(_ context: LaneContext, _ runner: GroupRunner) { (self.context, self.runner) = (context, runner) }

    func maintain(now: MonotonicTime) {
        // These commands carry this node's time.
        guard context.clockWatch.errorMilliseconds == nil else { return }
        let wallTime = context.clock.wallMilliseconds
        searchWork(now: now, wallTime: wallTime)
        for group in context.replicas.groups { maintain(group, now: now, wallTime: wallTime) }
    }

    private func maintain(_ group: GroupID, now: MonotonicTime, wallTime: Int64) {
        guard let replica = context.replicas[group], replica.raft.role == .leader, !runner.isStalled,
            replica.applyFailure == nil, replica.transferUntil <= now,
            let due = replica.nextMaintenance, due <= now,
            let command = replica.applier.machine.maintenance(
                now: wallTime, at: replica.applier.level, random: context.platform.random)
        else { return }
        replica.nextMaintenance = nil
        runner.propose(GroupCommand.freeing(command).encoded(), to: group) { [self] result in
            context.eventLoop.execute { self.didMaintain(group, since: now, result) }
        }
    }

    /// Work takes no more than every other moment: the next part waits as long as this one took. Urgent work goes on at
    /// once, or where clients' commands wait, after these.
    private func didMaintain(_ group: GroupID, since begin: MonotonicTime, _ result: Result<[UInt8], ReplicaError>) {
        let now = context.now
        switch result {
        case .success:
            guard let replica = context.replicas[group] else { return }
            let taken = (now.nanoseconds - begin.nanoseconds) / 1_000_000
            let isUrgent = replica.applier.machine.isUrgent
            replica.nextMaintenance = isUrgent ? now : now.adding(milliseconds: min(UInt64(taken), 1_000))
            if isUrgent, replica.proposals.isEmpty, context.clockWatch.errorMilliseconds == nil {
                maintain(group, now: now, wallTime: context.clock.wallMilliseconds)
            }
        case .failure(let error):
            context.logger.debug("group \(group): its own work waits: \(error)")
            context.replicas[group]?.nextMaintenance = now.adding(milliseconds: Self.failurePauseMilliseconds)
        }
    }

    private func searchWork(now: MonotonicTime, wallTime: Int64) {
        guard nextSearch <= now else { return }
        nextSearch = now.adding(milliseconds: Self.searchIntervalMilliseconds)
        for group in context.replicas.groups where context.replicas[group]?.raft.role == .leader {
            guard let applier = context.replicas[group]?.applier else { continue }
            // If the queue is full, this is tried again in a minute.
            try? context.pools.upkeep.submit { [logger = context.logger] isActive in
                guard isActive else { return }
                do {
                    try applier.database.read { try applier.machine.findWork(now: wallTime, in: $0) }
                } catch {
                    logger.error("group \(group): looking for due work failed: \(error)")
                }
            }
        }
    }
}
