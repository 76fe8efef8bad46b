import Directory
import Logging
import NIOCore
import PeerTransport
import RaftCore

/// Runs the Raft replicas of a node on one event loop, the one that also carries the peer connections, so that a
/// message, the decision it brings about and the answer need no hop between threads.
///
/// It passes what comes in to its parts: other nodes' messages and questions, maps and the time. `GroupRunner` runs the
/// replicas' cores.
package final class Lane: @unchecked Sendable {
    // Everything mutable, here and in the parts, is touched on `eventLoop` only, which every entry point checks: that
    // is what makes the class safe to share.
    let context: LaneContext
    let settings: NodeSettings
    let health: ReplicaHealth
    let builds: BuildReview
    let runner: GroupRunner
    let reads: LeaderReads
    let members: MemberChanges
    let scrubber: Scrubber
    let snapshots: SnapshotReceiver
    let transfers: LeadTransfers
    private let maintenance: Maintenance
    /// What answers other nodes for the layers above.
    let services = ServiceHolder()
    let hops = HopLog()
    /// Serves peers with files.
    weak var assets: AssetExchange?
    /// What answers other nodes about membership.
    weak var host: (any MembershipHost)?

    init(_ context: LaneContext) {
        (self.context, settings) = (context, context.settings)
        transfers = LeadTransfers(context)
        health = ReplicaHealth(context, transfers)
        builds = BuildReview(context, transfers)
        runner = GroupRunner(context, health, builds, SnapshotSender(context: context, health: health))
        reads = LeaderReads(context, health, runner, services)
        members = MemberChanges(context, runner)
        scrubber = Scrubber(context: context, health: health, runner: runner)
        snapshots = SnapshotReceiver(context: context, runner: runner)
        maintenance = Maintenance(context, runner)
    }

    var eventLoop: any EventLoop { context.eventLoop }
    var leaders: LeaderTable { context.leaders }
    var clockWatch: ClockWatch { context.clockWatch }
    var replicas: ReplicaTable { context.replicas }
    var peers: PeerLinks { context.peers }

    /// Starts the timers.
    func start() {
        context.disk.start()
        eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(Int64(settings.tickMilliseconds))) {
            [weak self] task in
            guard let self, !context.isStopping else { return task.cancel() }
            tick()
        }
    }

    private func tick() {
        let now = context.now
        clockWatch.review(replicas)
        runner.recover(now: now)
        guard !peers.trust.isHeld else { return context.expireCalls(now: now) }
        runner.tick(now: now)
        context.expireCalls(now: now)
        maintenance.maintain(now: now)
        scrubber.scrub(now: now)
        builds.review(now: now, through: runner)
        transfers.rebalance(now: now, through: runner)
        members.reconcile(now: now, by: peers.map)
        runner.finishTurn()
    }

    /// Takes a new map.
    func take(_ map: ClusterMap) {
        eventLoop.preconditionInEventLoop()
        // Two maps may come from two threads.
        guard !context.isStopping, map.epoch >= peers.map?.epoch ?? 0 else { return }
        clockWatch.keep(only: map.nodes.map { NodeID(rawValue: $0.id) })
        transfers.prefer(by: map)
        peers.take(map)
        members.hurry()
    }

    /// Looks for the cluster at the nodes of a peer's map, too, until one that is as new is taken.
    func hear(_ map: ClusterMap) {
        eventLoop.preconditionInEventLoop()
        if !context.isStopping { peers.hear(map) }
    }

    /// Removes a replica: it no longer sends or receives, and its callers get an error.
    /// - Returns: the replica; nil if there is none, or its writes may still be reordered in the log. Then try again
    ///   later.
    func remove(_ group: GroupID) -> Replica? {
        eventLoop.preconditionInEventLoop()
        runner.finishTurn()
        guard !runner.isStalled, let replica = replicas.remove(group) else { return nil }
        leaders.roleChanged(isLeading: false, leader: nil, of: group)
        replica.fail(.outcomeUnknown("the replica on node \(settings.nodeID) is given up"))
        replica.receivedSnapshot?.reply(.failed("the replica is given up"))
        replica.receivedSnapshot = nil
        return replica
    }

    /// What the replicas of this node are at.
    package func status() -> [ReplicaStatus] {
        eventLoop.preconditionInEventLoop()
        return context.replicas.groups.compactMap { group in
            context.replicas[group].map { replica in
                ReplicaStatus(
                    group: group, id: replica.raft.id, role: replica.raft.role, term: replica.raft.term,
                    leader: replica.raft.leader,
                    commitIndex: replica.raft.commitIndex, appliedIndex: replica.applied, lastLog: replica.raft.lastLog,
                    applyFailure: replica.applyFailure ?? replica.damage.map { "its data are damaged: \($0.error)" }
                        ?? replica.refusedAppend ?? replica.refusedSnapshot, level: replica.applier.level,
                    awaitedLevel: builds.awaitedLevel(of: group, replica),
                    isVoter: replica.raft.configuration.isVoter(replica.raft.id),
                    waitingEffects: replica.applier.machine.waitingEffects,
                    waitingMatches: replica.applier.machine.waitingMatches, elections: replica.elections)
            }
        }
    }
}
