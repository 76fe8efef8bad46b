import DequeModule
import PeerTransport
package import RaftCore
package import RecordModel
import Storage
import Synchronization
import Telemetry

/// One group's replica on this node, as its lane sees it.
final class Replica: @unchecked Sendable {
    // Once added to its lane it is touched on the lane's event loop only; that makes it safe to share.
    /// A command that waits for the lane's next turn.
    struct Proposal {
        var command: [UInt8]
        var completion: Completion
        /// The span that it belongs to, where that is recorded.
        var place: TraceContext?
    }

    /// A command that this node appended as leader and that is not committed yet.
    struct InFlight {
        var position: LogPosition
        var completion: Completion
        var steps: CommandSteps?
    }

    /// A read whose index is confirmed and not applied yet.
    struct ConfirmedRead {
        var index: LogIndex
        var read: Read
    }

    /// A read that waits for its index. `run` answers it; `fail` tells why it cannot be.
    struct Read {
        /// Whether it reads what was applied; if not, it waits only until this node is known to lead.
        var needsState = true
        /// What must be applied, whether it was committed when the read came or not.
        var least = LogIndex.zero
        var run: @Sendable () -> Void
        var fail: @Sendable (ReplicaError) -> Void
    }

    var raft: Raft
    let applier: Applier
    var group: GroupID { applier.group }
    let worker: any SerialQueue

    var proposals: [Proposal] = []
    var inFlight: Deque<InFlight> = []
    /// Of those that are recorded, the ones that are not durable here yet, by their indexes.
    var syncing: Deque<(index: LogIndex, span: RecordedSpan)> = []
    var reads: [Read] = []
    /// Reads that share a round of heartbeats, by the id given to the core.
    var readBatches: [UInt64: [Read]] = [:]
    /// By their indexes.
    var confirmedReads: Deque<ConfirmedRead> = []
    var nextReadID: UInt64 = 1

    /// What the log was last given for this replica; durable once everything given is.
    var submitted: Submitted
    /// Committed and durable here through this index, and handed to the applier, and applied.
    var committed: LogIndex
    var handedOver: LogIndex
    var applied: LogIndex
    var lastHandOver: MonotonicTime
    var wakeAt: MonotonicTime
    /// When this node last became the leader.
    var leadingSince = MonotonicTime.zero
    /// How often it stood for election.
    var elections: UInt64 = 0
    /// The node that transferred leadership to this replica although it is not preferred. Nil if it was elected, or
    /// follows.
    var leadershipSender: NodeID?
    /// Until then commands wait, because another replica was asked to take over: a command appended now would keep
    /// it from being elected.
    var transferUntil = MonotonicTime.zero
    /// When the leader may next propose a part of the machine's own work; nil while one is underway.
    var nextMaintenance: MonotonicTime? = .zero
    /// What the leader's way to the members of the map waits for; empty where nothing is to be done.
    var waitsFor = ""
    /// What was found to be damaged of its data.
    var damage: ReplicaDamage?
    /// How far the comparison with the other replicas is.
    var scrub = Scrubber.Progress()
    /// Why an append of its leader is not taken, if one was not.
    var refusedAppend: String?
    /// Why a snapshot is not taken, if the last piece of one was not.
    var refusedSnapshot: String?
    /// Why applying stands still, if it does.
    var applyFailure: String?
    /// The entry that this build cannot apply, if it stands before one.
    var tooOld: BuildTooOld?
    /// Whether a higher feature level is being proposed.
    var isRaising = false
    /// When it is tried again.
    var nextApply = MonotonicTime.zero
    /// Followers that a snapshot is being sent to.
    var snapshotsUnderway: [ReplicaID] = []
    /// The file that chunks of a snapshot are collected in.
    var incomingSnapshotPath: String?
    /// Received and waiting to be installed.
    var receivedSnapshot: ReceivedSnapshot?

    func didHandOver(through index: LogIndex, now: MonotonicTime) {
        handedOver = index
        lastHandOver = now
        checkOrder()
    }

    func didApply(through index: LogIndex) {
        precondition(index > applied, "group \(group): applied through \(index), after \(applied)")
        applied = index
        // It goes on with the log.
        refusedSnapshot = nil
        raft.applied(index)
        checkOrder()
    }

    /// What is applied was handed over, and what was handed over is committed. What follows relies on it, so a node
    /// that loses it ends.
    private func checkOrder() {
        precondition(
            applied <= handedOver && handedOver <= committed,
            "group \(group): applied through \(applied), handed over through \(handedOver), committed through \(committed)"
        )
    }

    /// Entries that the applier has and has not applied yet. Beyond a limit no more are handed over: they stay in the
    /// log.
    var backlog: UInt64 { handedOver.rawValue - min(applied, handedOver).rawValue }

    /// Why it must not answer: what it says may be wrong. One without others says what it can, until its damage is met.
    var refusal: ReplicaError? {
        if let tooOld {
            return raft.role == .leader ? .unavailable(tooOld.description) : .notLeader(hint: raft.leader)
        }
        guard let damage, damage.kind == .reading, raft.configuration.voters.count > 1 else { return nil }
        return raft.role == .leader
            ? .unavailable("the data of its leader are damaged, and another node has to lead first")
            : .notLeader(hint: raft.leader)
    }

    /// Why nothing is taken that would have to be applied first; nil where that goes on.
    var standstill: ReplicaError? { applyFailure.map { .unavailable("the leader cannot apply: \($0)") } }

    /// A snapshot whose file is whole. `reply` tells its sender what became of it.
    struct ReceivedSnapshot {
        var mark: SnapshotMark
        var path: String
        var snapshotID: UInt64
        var totalBytes: UInt64
        var reply: @Sendable (NodeReply) -> Void
    }

    /// The end of the log and the hard state, as the log was last given them.
    struct Submitted {
        var position: LogPosition
        var hardState: HardState
    }

    init(raft: Raft, applier: Applier, worker: any SerialQueue, restored: RestoredState, now: MonotonicTime) {
        self.raft = raft
        self.applier = applier
        self.worker = worker
        submitted = Submitted(position: restored.lastLog, hardState: restored.hardState)
        applied = restored.applied
        committed = restored.applied
        handedOver = restored.applied
        lastHandOver = now
        wakeAt = now
    }

    /// Takes note of a new role.
    func changes(to role: Role) {
        if role == .follower { leadershipSender = nil }
        if role != .leader { syncing = [] }
        if role == .candidate { elections += 1 }
    }
}

// Reads, and the commands that wait for their outcomes.
extension Replica {
    /// Hands waiting reads to the core as one.
    /// - Returns: the id that the core is given for them.
    func takeReads() -> UInt64 {
        let id = nextReadID
        nextReadID += 1
        readBatches[id] = reads
        reads = []
        return id
    }

    /// The core knows the index that reads wait for.
    func confirm(_ ready: ReadReady) {
        guard let reads = readBatches.removeValue(forKey: ready.id) else { return }
        for read in reads where read.needsState { confirm(read, at: ready.index) }
        runConfirmedReads()
        for read in reads where !read.needsState { read.run() }
    }

    func fail(_ failed: FailedRead) {
        let error: ReplicaError = failed.reason == .overloaded ? .overloaded : .notLeader(hint: failed.leader)
        for read in readBatches.removeValue(forKey: failed.id) ?? [] { read.fail(error) }
    }

    /// Runs the reads that wait for no more than is applied.
    func runConfirmedReads() {
        while let confirmed = confirmedReads.first, confirmed.index <= applied {
            confirmedReads.removeFirst()
            confirmed.read.run()
        }
    }

    /// A read's index is known. It runs once that is applied, and what it waits for beyond.
    func confirm(_ read: Read, at confirmed: LogIndex) {
        let index = max(confirmed, read.least)
        let place = confirmedReads.lastIndex { $0.index <= index }.map { $0 + 1 } ?? 0
        confirmedReads.insert(ConfirmedRead(index: index, read: read), at: place)
    }

    /// Reads wait for what was tried more than once and cannot be applied: they would wait past their deadlines, and
    /// ever more would come.
    func failConfirmedReads() {
        guard let standstill else { return }
        let waiting = confirmedReads
        confirmedReads = []
        for confirmed in waiting { confirmed.read.fail(standstill) }
    }

    /// Fails the waiting reads.
    func failReads(_ error: ReplicaError) {
        let batches = readBatches.keys.sorted().flatMap { readBatches[$0] ?? [] }
        let waiting = reads + batches + confirmedReads.map(\.read)
        reads = []
        readBatches = [:]
        confirmedReads = []
        for read in waiting { read.fail(error) }
    }

    /// The completions of this node's own commands among committed entries, by position. Those whose place another
    /// leader's entry took are told so.
    func takeCompletions(of entries: [Entry], _ tracer: NodeTracer?) -> [Int: Completion] {
        guard let first = entries.first, let last = entries.last, !inFlight.isEmpty else { return [:] }
        var completions: [Int: Completion] = [:]
        // In order of position within a reign, but a later reign of this node may begin before where an earlier one
        // ended.
        inFlight.removeAll { inFlight in
            guard inFlight.position.index <= last.index else { return false }
            if inFlight.position.index < first.index {
                inFlight.completion(.failure(.outcomeUnknown("the entry was applied unseen")))
                return true
            }
            let offset = Int(inFlight.position.index.rawValue - first.index.rawValue)
            if entries[offset].term == inFlight.position.term {
                completions[offset] = inFlight.applying(tracer)
            } else {
                inFlight.completion(.failure(.superseded))
            }
            return true
        }
        return completions
    }

    /// Entries that left memory before they were applied are read from the log by the applier, which knows no
    /// completions.
    func loseTrack(through index: LogIndex) {
        inFlight.removeAll { inFlight in
            guard inFlight.position.index <= index else { return false }
            inFlight.completion(.failure(.outcomeUnknown("the entry left memory before it was applied")))
            return true
        }
    }

    /// Tells everyone who waits for this replica.
    func fail(_ error: ReplicaError) {
        for proposal in proposals { proposal.completion(.failure(.notLeader(hint: nil))) }
        for inFlight in inFlight { inFlight.completion(.failure(error)) }
        proposals = []
        inFlight = []
        failReads(error)
    }
}

/// What a node tells of one of its replicas.
package struct ReplicaStatus: Sendable {
    /// The group of the directory or of a shard.
    package var group: GroupID
    /// The replica's id, which holds its node and generation.
    package var id: ReplicaID
    /// What the replica is doing in the current term.
    package var role: Role
    /// The latest term that the replica has seen.
    package var term: Term
    /// The leader of that term; nil while it is unknown.
    package var leader: ReplicaID?
    /// Everything up to here is committed, as far as this replica knows.
    package var commitIndex: LogIndex
    /// Everything up to here is in the replica's database, which need not be synced yet.
    package var appliedIndex: LogIndex
    /// The last entry of the replica's log, durable or not.
    package var lastLog: LogPosition
    /// Why the replica cannot apply, is damaged or refused an append, in words; nil if nothing is wrong.
    package var applyFailure: String?
    /// At which the group's commands are applied here.
    package var level: FeatureLevel
    /// Which a new group waits for before it serves clients; nil if it waits for none.
    package var awaitedLevel: FeatureLevel?
    /// Whether its vote counts; a learner may lack most of the state.
    package var isVoter = true
    /// How many effects on other groups wait to be delivered.
    package var waitingEffects = 0
    /// How many changes wait to be matched with subscriptions.
    package var waitingMatches = 0
    /// How often this replica stood for election since the node was started.
    package var elections: UInt64 = 0

    /// Entries that are committed and not applied here yet.
    package var unappliedEntries: UInt64 {
        commitIndex > appliedIndex ? commitIndex.rawValue - appliedIndex.rawValue : 0
    }
}

/// Whether anybody still wants the answer to a read. It goes with the read, which asks before it begins and again while
/// it works.
final class ReadTicket: Sendable {
    /// Whose read it is: containers take turns.
    let container: String
    /// Whether it waits for all that the leader's log holds when it comes, not only for what is committed.
    let isAfterLog: Bool
    /// The span that it belongs to, where that is recorded.
    let place: TraceContext?
    private let deadline: MonotonicTime
    private let now: @Sendable () -> MonotonicTime
    private let isCancelled = Atomic(false)

    init(_ terms: ReadTerms, until deadline: MonotonicTime, now: @escaping @Sendable () -> MonotonicTime) {
        (container, isAfterLog, place) = (terms.container, terms.isAfterLog, terms.origin.place)
        self.deadline = deadline
        self.now = now
    }

    var isWanted: Bool { !isCancelled.load(ordering: .relaxed) && now() < deadline }

    /// The caller has gone away.
    func cancel() { isCancelled.store(true, ordering: .relaxed) }
}

/// A read that may run: everything that was acknowledged before it is applied.
struct ReaderRead: Sendable {
    var request: [UInt8]
    var group: GroupID
    var applier: Applier
    var ticket: ReadTicket
    var completion: Completion

    /// Answers it on a reader connection.
    /// - Parameter onDamage: hears of data that turn out to be damaged.
    /// - Throws: where a record is newer than what this node knows of the directory.
    func answer(
        _ tracer: NodeTracer?, onDamage: (any Error) -> Void
    ) throws(DirectoryBehind) -> Result<[UInt8], ReplicaError> {
        guard ticket.isWanted else { return .failure(.readEnded) }
        let span = tracer?.below(ticket.place, "query")
        defer { span?.finish() }
        do {
            return .success(
                try applier.database.read(while: { ticket.isWanted }) { try applier.machine.read(request, in: $0) })
        } catch ShardDatabaseError.readEnded {
            return .failure(.readEnded)
        } catch ShardDatabaseError.closed {
            // It waited while the replica was given up: who leads the group now answers.
            return .failure(.notLeader(hint: nil))
        } catch let behind as DirectoryBehind {
            throw behind
        } catch {
            if DataDamage.isDamage(error) { onDamage(error) }
            return .failure(.failed("reading failed: \(error)"))
        }
    }
}

/// Why a group did not do what it was asked.
package enum ReplicaError: Error, Hashable, Sendable {
    /// This node does not lead the group; nothing was appended.
    case notLeader(hint: ReplicaID?)
    /// The leader has as much waiting as it may; nothing was appended.
    case overloaded
    /// The leader's disk has no space; nothing was appended.
    case diskFull
    /// The leader cannot do its work at the moment; nothing was appended.
    case unavailable(String)
    /// Another leader's entry took the place of this one, so it will never be applied.
    case superseded
    /// The node is stopping, or lost track: the command may or may not be applied.
    case outcomeUnknown(String)
    /// The read was cancelled, or not done in time.
    case readEnded
    /// The read failed on this node's disk.
    case failed(String)
    /// The request or its answer is larger than nodes take.
    case tooLarge(Oversize)

    init(_ error: ProposalError) {
        switch error {
        case .notLeader(let hint): self = .notLeader(hint: hint)
        case .overloaded: self = .overloaded
        }
    }
}

/// What is called, once, with the encoded outcome of a command or a read.
package typealias Completion = @Sendable (Result<[UInt8], ReplicaError>) -> Void
