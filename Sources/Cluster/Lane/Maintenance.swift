import Logging
import NIOCore
import RaftCore
import Storage
import Wire

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
