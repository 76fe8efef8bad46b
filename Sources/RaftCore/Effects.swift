/// What the shell must do after an event, in the order the fields allow.
///
/// 1. Persist `hardState` and `append` together, then call `Raft.persisted`. Persists may overlap but must become
///    durable in the order of the events.
/// 2. Send `sendNow` whenever it likes; send `sendAfterPersist` only when the persist of *these* effects is durable.
/// 3. The rest in any order. Every `loads` is answered by `Raft.loaded`, every `snapshots` by `Raft.snapshotSent`.
public struct Effects: Hashable, Sendable {
    /// To persist together with, and not after, `append`.
    public var hardState: HardState?
    /// To persist. The entries have no gap; the first replaces everything in the log at and above its index.
    public var append: [Entry] = []
    /// May go out before the persist.
    public var sendNow: [Message] = []
    /// May go out only when `hardState` and `append` of these effects are durable; then one of them
    /// is there.
    public var sendAfterPersist: [Message] = []
    /// Entries up to here may be applied: they are committed, and durable on this replica, so that the state machine
    /// never gets ahead of the log on disk. Nil if unchanged.
    public var commitIndex: LogIndex?
    /// Reads that may run when their index is applied.
    public var reads: [ReadReady] = []
    /// Reads that will get no index.
    public var failedReads: [FailedRead] = []
    /// Entries to read from the log on disk and hand to `Raft.loaded`.
    public var loads: [LoadRequest] = []
    /// Followers to send a snapshot of the state machine, mark included; then call `Raft.snapshotSent`.
    public var snapshots: [ReplicaID] = []
    /// Replace the state machine by the received snapshot and the whole log by its mark, durably and after all earlier
    /// persists; apply nothing meanwhile; then call `Raft.snapshotInstalled`.
    public var install: SnapshotMark?
    /// Set if role, term or leader changed.
    public var roleChange: RoleChange?
    /// When to call `Raft.tick` at the latest, unless later effects say otherwise.
    public var wakeAt: MonotonicTime = .zero

    /// Effects that ask for nothing.
    public init() {}
}

/// What the event under way asks of the shell, and the term and vote that its messages bind this replica to.
struct Outbox: Hashable, Sendable {
    private let sender: ReplicaID
    private(set) var hardState: HardState
    private var durableHardState: HardState
    private var emittedHardState: HardState
    private var reportedRole: RoleChange
    /// What was asked for so far. Messages that this replica sends are put there by the functions below.
    var effects = Effects()

    init(sender: ReplicaID, _ restored: HardState) {
        self.sender = sender
        hardState = restored
        durableHardState = restored
        emittedHardState = restored
        reportedRole = RoleChange(role: .follower, term: restored.term, leader: nil)
    }

    /// Whether the term and the vote survive a crash.
    var isHardStateDurable: Bool { hardState == durableHardState }

    /// Enters a later term.
    mutating func enter(_ term: Term, vote: ReplicaID?) {
        precondition(term > hardState.term, "back from term \(hardState.term) to \(term)")
        hardState = HardState(term: term, vote: vote)
    }

    /// Votes in this term.
    mutating func vote(for candidate: ReplicaID) { hardState.vote = candidate }

    /// Notes what is durable.
    mutating func persisted(_ persisted: HardState) {
        let term = hardState.term
        precondition(persisted.term <= term, "persisted term \(persisted.term) in term \(term)")
        precondition(
            persisted.term >= durableHardState.term, "persisted term \(persisted.term) after \(durableHardState.term)")
        durableHardState = persisted
    }

    /// Sends a message that binds this replica only as far as its term and vote do.
    ///
    /// An answer given in a term that a crash could make this replica forget would be a promise forgotten, so it
    /// waits until the term is durable.
    mutating func send(_ body: Message.Body, to receiver: ReplicaID) {
        if hardState == durableHardState {
            sendNow(body, term: hardState.term, to: receiver)
        } else {
            sendAfterPersist(body, to: receiver)
        }
    }

    /// Sends a message that binds this replica to nothing.
    mutating func sendNow(_ body: Message.Body, term: Term, to receiver: ReplicaID) {
        precondition(receiver != sender, "replica \(sender) sends to itself")
        effects.sendNow.append(Message(from: sender, to: receiver, term: term, body: body))
    }

    /// Sends a message that binds this replica to what the event appends.
    mutating func sendAfterPersist(_ body: Message.Body, to receiver: ReplicaID) {
        precondition(receiver != sender, "replica \(sender) sends to itself")
        effects.sendAfterPersist.append(Message(from: sender, to: receiver, term: hardState.term, body: body))
    }

    /// Ends the event: says what it changed and takes its effects.
    mutating func take(_ current: RoleChange, wakeAt: MonotonicTime) -> Effects {
        let mustPersist = !effects.append.isEmpty || !effects.sendAfterPersist.isEmpty || hardState != emittedHardState
        if hardState != durableHardState && mustPersist {
            effects.hardState = hardState
            emittedHardState = hardState
        }
        precondition(
            effects.sendAfterPersist.isEmpty || effects.hardState != nil || !effects.append.isEmpty,
            "\(effects.sendAfterPersist.count) messages wait for a persist that is not asked for")
        if current != reportedRole {
            effects.roleChange = current
            reportedRole = current
        }
        effects.wakeAt = wakeAt
        defer { effects = Effects() }
        return effects
    }
}

/// What a replica is doing (dissertation figure 3.3; section 9.6 for the pre-candidate).
public enum Role: Hashable, Sendable {
    case follower, preCandidate, candidate, leader
}

/// A replica's part in its group from now on.
public struct RoleChange: Hashable, Sendable {
    /// What the replica is doing now.
    public var role: Role
    /// The replica's current term.
    public var term: Term
    /// Nil while unknown.
    public var leader: ReplicaID?
}

/// A read that is linearizable once `index` is applied (dissertation section 6.4).
public struct ReadReady: Hashable, Sendable {
    /// The id that was passed to `Raft.read`.
    public var id: UInt64
    /// The read may run once the state machine has applied this entry.
    public var index: LogIndex
}

/// A read that this replica cannot give an index. A retry helps: at `leader` if there is one, else later.
public struct FailedRead: Hashable, Sendable {
    /// The id that was passed to `Raft.read`.
    public var id: UInt64
    /// Who may know better; nil while no leader is known.
    public var leader: ReplicaID?
    /// Why the read failed.
    public var reason: Reason

    /// Why a read got no index.
    public enum Reason: Hashable, Sendable {
        /// This replica does not lead, or ceased to lead while the read waited.
        case notLeader
        /// `RaftSettings.pendingReadsMax` reads wait already.
        case overloaded
    }
}

/// Entries that a follower needs and that are in the leader's log on disk only.
public struct LoadRequest: Hashable, Sendable {
    /// The follower that needs the entries.
    public var follower: ReplicaID
    /// The first entry to load.
    public var from: LogIndex
    /// The last entry of interest. Fewer may be loaded, but at least one unless `from` is compacted away.
    public var through: LogIndex
    /// Load no more than this, except that one entry is always loaded.
    public var bytesMax: Int
    /// The leader's term: a later term makes the answer void.
    public var term: Term
}

/// Entries that a leader has appended. They are committed if and when the entry at each index, with this term, is.
public struct Proposal: Hashable, Sendable {
    /// The first command's position; the others follow without a gap, all with this term.
    public var first: LogPosition
    /// How many of the proposed commands, from the first on.
    public var count: Int
}

/// Why a proposal was refused. Nothing was appended, so proposing again is safe.
public enum ProposalError: Error, Hashable, Sendable {
    /// This replica does not lead, or is handing over to `hint`. A retry helps, at `hint` if there is one.
    case notLeader(hint: ReplicaID?)
    /// Too much is proposed and not yet committed. A retry helps later.
    case overloaded(uncommittedBytes: Int, uncommittedBytesMax: Int)
}
