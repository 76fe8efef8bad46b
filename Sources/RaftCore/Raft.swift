/// One replica of one Raft group, as a value: events in, effects out.
///
/// It follows Ongaro's dissertation "Consensus: bridging theory and practice" (2014), with leadership transfer (section
/// 3.10), learners and joint configurations (4.2, 4.3), check-quorum (6.2), ReadIndex and leases (6.4), pre-vote (9.6)
/// and pipelined appends (10.2.1). Each mutating method is an event and returns what the shell has to do; `now` is
/// passed in and must not go back (if it does, it counts as standing still). The same events always give the same
/// effects.
///
/// Where it differs from the dissertation: a replica grants no vote for one maximum election timeout after its start,
/// because it cannot know whom it promised to keep quiet; entries are applied only when they are durable on this
/// replica too; members change by joint configurations only, also where one server would do (see `DESIGN.md`).
///
/// A violated precondition means corruption or a shell that broke the contract: the replica must not go on.
public struct Raft: Hashable, Sendable {
    /// This replica.
    public let id: ReplicaID
    public let settings: RaftSettings
    public internal(set) var role = Role.follower
    /// The leader of this term; nil while none is known.
    public internal(set) var leader: ReplicaID?
    /// Everything up to here is committed. `Effects.commitIndex` may lag behind it until this replica's log is durable.
    public internal(set) var commitIndex: LogIndex
    /// The furthest that the last leader heard said is committed; not kept over a restart.
    public internal(set) var leaderCommit: LeaderCommit?

    // Fields are internal because the handlers live in files of their own; nothing outside of this module can touch
    // them.

    var log: RaftLog
    /// The snapshot's configuration and those of the log, oldest first; the last is in force.
    var configurations: [ConfigurationAt]
    var hardState: HardState
    var durableHardState: HardState
    var emittedHardState: HardState
    /// What the state machine has.
    var appliedIndex: LogIndex
    /// What the shell was told that it may apply.
    var reportedCommit: LogIndex
    /// A snapshot that the shell is installing. Until it is done the replica neither appends nor campaigns nor applies.
    var pendingInstall: SnapshotMark?
    /// A match that was not durable when the leader of this term asked, and that no later effects would tell it of.
    var owedMatch: LogPosition?

    var now: MonotonicTime
    var generator: SplitMix64
    var electionDeadline: MonotonicTime
    var lastLeaderContact: MonotonicTime?
    /// The leader whose connection broke, until it is heard over a new one.
    var lostLeader: LostLeader?
    /// Before this time no vote is granted.
    var votesFrom: MonotonicTime
    /// Answers of the election under way, in the order in which they came.
    var ballots: [Ballot] = []
    var isTransferElection = false

    // Only while leading:
    var followers: [Progress] = []
    var heartbeatDeadline = MonotonicTime.zero
    var round: UInt64 = 0
    var reads = PendingReads()
    /// Bytes of the entries in memory that are not committed.
    var uncommittedBytes = 0
    /// The rounds of heartbeats whose answers may still prolong the lease.
    var rounds = HeartbeatRounds()
    var transfer: Transfer?
    /// Replicas that the change under way removes. They are told when it is committed.
    var leaving: [ReplicaID] = []
    /// Whether another replica was asked to take over in this term. It may do so at any time from then on, and voters
    /// will not wait out this leader, so there is no lease until the next term.
    var isLeaseGivenUp = false

    var output = Effects()
    var reportedRole: RoleChange

    struct Ballot: Hashable, Sendable {
        var voter: ReplicaID
        var granted: Bool
    }

    /// A replica as it was on disk. Call `tick` next, which says when to wake up.
    /// - Precondition: `restored` is consistent; see `RestoredState`.
    public init(id: ReplicaID, settings: RaftSettings, seed: UInt64, restored: RestoredState, now: MonotonicTime) {
        settings.check()
        self.id = id
        self.settings = settings
        log = RaftLog(restored)
        hardState = restored.hardState
        durableHardState = restored.hardState
        emittedHardState = restored.hardState
        precondition(hardState.term >= log.last.term, "term \(hardState.term), but the log ends at \(log.last)")
        precondition(
            restored.applied >= log.snapshot.index && restored.applied <= log.last.index,
            "applied to \(restored.applied), but the log is \(log.snapshot)...\(log.last)")
        commitIndex = restored.applied
        appliedIndex = restored.applied
        reportedCommit = restored.applied
        configurations = [
            ConfigurationAt(index: log.snapshot.index, configuration: restored.snapshot.configuration)
        ]
        for next in restored.configurations {
            precondition(next.index > configurations[configurations.count - 1].index, "configurations out of order")
            precondition(next.index <= log.last.index, "a configuration at \(next.index) after the end \(log.last)")
            configurations.append(next)
        }
        self.now = now
        generator = SplitMix64(seed: seed)
        electionDeadline = now
        votesFrom = now
        reportedRole = RoleChange(role: .follower, term: restored.hardState.term, leader: nil)
        let isNew = log.last == .zero && hardState == HardState()
        if !isNew && !isOnlyVoter { votesFrom = now.adding(milliseconds: 2 * settings.electionTimeoutMilliseconds) }
        // Nobody else can lead a group of one, so there is nothing to wait for.
        if !isOnlyVoter { resetElectionTimer() }
    }

    public var term: Term { hardState.term }
    /// The last entry of the log, durable or not.
    public var lastLog: LogPosition { log.last }
    /// Everything up to here is compacted away.
    public var snapshotPosition: LogPosition { log.snapshot }
    /// The configuration in force: the latest in the log, committed or not (dissertation section 4.1).
    public var configuration: Configuration {
        precondition(!configurations.isEmpty, "no configuration")
        return configurations[configurations.count - 1].configuration
    }

    /// Whether the configuration in force is known to be committed. While it is not, or is joint, members are changing.
    public var isConfigurationCommitted: Bool {
        precondition(!configurations.isEmpty, "no configuration")
        return configurations[configurations.count - 1].index <= commitIndex
    }

    /// Entries from memory: at least one if there is one, and no more than `bytesMax` bytes.
    /// - Returns: nil if `from` is no longer in memory; the shell then reads its own log.
    public func entries(from: LogIndex, through: LogIndex, bytesMax: Int) -> [Entry]? {
        log.cached(from: from, through: through, bytesMax: bytesMax)
    }

    /// Whether this replica is all it takes for a majority.
    var isOnlyVoter: Bool { Quorum.isMajority(configuration) { $0 == id } }
}
