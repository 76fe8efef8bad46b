import Directory
import Logging
import NIOCore
import RaftCore
import Wire

/// Brings the members of the groups that this node leads to where the map has them.
final class MemberChanges: @unchecked Sendable {
    // What changes is touched on the lane's event loop only, which makes it safe to share.
    /// How often the groups that this node leads are held against the map.
    private static let reconcileIntervalMilliseconds: UInt64 = 200

    private let context: LaneContext
    private let runner: GroupRunner
    /// Whether the map may be relied on, because the directory's lease is in force.
    var isDirectoryCurrent: @Sendable (MonotonicTime) -> Bool = { _ in false }
    private var nextReconcile = MonotonicTime.zero

    init(_ context: LaneContext, _ runner: GroupRunner) { (self.context, self.runner) = (context, runner) }

    /// The next tick reconciles.
    func hurry() { nextReconcile = .zero }

    /// Moves the members of the groups that this node leads one step towards the map, one change of a group at a time.
    /// An outdated map changes nothing: it could ask for replicas that were deleted since.
    func reconcile(now: MonotonicTime, by map: ClusterMap?) {
        guard nextReconcile <= now else { return }
        nextReconcile = now.adding(milliseconds: Self.reconcileIntervalMilliseconds)
        guard let map, !runner.isStalled, isDirectoryCurrent(now) else { return }
        for group in context.replicas.groups {
            guard let replica = context.replicas[group], replica.raft.role == .leader, replica.transferUntil <= now
            else { continue }
            let desired = map.configuration(of: group)
            guard replica.raft.configuration != desired, !desired.voters.isEmpty else {
                replica.waitsFor = ""
                continue
            }
            reconcile(replica, of: group, to: desired, now: now)
        }
    }

    private func reconcile(_ replica: Replica, of group: GroupID, to desired: Configuration, now: MonotonicTime) {
        let status = replica.raft.status
        let step = Reconciliation.next(
            from: status.configuration, isCommitted: status.isConfigurationCommitted,
            caughtUp: status.followers.filter(\.isCaughtUp).map(\.id), to: desired)
        switch step {
        case .settled: replica.waitsFor = ""
        case .waiting(let reason): replica.waitsFor = reason
        case .change(let target):
            do throws(ConfigurationChangeError) {
                let effects = try replica.raft.propose(
                    configuration: target, replacing: status.configuration, now: now
                ).effects
                context.logger.notice("group \(group): members become \(Self.text(target))")
                replica.waitsFor = "a change is under way"
                runner.perform(effects, of: replica)
            } catch {
                if replica.waitsFor != error.description {
                    context.logger.info("group \(group): members stay as they are for now: \(error)")
                }
                replica.waitsFor = error.description
            }
        }
    }

    private static func text(_ configuration: Configuration) -> String {
        func list(_ replicas: [ReplicaID]) -> String {
            replicas.map { $0.generation == 0 ? "\($0.node)" : "\($0.node).\($0.generation)" }.joined(separator: ", ")
        }
        let learners = configuration.learners.isEmpty ? "" : ", learning: \(list(configuration.learners))"
        return "nodes \(list(configuration.voters))\(learners)"
    }

    /// Tells the members of a group that this node leads, once it is certain that it still does.
    func list(of group: GroupID, completion: @escaping Completion) {
        context.eventLoop.preconditionInEventLoop()
        guard let replica = context.replica(of: group) else { return completion(.failure(.notLeader(hint: nil))) }
        let run: @Sendable () -> Void = { [context] in
            guard let replica = context.replicas[group] else { return completion(.failure(.notLeader(hint: nil))) }
            let status = replica.raft.status
            let lag = status.followers.map {
                GroupMembers.Lag(
                    replica: $0.id, missingEntries: status.lastLog.index.rawValue - $0.match.rawValue)
            }
            let members = GroupMembers(
                leader: status.id, configuration: status.configuration, isCommitted: status.isConfigurationCommitted,
                lag: lag, epoch: context.peers.map?.epoch ?? 0, waitsFor: replica.waitsFor)
            completion(.success(members.encoded()))
        }
        replica.reads.append(Replica.Read(run: run, fail: { completion(.failure($0)) }))
        runner.scheduleFlush(of: group)
    }
}
