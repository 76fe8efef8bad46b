import DequeModule
import Directory
import Logging
import NIOCore
import PeerTransport
package import RaftCore
import Storage
package import Telemetry

/// Runs the Raft replicas of a node on one event loop, the one that also carries the peer connections, so that a
/// message, the decision it brings about and the answer need no hop between threads.
///
/// Each entry point ends in `finishTurn`, which puts what all replicas wrote in the turn into one submission to the
/// log. Disk and SQLite work happens on other threads, which come back with `eventLoop.execute`.
package final class Lane: @unchecked Sendable {
    // Everything mutable is touched on `eventLoop` only, which every entry point checks: that is what makes the class
    // safe to share.
    let eventLoop: any EventLoop
    let log: RaftLog
    let logger: Logger
    let settings: NodeSettings
    let leaders: LeaderTable
    let platform: any NodePlatform
    /// Whether this node's clock may be trusted.
    let clockWatch: ClockWatch
    let pools: WorkPools
    /// What answers other nodes for the layers above.
    let services = ServiceHolder()
    let hops = HopLog()
    /// Waits until this node knows what the directory holds; set before the lane starts.
    var catchUp: @Sendable (@escaping @Sendable (Bool) -> Void) -> Void = { $0(false) }
    var transport: (any PeerNetwork)?
    var peerBook: PeerBook?
    /// Serves peers with files.
    weak var assets: AssetExchange?
    /// The cluster's map; nil while this node is of no cluster.
    var map: ClusterMap?
    /// The newest that a peer came with by itself; it tells only whom to ask.
    var heard: ClusterMap?
    /// Whether the map may be relied on, because the directory's lease is in force.
    var isDirectoryCurrent: @Sendable (MonotonicTime) -> Bool = { _ in false }
    /// What answers other nodes about membership.
    weak var host: (any MembershipHost)?
    /// Called when a replica's data are damaged.
    var onDamage: @Sendable (GroupID, ReplicaDamage) -> Void = { _, _ in }
    var trust = PeerTrust()
    /// The node that should lead each group when it can.
    var preferredLeaders: [GroupID: NodeID] = [:]
    var nextRebalance = MonotonicTime.zero
    var nextReconcile = MonotonicTime.zero
    var nextBuildReview = MonotonicTime.zero
    /// When the databases of groups that this node leads are next looked through for work that came by time alone.
    var nextWorkSearch = MonotonicTime.zero
    var replicas: [GroupID: Replica] = [:]
    /// Keys of `replicas`, sorted: the order of every walk over them.
    var groups: [GroupID] = []
    var turn = LaneTurn()
    /// Callers on this node, by deadline.
    var pendingCalls: Deque<(MonotonicTime, PendingCall)> = []
    let spaceReserve: SpaceReserve
    /// Whether the disk has any.
    var space = Space()
    /// What goes to the log, and what waits for its turn.
    var submissions: SubmissionOrder
    var isFlushScheduled = false
    var isStopping = false
    /// What the node does when its log fails: it must not go on.
    var onFatalError: @Sendable (String) -> Void = { _ in }

    /// What goes to the log in one piece, and what waits for it.
    struct Submission: Sendable {
        let writes: [LogWrite]
        let waiting: [Persist]
        /// What it counts for in the log's queue.
        let sizeBytes: Int

        init(writes: [LogWrite], waiting: [Persist]) {
            self.writes = writes
            self.waiting = waiting
            sizeBytes = writes.reduce(0) { $0 + $1.sizeBytes }
        }
    }

    /// A write on its way to the disk.
    struct Persist: Sendable {
        var group: GroupID
        /// What is durable once this write is.
        var state: Replica.Submitted
        var messages: [Message]
        var installed: SnapshotMark?
    }

    init(
        platform: any NodePlatform, log: RaftLog, settings: NodeSettings, leaders: LeaderTable,
        pools: WorkPools, logger: Logger
    ) {
        self.platform = platform
        clockWatch = ClockWatch(node: settings.nodeID, clock: platform.clock)
        eventLoop = platform.eventLoop
        self.log = log
        self.settings = settings
        self.leaders = leaders
        self.pools = pools
        self.logger = logger
        submissions = SubmissionOrder(bytesMax: settings.log.queueBytesMax)
        spaceReserve = SpaceReserve(
            folder: settings.dataPath, bytes: settings.spaceReserveBytes, disk: settings.log.disk)
    }

    /// The node's clock for elections and heartbeats; it counts suspension.
    var now: MonotonicTime { platform.clock.now }

    /// Adds a replica, which takes part from here on.
    func add(_ replica: Replica, for group: GroupID) {
        precondition(replicas[group] == nil, "group \(group) has a replica here already")
        replicas[group] = replica
        groups = replicas.keys.sorted()
    }

    /// Starts the timers.
    func start() {
        try? pools.upkeep.submit { [self] isActive in
            guard isActive else { return }
            // Started on a full disk, it must not take what is left for anything but reads and deletions.
            do {
                if try !spaceReserve.restore() { eventLoop.execute { [self] in enterDiskFull() } }
            } catch {
                logger.warning("no room can be kept back for a full disk: \(error)")
            }
        }
        eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(Int64(settings.tickMilliseconds))) {
            [weak self] task in
            guard let self, !self.isStopping else { return task.cancel() }
            self.tick()
        }
    }

    /// Proposes a command. The completion is called with its outcome once it is applied here, or with why it was not.
    /// - Parameter place: the span that it belongs to, where that is recorded.
    package func propose(
        _ command: [UInt8], to group: GroupID, below place: TraceContext? = nil, completion: @escaping Completion
    ) {
        eventLoop.preconditionInEventLoop()
        guard !isStopping, let replica = replicas[group] else { return completion(.failure(.notLeader(hint: nil))) }
        if let refusal = replica.refusal { return completion(.failure(refusal)) }
        if let excess = settings.excess(of: command) { return completion(.failure(.tooLarge(excess))) }
        replica.proposals.append(Replica.Proposal(command: command, completion: completion, place: place))
        scheduleFlush(of: group)
    }

    /// Answers a read from the state as it is once everything acknowledged before this call is applied here, if this
    /// node leads the group. It runs on a reader connection and never waits for writes.
    /// - Parameter ticket: ends the read once it is not wanted any more.
    func read(_ request: [UInt8], from group: GroupID, _ ticket: ReadTicket, completion: @escaping Completion) {
        eventLoop.preconditionInEventLoop()
        guard !isStopping, let replica = replicas[group] else { return completion(.failure(.notLeader(hint: nil))) }
        if let refusal = replica.refusal { return completion(.failure(refusal)) }
        let read = ReaderRead(
            request: request, group: group, applier: replica.applier, ticket: ticket, completion: completion)
        let wait = settings.tracer?.below(ticket.place, "read index")
        let run: @Sendable () -> Void = { [self] in
            wait?.finish()
            perform(read)
        }
        let least = ticket.isAfterLog ? replica.raft.lastLog.index : .zero
        replica.reads.append(Replica.Read(least: least, run: run, fail: { completion(.failure($0)) }))
        scheduleFlush(of: group)
    }

    /// Runs a read in its container's turn. A record may be newer than what this node knows of the directory, as when
    /// its key was made by another node a moment ago: then the node learns what was acknowledged until now, and reads
    /// again.
    /// - Parameter hasLearned: whether the node learned it; nil before it tried.
    private func perform(_ read: ReaderRead, hasLearned: Bool? = nil) {
        let pool = read.group == .directory ? pools.directory : pools.reads
        do throws(QueueFull) {
            try pool.submit(for: read.ticket.container) { [self] isActive in
                guard isActive else { return read.completion(.failure(.unavailable("the node is stopping"))) }
                do throws(DirectoryBehind) {
                    read.completion(
                        try read.answer(settings.tracer) { error in
                            eventLoop.execute { self.damaged(read.group, error, .reading) }
                        })
                } catch {
                    if let hasLearned { return read.completion(.success(hasLearned ? error.answer : error.refusal)) }
                    eventLoop.execute { [self] in catchUp { [self] in perform(read, hasLearned: $0) } }
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
        eventLoop.preconditionInEventLoop()
        let answer: @Sendable () -> Void = { [self] in self.answer(request, of: group, completion: completion) }
        guard !isStopping, let replica = replicas[group], replica.raft.role == .leader else { return answer() }
        replica.reads.append(
            Replica.Read(needsState: false, run: answer, fail: { completion(.failure($0)) }))
        scheduleFlush(of: group)
    }

    private func answer(_ request: [UInt8], of group: GroupID, completion: @escaping Completion) {
        guard !isStopping, let replica = replicas[group], replica.raft.role == .leader else {
            return completion(.failure(.notLeader(hint: replicas[group]?.raft.leader)))
        }
        guard let services = services.current else {
            return completion(.failure(.unavailable("node \(settings.nodeID) is starting")))
        }
        let leadership = Leadership(
            group: group, term: replica.raft.term, since: replica.leadingSince, now: now)
        services.confer(request, as: leadership) { completion(.success($0)) }
    }

    func scheduleFlush(of group: GroupID) {
        turn.dirty.append(group)
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        eventLoop.execute { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    /// Hands what waits to the cores: all commands of a group that came in meanwhile become one append.
    private func flush() {
        clockWatch.review(self)
        let dirty = Set(turn.dirty).sorted()
        turn.dirty = []
        for group in dirty {
            guard let replica = replicas[group] else { continue }
            flushProposals(of: replica)
            flushReads(of: replica)
        }
        finishTurn()
    }

    private func flushProposals(of replica: Replica) {
        let now = now
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
                        steps: settings.tracer?.steps(of: waiting, at: position.index, in: replica)))
            }
            for excess in proposals.dropFirst(proposal.count) { excess.completion(.failure(.overloaded)) }
            perform(effects, of: replica)
        } catch {
            for proposal in proposals { proposal.completion(.failure(ReplicaError(error))) }
        }
    }

    private func flushReads(of replica: Replica) {
        guard !replica.reads.isEmpty else { return }
        perform(replica.raft.read(replica.takeReads(), now: now), of: replica)
    }

    private func tick() {
        let now = now
        clockWatch.review(self)
        submitRefused()
        regainSpace(now: now)
        guard !trust.isHeld else { return expireCalls(now: now) }
        for group in groups {
            guard let replica = replicas[group] else { continue }
            if replica.wakeAt <= now { perform(replica.raft.tick(now: now), of: replica) }
            handOver(replica, isForced: false)
            if !replica.proposals.isEmpty, replica.transferUntil <= now { scheduleFlush(of: group) }
            if replica.applyFailure != nil, replica.nextApply <= now, replica.applier.reschedule() {
                schedule(replica)
            }
        }
        expireCalls(now: now)
        maintain(now: now)
        scrub(now: now)
        reviewBuilds(now: now)
        rebalance(now: now)
        reconcile(now: now)
        finishTurn()
    }

    /// Transfers leadership to the preferred node, one group per interval; immediately if this node is unfit to lead.
    private func rebalance(now: MonotonicTime) {
        guard nextRebalance <= now else { return }
        nextRebalance = now.adding(milliseconds: settings.rebalanceDelayMilliseconds / 5)
        for group in groups {
            guard let replica = replicas[group], replica.raft.role == .leader,
                let successor = successor(of: replica, group, now: now)
            else { continue }
            let effects = replica.raft.transferLeadership(to: successor, now: now)
            let isAsked = !effects.sendNow.isEmpty
            if isAsked { replica.transferUntil = now.adding(milliseconds: settings.electionTimeoutMilliseconds) }
            perform(effects, of: replica)
            if isAsked, !isUnfit { return }
        }
    }

    /// Who is to lead next: any other replica if this node cannot do the work, otherwise the preferred one.
    private func successor(of replica: Replica, _ group: GroupID, now: MonotonicTime) -> ReplicaID? {
        let others = replica.raft.configuration.voters.filter {
            $0 != replica.raft.id && !trust.rejects($0.node) && canFollow(replica, $0.node)
                && transport?.isConnected($0.node, channel: .raft) == true
        }
        func hasLed(delays: UInt64) -> Bool {
            replica.leadingSince.adding(milliseconds: delays * settings.rebalanceDelayMilliseconds) <= now
        }
        // The node that transferred leadership away had a reason, which may last; where all disks are full, leadership
        // must not go round in circles.
        let mayReturn = replica.leadershipSender == nil || hasLed(delays: 12)
        let isUnable = replica.applyFailure != nil || replica.damage != nil || space.isShort && submissions.isStalled
        if isUnable || isUnfit && mayReturn {
            // Any: the first one may be no better.
            return others.isEmpty ? nil : others[Int(platform.random() % UInt64(others.count))]
        }
        guard hasLed(delays: 1), mayReturn || replica.leadershipSender != preferredLeaders[group] else { return nil }
        return others.first { $0.node == preferredLeaders[group] }
    }

    /// Has a waiting caller answered by its deadline, whatever becomes of the request. Deadlines come in nearly in
    /// order.
    func expire(_ call: PendingCall, at deadline: MonotonicTime) {
        eventLoop.preconditionInEventLoop()
        pendingCalls.append((deadline, call))
    }

    private func expireCalls(now: MonotonicTime) {
        while let (deadline, call) = pendingCalls.first, deadline <= now {
            pendingCalls.removeFirst()
            call.resume(.failure(call.overdue))
        }
    }

    /// What the replicas of this node are at.
    package func status() -> [ReplicaStatus] {
        eventLoop.preconditionInEventLoop()
        return groups.compactMap { group in
            replicas[group].map { replica in
                ReplicaStatus(
                    group: group, id: replica.raft.id, role: replica.raft.role, term: replica.raft.term,
                    leader: replica.raft.leader,
                    commitIndex: replica.raft.commitIndex, appliedIndex: replica.applied, lastLog: replica.raft.lastLog,
                    applyFailure: replica.applyFailure ?? replica.damage.map { "its data are damaged: \($0.error)" }
                        ?? replica.refusedAppend, level: replica.applier.level,
                    awaitedLevel: awaitedLevel(of: group, replica),
                    isVoter: replica.raft.configuration.isVoter(replica.raft.id),
                    waitingEffects: replica.applier.machine.waitingEffects,
                    waitingMatches: replica.applier.machine.waitingMatches, elections: replica.elections)
            }
        }
    }

    /// Answers everything that waits with "outcome unknown" and takes nothing more. Nothing expires from here on.
    func stop() {
        eventLoop.preconditionInEventLoop()
        isStopping = true
        for group in groups {
            replicas[group]?.fail(.outcomeUnknown("the node is stopping"))
        }
        for (_, call) in pendingCalls { call.resume(.failure(.outcomeUnknown("the node is stopping"))) }
        pendingCalls = []
    }
}
