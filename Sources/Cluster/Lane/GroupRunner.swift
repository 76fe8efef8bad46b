import GRDB
import Logging
import NIOCore
import RaftCore
import Storage
import Telemetry

/// Hands commands, reads and time to the cores of this node's replicas, and performs what they ask for.
///
/// Each entry point ends in `finishTurn`, which puts what all replicas wrote in the turn into one submission to the
/// log. Disk and SQLite work happens on other threads, which come back with `eventLoop.execute`.
final class GroupRunner: @unchecked Sendable {
    // What changes is touched on the lane's event loop only, which makes it safe to share.
    private let context: LaneContext
    private let health: ReplicaHealth
    private let builds: BuildReview
    private let snapshots: SnapshotSender
    private var turn = Turn()
    /// What goes to the log, and what waits for its turn.
    private var submissions: SubmissionOrder
    /// Groups with proposals or reads to hand to their cores.
    private var dirty: [GroupID] = []
    private var isFlushScheduled = false

    /// What one turn of the lane has to write, and what waits for it to be durable.
    private struct Turn {
        var writes: [LogWrite] = []
        var waiting: [Submission.Persist] = []
    }

    init(_ context: LaneContext, _ health: ReplicaHealth, _ builds: BuildReview, _ snapshots: SnapshotSender) {
        (self.context, self.health, self.builds, self.snapshots) = (context, health, builds, snapshots)
        submissions = SubmissionOrder(bytesMax: context.settings.log.queueBytesMax)
    }

    /// Whether there is what the log has not taken.
    var isStalled: Bool { submissions.isStalled }

    /// Proposes a command. The completion is called with its outcome once it is applied here, or with why it was not.
    /// - Parameter place: the span that it belongs to, where that is recorded.
    func propose(
        _ command: [UInt8], to group: GroupID, below place: TraceContext? = nil, completion: @escaping Completion
    ) {
        context.eventLoop.preconditionInEventLoop()
        guard let replica = context.replica(of: group) else { return completion(.failure(.notLeader(hint: nil))) }
        if let refusal = replica.refusal { return completion(.failure(refusal)) }
        if let excess = context.settings.excess(of: command) { return completion(.failure(.tooLarge(excess))) }
        replica.proposals.append(Replica.Proposal(command: command, completion: completion, place: place))
        scheduleFlush(of: group)
    }

    func scheduleFlush(of group: GroupID) {
        dirty.append(group)
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        context.eventLoop.execute { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    /// Hands what waits to the cores: all commands of a group that came in meanwhile become one append.
    private func flush() {
        context.clockWatch.review(context.replicas)
        let groups = Set(dirty).sorted()
        dirty = []
        for group in groups {
            guard let replica = context.replicas[group] else { continue }
            flushProposals(of: replica)
            flushReads(of: replica)
        }
        finishTurn()
    }

    private func flushProposals(of replica: Replica) {
        let now = context.now
        guard !replica.proposals.isEmpty, replica.transferUntil <= now else { return }
        let waiting = replica.proposals
        replica.proposals = []
        if let failure = replica.standstill {
            for proposal in waiting { proposal.completion(.failure(failure)) }
            return
        }
        let proposals = admitted(waiting)
        if proposals.isEmpty { return }
        do throws(ProposalError) {
            let (proposal, effects) = try replica.raft.propose(proposals.map(\.command), now: now)
            for (offset, waiting) in proposals.prefix(proposal.count).enumerated() {
                let position = LogPosition(
                    index: LogIndex(proposal.first.index.rawValue + UInt64(offset)), term: proposal.first.term)
                replica.inFlight.append(
                    Replica.InFlight(
                        position: position, completion: waiting.completion,
                        steps: context.settings.tracer?.steps(of: waiting, at: position.index, in: replica)))
            }
            for excess in proposals.dropFirst(proposal.count) { excess.completion(.failure(.overloaded)) }
            perform(effects, of: replica)
        } catch {
            for proposal in proposals { proposal.completion(.failure(ReplicaError(error))) }
        }
    }

    private func flushReads(of replica: Replica) {
        guard !replica.reads.isEmpty else { return }
        perform(replica.raft.read(replica.takeReads(), now: context.now), of: replica)
    }

    /// Refuses the proposals that a disk without space, or a log that has as much waiting as it may, cannot take.
    private func admitted(_ proposals: [Replica.Proposal]) -> [Replica.Proposal] {
        guard context.disk.isShort || isStalled else { return proposals }
        return proposals.filter { proposal in
            if !isStalled, GroupCommand.isFreeing(proposal.command) { return true }
            proposal.completion(.failure(context.disk.isShort ? .diskFull : .overloaded))
            return false
        }
    }

    /// Retries what the log refused, and looks for room where the disk is full.
    func recover(now: MonotonicTime) {
        submitRefused()
        context.disk.regain(now: now) { [self] in isStalled }
    }

    /// Tells the replicas the time.
    func tick(now: MonotonicTime) {
        for group in context.replicas.groups {
            guard let replica = context.replicas[group] else { continue }
            if replica.wakeAt <= now { perform(replica.raft.tick(now: now), of: replica) }
            handOver(replica, isForced: false)
            if !replica.proposals.isEmpty, replica.transferUntil <= now { scheduleFlush(of: group) }
            if replica.applyFailure != nil, replica.nextApply <= now, replica.applier.reschedule() {
                schedule(replica)
            }
        }
    }

    func perform(_ effects: Effects, of replica: Replica) {
        replica.wakeAt = effects.wakeAt
        if let change = effects.roleChange { roleChanged(change, of: replica) }
        persist(effects, of: replica)
        context.peers.send(effects.sendNow, of: replica.group)
        for read in effects.reads { replica.confirm(read) }
        for read in effects.failedReads { replica.fail(read) }
        for load in effects.loads { self.load(load, of: replica.group) }
        for follower in effects.snapshots { sendSnapshot(of: replica, to: follower) }
        if let mark = effects.install { install(mark, of: replica) }
        if let commitIndex = effects.commitIndex {
            replica.committed = commitIndex
            handOver(replica, isForced: false)
        }
    }

    func sendSnapshot(of replica: Replica, to follower: ReplicaID) {
        snapshots.send(of: replica, to: follower) { [self] replica, delivered in
            perform(replica.raft.snapshotSent(to: follower, through: delivered, now: context.now), of: replica)
            finishTurn()
        }
    }

    /// Hands the received file to the applier, behind what it has to do already.
    private func install(_ mark: SnapshotMark, of replica: Replica) {
        let group = replica.group
        guard let received = replica.receivedSnapshot, received.mark == mark else {
            preconditionFailure("group \(group): the core wants a snapshot at \(mark.position) that was not received")
        }
        context.logger.notice("group \(group): installing a snapshot at \(mark.position)")
        if replica.applier.enqueue(.install(path: received.path, mark)) { schedule(replica) }
    }

    /// Ends an entry point: what its replicas wrote goes to the log in one submission.
    func finishTurn() {
        guard !turn.writes.isEmpty else { return }
        submissions.add(Submission(writes: turn.writes, waiting: turn.waiting))
        turn = Turn()
        submit()
    }

    /// Gives the log as much as it takes.
    private func submit() {
        while let submission = submissions.next() {
            var writes = submission.writes
            if context.disk.isShort { for index in writes.indices { writes[index].mayUseReserve = true } }
            context.log.submit(writes) { [self] result in
                context.eventLoop.execute { self.wrote(submission, result) }
            }
        }
    }

    /// Gives the log again what it refused.
    private func submitRefused() {
        guard submissions.retry() else { return }
        context.log.resume()
        submit()
    }

    private func persist(_ effects: Effects, of replica: Replica) {
        let group = replica.group
        guard effects.hardState != nil || !effects.append.isEmpty else {
            return context.peers.send(effects.sendAfterPersist, of: group)
        }
        if let hardState = effects.hardState { replica.submitted.hardState = hardState }
        if let last = effects.append.last { replica.submitted.position = last.position }
        turn.writes.append(LogWrite(group: group, hardState: effects.hardState, entries: effects.append))
        turn.waiting.append(.init(group: group, state: replica.submitted, messages: effects.sendAfterPersist))
    }

    private func wrote(_ submission: Submission, _ result: Result<Void, RaftLogError>) {
        switch result {
        case .success:
            submissions.becameDurable(submission)
            for persist in submission.waiting { completed(persist) }
            finishTurn()
            submit()
        case .failure(.diskFull):
            context.disk.foundFull()
            refused(submission)
        case .failure(.overloaded), .failure(.halted):
            refused(submission)
        case .failure(let error):
            // What was handed to the log and is not durable can neither be taken back nor be waited for: the replicas
            // in memory are ahead of the disk. The process ends; a restart finds what is durable.
            context.logFailed(error)
        }
    }

    private func refused(_ submission: Submission) {
        // What a replica wrote that was given up meanwhile must not come behind its removal from the log.
        let rest = Submission(
            writes: submission.writes.filter { context.replicas[$0.group] != nil },
            waiting: submission.waiting.filter { context.replicas[$0.group] != nil })
        submissions.wasRefused(submission, rest: rest)
    }

    private func completed(_ persist: Submission.Persist) {
        context.peers.send(persist.messages, of: persist.group)
        guard let replica = context.replicas[persist.group] else { return }
        replica.didSync(through: persist.state.position.index)
        let effects: Effects
        if let mark = persist.installed {
            replica.handedOver = mark.position.index
            replica.applied = mark.position.index
            replica.committed = mark.position.index
            if let received = replica.receivedSnapshot { received.reply(.received(received.totalBytes)) }
            replica.receivedSnapshot = nil
            effects = replica.raft.snapshotInstalled(mark, now: context.now)
        } else {
            effects = replica.raft.persisted(
                persist.state.position, hardState: persist.state.hardState, now: context.now)
        }
        perform(effects, of: replica)
    }

    private func roleChanged(_ change: RoleChange, of replica: Replica) {
        let group = replica.group
        context.leaders.roleChanged(isLeading: change.role == .leader, leader: change.leader?.node, of: group)
        if change.leader != nil, replica.transferUntil != .zero {
            replica.transferUntil = .zero
            scheduleFlush(of: group)
        }
        replica.changes(to: change.role)
        if change.role == .leader {
            replica.leadingSince = context.now
            // A new cluster shall not begin its work at a lower level than it need to.
            if group == .directory { builds.hurry() }
            context.logger.info("group \(group): leading in term \(change.term)")
            handOver(replica, isForced: true)
        }
    }

    private func load(_ request: LoadRequest, of group: GroupID) {
        do throws(QueueFull) {
            try context.pools.upkeep.submit { [self] isActive in
                guard isActive else { return }
                let result = Result<[Entry]?, any Error> {
                    try context.log.entries(
                        of: group, from: request.from, through: request.through, bytesMax: request.bytesMax)
                }
                context.eventLoop.execute { self.loaded(request, result, of: group) }
            }
        } catch {
            // The core waits for an answer before it asks for more.
            context.eventLoop.scheduleTask(in: .milliseconds(Int64(context.settings.heartbeatIntervalMilliseconds))) {
                self.load(request, of: group)
            }
        }
    }

    private func loaded(_ request: LoadRequest, _ result: Result<[Entry]?, any Error>, of group: GroupID) {
        if case .failure(let error) = result { loadFailed(error, of: group) }
        // The follower is given a snapshot instead, or another leader's entries.
        let entries = (try? result.get()) ?? []
        guard let replica = context.replicas[group] else { return }
        perform(replica.raft.loaded(request, entries: entries, now: context.now), of: replica)
        finishTurn()
    }

    private func loadFailed(_ error: any Error, of group: GroupID) {
        context.logger.error("group \(group): its log cannot be read back: \(error)")
        if DataDamage.isDamage(error) { health.damaged(group, error, .loading) }
    }

    /// Hands committed entries to the applier: at once on a leader, in larger pieces on a follower.
    private func handOver(_ replica: Replica, isForced: Bool) {
        guard replica.committed > replica.handedOver, replica.receivedSnapshot == nil, replica.applyFailure == nil,
            replica.backlog < context.settings.apply.backlogEntriesMax
        else { return }
        let now = context.now
        let isLeader = replica.raft.role == .leader
        let waiting = replica.committed.rawValue - replica.handedOver.rawValue
        let due = replica.lastHandOver.adding(milliseconds: context.settings.apply.followerDelayMilliseconds)
        guard
            isLeader || isForced || replica.group == .directory || waiting >= context.settings.apply.followerEntriesMax
                || due <= now
        else { return }
        let from = replica.handedOver.next
        let through = replica.committed
        replica.didHandOver(through: through, now: now)
        let item: Applier.Item
        if let entries = replica.raft.entries(from: from, through: through, bytesMax: .max) {
            item = .entries(entries, completions: replica.takeCompletions(of: entries, context.settings.tracer))
        } else {
            replica.loseTrack(through: through)
            item = .logged(from: from, through: through)
        }
        if replica.applier.enqueue(item) { schedule(replica) }
    }

    /// Has the replica's worker apply what is queued.
    private func schedule(_ replica: Replica) {
        let applier = replica.applier
        replica.worker.schedule { [self] in
            applier.drain { progress in
                context.eventLoop.execute { self.applied(progress, by: applier) }
            }
        }
    }

    /// The applier's report, back on the lane.
    private func applied(_ progress: Applier.Progress, by applier: Applier) {
        let group = applier.group
        // The replica may have been given up meanwhile.
        guard let replica = context.replicas[group], replica.applier === applier else { return }
        switch progress {
        case .failed(ShardDatabaseError.failedSync(let path)): context.syncFailed(path)
        case .failed(let error as BuildTooOld): health.stopped(replica, by: error)
        case .failed(let error):
            if DataDamage.keepsFromApplying(error) { health.damaged(group, error, .applying) }
            if (error as? DatabaseError)?.resultCode == .SQLITE_FULL { context.disk.foundFull() }
            let isAgain = replica.applyFailure != nil
            replica.applyFailure = "\(error)"
            replica.nextApply = context.now.adding(milliseconds: 1_000)
            if isAgain { replica.failConfirmedReads() }
        case .applied(let position, let installed):
            replica.applyFailure = nil
            if let installed { return logInstalled(installed, of: replica) }
            // What was kept is told again after a failure.
            if position.index > replica.applied { replica.didApply(through: position.index) }
            replica.runConfirmedReads()
        }
    }

    /// The database is in place: now the log may forget what came before.
    private func logInstalled(_ mark: SnapshotMark, of replica: Replica) {
        replica.submitted.position = mark.position
        turn.writes.append(LogWrite(group: replica.group, snapshotMark: mark))
        turn.waiting.append(.init(group: replica.group, state: replica.submitted, messages: [], installed: mark))
        finishTurn()
    }
}
