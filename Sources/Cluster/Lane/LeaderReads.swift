import NIOCore
import RaftCore
import Telemetry

/// Answers from the state of the groups that this node leads, and has the layers above answer for them.
final class LeaderReads: @unchecked Sendable {
    // What changes is touched on the lane's event loop only, which makes it safe to share.
    private let context: LaneContext
    private let health: ReplicaHealth
    private let runner: GroupRunner
    private let services: ServiceHolder
    /// Waits until this node knows what the directory holds; set before the lane starts.
    var catchUp: @Sendable (@escaping @Sendable (Bool) -> Void) -> Void = { $0(false) }

    init(_ context: LaneContext, _ health: ReplicaHealth, _ runner: GroupRunner, _ services: ServiceHolder) {
        (self.context, self.health, self.runner, self.services) = (context, health, runner, services)
    }

    /// Answers a read from the state as it is once everything acknowledged before this call is applied here, if this
    /// node leads the group. It runs on a reader connection and never waits for writes.
    /// - Parameter ticket: ends the read once it is not wanted any more.
    func read(_ request: [UInt8], from group: GroupID, _ ticket: ReadTicket, completion: @escaping Completion) {
        context.eventLoop.preconditionInEventLoop()
        guard let replica = context.replica(of: group) else { return completion(.failure(.notLeader(hint: nil))) }
        if let refusal = replica.refusal { return completion(.failure(refusal)) }
        let read = ReaderRead(
            request: request, group: group, applier: replica.applier, ticket: ticket, completion: completion)
        let wait = context.settings.tracer?.below(ticket.place, "read index")
        let run: @Sendable () -> Void = { [self] in
            wait?.finish()
            perform(read)
        }
        let least = ticket.isAfterLog ? replica.raft.lastLog.index : .zero
        replica.reads.append(Replica.Read(least: least, run: run, fail: { completion(.failure($0)) }))
        runner.scheduleFlush(of: group)
    }

    /// Runs a read in its container's turn. A record may be newer than what this node knows of the directory, as when
    /// its key was made by another node a moment ago: then the node learns what was acknowledged until now, and reads
    /// again.
    /// - Parameter hasLearned: whether the node learned it; nil before it tried.
    private func perform(_ read: ReaderRead, hasLearned: Bool? = nil) {
        let pool = read.group == .directory ? context.pools.directory : context.pools.reads
        do throws(QueueFull) {
            try pool.submit(for: read.ticket.container) { [self] isActive in
                guard isActive else { return read.completion(.failure(.unavailable("the node is stopping"))) }
                do throws(DirectoryBehind) {
                    read.completion(
                        try read.answer(context.settings.tracer) { error in
                            context.eventLoop.execute { [health] in health.damaged(read.group, error, .reading) }
                        })
                } catch {
                    if let hasLearned { return read.completion(.success(hasLearned ? error.answer : error.refusal)) }
                    context.eventLoop.execute { [self] in catchUp { [self] in perform(read, hasLearned: $0) } }
                }
            }
        } catch {
            read.completion(.failure(.overloaded))
        }
    }

    /// Has the layers above answer a request, if this node leads the group.
    ///
    /// A leader that was suspended or cut off, or handed over, must not answer for another one: this node is known to
    /// have led when the request came, as for a read.
    func confer(_ request: [UInt8], of group: GroupID, completion: @escaping Completion) {
        context.eventLoop.preconditionInEventLoop()
        let answer: @Sendable () -> Void = { [self] in self.answer(request, of: group, completion: completion) }
        guard let replica = context.replica(of: group), replica.raft.role == .leader else { return answer() }
        replica.reads.append(
            Replica.Read(needsState: false, run: answer, fail: { completion(.failure($0)) }))
        runner.scheduleFlush(of: group)
    }

    private func answer(_ request: [UInt8], of group: GroupID, completion: @escaping Completion) {
        guard let replica = context.replica(of: group), replica.raft.role == .leader else {
            return completion(.failure(.notLeader(hint: context.replicas[group]?.raft.leader)))
        }
        guard let services = services.current else {
            return completion(.failure(.unavailable("node \(context.settings.nodeID) is starting")))
        }
        let leadership = Leadership(
            group: group, term: replica.raft.term, since: replica.leadingSince, now: context.now)
        services.confer(request, as: leadership) { completion(.success($0)) }
    }
}
