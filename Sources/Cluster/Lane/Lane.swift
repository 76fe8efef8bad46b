import DequeModule
import Logging
import NIOCore
import PeerTransport
package import RaftCore
import Storage

/// Runs the Raft replicas of a node on one event loop, the one that also carries the peer connections, so that a message, the
/// decision it brings about and the answer need no hop between threads.
///
/// Each entry point ends in `finishTurn`, which puts what all replicas wrote in the turn into one submission to the log. Disk and
/// SQLite work happens on other threads, which come back with `eventLoop.execute`.
package final class Lane: @unchecked Sendable {
    // Everything mutable is touched on `eventLoop` only, which every entry point checks: that is what makes the class safe to
    // share.
    let eventLoop: any EventLoop
    let log: RaftLog
    let logger: Logger
    let settings: NodeSettings
    let leaders: LeaderTable
    let blockingPool: BlockingPool
    var transport: PeerTransport?
    var knownPeers: KnownPeers?
    /// Nodes whose data folder is not the one this node knows: nothing of theirs counts.
    var rejectedPeers: Set<NodeID> = []
    /// The node that should lead each group when it can.
    var preferredLeaders: [GroupID: NodeID] = [:]
    var nextRebalance = MonotonicTime.zero
    var replicas: [GroupID: Replica] = [:]
    /// Keys of `replicas`, sorted: the order of every walk over them.
    var groups: [GroupID] = []
    var turn = Turn()
    /// Submissions that found the disk full, in order.
    var stalled: [Submission] = []
    var submissionsUnderway = 0
    var isFlushScheduled = false
    var isStopping = false
    /// What the node does when its log fails: it must not go on.
    var onFatalError: @Sendable (String) -> Void = { _ in }

    /// What one turn of the lane has to write, and what waits for it to be durable.
    struct Turn {
        var writes: [LogWrite] = []
        var waiting: [Persist] = []
        /// Groups with proposals or reads to hand to their cores.
        var dirty: [GroupID] = []
    }

    /// What goes to the log in one piece, and what waits for it.
    struct Submission: Sendable {
        var writes: [LogWrite]
        var waiting: [Persist]
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
        eventLoop: any EventLoop, log: RaftLog, settings: NodeSettings, leaders: LeaderTable,
        blockingPool: BlockingPool,
        logger: Logger
    ) {
        self.eventLoop = eventLoop
        self.log = log
        self.settings = settings
        self.leaders = leaders
        self.blockingPool = blockingPool
        self.logger = logger
    }

    /// The node's clock for elections and heartbeats; it counts suspension.
    var now: MonotonicTime { .current }

    /// Adds a replica before the lane starts.
    func add(_ replica: Replica, for group: GroupID, preferredLeader: NodeID) {
        replicas[group] = replica
        preferredLeaders[group] = preferredLeader
        groups = replicas.keys.sorted()
    }

    /// Starts the timers.
    func start() {
        eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(10)) { [weak self] task in
            guard let self, !self.isStopping else { return task.cancel() }
            self.tick()
        }
    }

    /// Proposes a command. The completion is called with its outcome once it is applied here, or with why it was not.
    /// - Parameter until: when the caller is told that the outcome is unknown.
    package func propose(
        _ command: [UInt8], to group: GroupID, until: MonotonicTime, completion: @escaping Completion
    ) {
        eventLoop.preconditionInEventLoop()
        guard !isStopping, replicas[group] != nil else { return completion(.failure(.notLeader(hint: nil))) }
        replicas[group]?.proposals.append(Replica.Proposal(command: command, until: until, completion: completion))
        scheduleFlush(of: group)
    }

    /// Answers a read from the state as it is once everything acknowledged before this call is applied here, if this node leads
    /// the group. It runs on a reader connection and never waits for writes.
    package func read(
        _ request: [UInt8], from group: GroupID, until: MonotonicTime, completion: @escaping Completion
    ) {
        eventLoop.preconditionInEventLoop()
        guard !isStopping, let applier = replicas[group]?.applier else {
            return completion(.failure(.notLeader(hint: nil)))
        }
        let run: @Sendable () -> Void = { [blockingPool] in
            blockingPool.run {
                do {
                    completion(.success(try applier.database.read { try applier.machine.read(request, in: $0) }))
                } catch {
                    completion(.failure(.failed("reading failed: \(error)")))
                }
            }
        }
        replicas[group]?.reads.append(Replica.Read(until: until, run: run, fail: { completion(.failure($0)) }))
        scheduleFlush(of: group)
    }

    private func scheduleFlush(of group: GroupID) {
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
        let dirty = Set(turn.dirty).sorted()
        turn.dirty = []
        for group in dirty {
            flushProposals(of: group)
            flushReads(of: group)
        }
        finishTurn()
    }

    private func flushProposals(of group: GroupID) {
        guard let proposals = replicas[group]?.proposals, !proposals.isEmpty else { return }
        replicas[group]?.proposals = []
        if let failure = replicas[group]?.applyFailure {
            for proposal in proposals { proposal.completion(.failure(.failed("the leader cannot apply: \(failure)"))) }
            return
        }
        guard stalled.isEmpty else {
            for proposal in proposals { proposal.completion(.failure(.diskFull)) }
            return
        }
        let commands = proposals.map(\.command)
        let now = now
        do throws(ProposalError) {
            guard let (proposal, effects) = try replicas[group]?.raft.propose(commands, now: now) else { return }
            for (offset, waiting) in proposals.enumerated() {
                let position = LogPosition(
                    index: LogIndex(proposal.first.index.rawValue + UInt64(offset)), term: proposal.first.term)
                replicas[group]?.inFlight.append(
                    Replica.InFlight(position: position, until: waiting.until, completion: waiting.completion))
            }
            perform(effects, of: group)
        } catch {
            for proposal in proposals { proposal.completion(.failure(ReplicaError(error))) }
        }
    }

    private func flushReads(of group: GroupID) {
        guard let reads = replicas[group]?.reads, !reads.isEmpty, let id = replicas[group]?.nextReadID else { return }
        replicas[group]?.reads = []
        replicas[group]?.nextReadID = id + 1
        replicas[group]?.readBatches[id] = Replica.ReadBatch(reads: reads)
        if let effects = replicas[group]?.raft.read(id, now: now) { perform(effects, of: group) }
    }

    private func tick() {
        let now = now
        retryStalled()
        for group in groups {
            guard let replica = replicas[group] else { continue }
            if replica.wakeAt <= now, let effects = replicas[group]?.raft.tick(now: now) { perform(effects, of: group) }
            handOver(group, isForced: false)
            expire(group, now: now)
            if replica.applyFailure != nil, replica.applier.reschedule() { replica.worker.schedule(replica.applier) }
        }
        rebalance(now: now)
        finishTurn()
    }

    /// Hands at most one group in a while back to the node that should lead it, once that node has everything.
    private func rebalance(now: MonotonicTime) {
        guard nextRebalance <= now else { return }
        nextRebalance = now.adding(milliseconds: settings.rebalanceDelayMilliseconds / 5)
        for group in groups {
            guard let replica = replicas[group], replica.raft.role == .leader,
                replica.leadingSince.adding(milliseconds: settings.rebalanceDelayMilliseconds) <= now
            else { continue }
            let preferred = ReplicaID(node: preferredLeaders[group] ?? settings.nodeID)
            guard preferred != replica.raft.id, transport?.isConnected(preferred.node, channel: .raft) == true,
                !rejectedPeers.contains(preferred.node)
            else { continue }
            let effects = replica.raft.transferLeadership(to: preferred, now: now)
            let isAsked = !effects.sendNow.isEmpty
            perform(effects, of: group)
            if isAsked { return }
        }
    }

    /// Answers what has waited too long: its caller must not.
    private func expire(_ group: GroupID, now: MonotonicTime) {
        while let inFlight = replicas[group]?.inFlight.first, inFlight.until <= now {
            replicas[group]?.inFlight.removeFirst()
            inFlight.completion(.failure(.outcomeUnknown("no majority of group \(group) acknowledged it in time")))
        }
        for (id, batch) in replicas[group]?.readBatches ?? [:] where batch.reads.contains(where: { $0.until <= now }) {
            for read in batch.reads where read.until <= now { read.fail(.notLeader(hint: nil)) }
            replicas[group]?.readBatches[id]?.reads.removeAll { $0.until <= now }
        }
        while let read = replicas[group]?.confirmedReads.first?.read, read.until <= now {
            replicas[group]?.confirmedReads.removeFirst()
            read.fail(.failed("the node could not apply in time what was committed"))
        }
    }

    /// What the replicas of this node are at.
    package func status() -> [ReplicaStatus] {
        eventLoop.preconditionInEventLoop()
        return groups.compactMap { group in
            replicas[group].map { replica in
                ReplicaStatus(
                    group: group, role: replica.raft.role, term: replica.raft.term, leader: replica.raft.leader,
                    commitIndex: replica.raft.commitIndex, appliedIndex: replica.applied, lastLog: replica.raft.lastLog,
                    applyFailure: replica.applyFailure)
            }
        }
    }

    /// Answers everything that waits with "outcome unknown" and takes nothing more.
    func stop() {
        eventLoop.preconditionInEventLoop()
        isStopping = true
        for group in groups {
            guard let replica = replicas[group] else { continue }
            let stopping = ReplicaError.outcomeUnknown("the node is stopping")
            for proposal in replica.proposals { proposal.completion(.failure(.notLeader(hint: nil))) }
            for inFlight in replica.inFlight { inFlight.completion(.failure(stopping)) }
            let batches = replica.readBatches.values.flatMap(\.reads)
            for read in replica.reads + batches + replica.confirmedReads.map(\.read) { read.fail(stopping) }
            replica.proposals = []
            replica.inFlight = []
            replica.reads = []
            replica.readBatches = [:]
            replica.confirmedReads = []
        }
    }
}
