/// What a replica must not forget between two starts, besides its log (dissertation figure 3.1).
public struct HardState: Hashable, Sendable {
    /// The latest term seen.
    public var term: Term
    /// Whom this replica voted for in `term`, if it did.
    public var vote: ReplicaID?

    /// Creates a hard state; the default is that of a new replica.
    public init(term: Term = .zero, vote: ReplicaID? = nil) {
        self.term = term
        self.vote = vote
    }
}

/// Where a snapshot stands: it holds the effect of every entry up to `position`, and this was the configuration then.
public struct SnapshotMark: Hashable, Sendable {
    /// The last entry whose effect the snapshot holds.
    public var position: LogPosition
    /// The configuration in force at `position`.
    public var configuration: Configuration

    /// Creates a mark from its parts.
    public init(position: LogPosition, configuration: Configuration) {
        self.position = position
        self.configuration = configuration
    }
}

/// What a replica finds on disk when it starts.
public struct RestoredState: Hashable, Sendable {
    /// Term and vote as last persisted.
    public var hardState: HardState
    /// Everything up to here is in the state machine and no longer in the log. For a new group: `LogPosition.zero`
    /// and the first configuration.
    public var snapshot: SnapshotMark
    /// The last entry of the log; `snapshot.position` without entries.
    public var lastLog: LogPosition
    /// The first position of each run of equal terms in the log after the snapshot, oldest first.
    public var terms: [LogPosition]
    /// The configuration entries in the log after the snapshot, oldest first. All of them: which are committed is not
    /// known after a start, so any may still be rolled back.
    public var configurations: [ConfigurationAt]
    /// The state machine's applied index: it and all before are known to be committed.
    public var applied: LogIndex
    /// The last entries of the log, without a gap and ending at `lastLog`, to have them in memory. May be empty.
    public var tail: [Entry]

    /// Creates the state of a replica from what its disk holds, with no entries in memory.
    public init(
        hardState: HardState, snapshot: SnapshotMark, lastLog: LogPosition, terms: [LogPosition],
        configurations: [ConfigurationAt]
    ) {
        self.hardState = hardState
        self.snapshot = snapshot
        self.lastLog = lastLog
        self.terms = terms
        self.configurations = configurations
        applied = snapshot.position.index
        tail = []
    }

    /// The state of a replica whose log holds exactly `entries`, which follow the snapshot without a gap.
    public init(hardState: HardState, snapshot: SnapshotMark, entries: [Entry] = []) {
        var runs: [LogPosition] = []
        var configurations: [ConfigurationAt] = []
        for entry in entries {
            if runs.last?.term != entry.term { runs.append(entry.position) }
            if case .configuration(let configuration) = entry.payload {
                configurations.append(ConfigurationAt(index: entry.index, configuration: configuration))
            }
        }
        self.init(
            hardState: hardState, snapshot: snapshot, lastLog: entries.last?.position ?? snapshot.position, terms: runs,
            configurations: configurations)
        tail = entries
    }

    /// A replica of a new group: nothing but its first members.
    public init(bootstrap configuration: Configuration) {
        self.init(hardState: HardState(), snapshot: SnapshotMark(position: .zero, configuration: configuration))
    }
}

/// A configuration and the index of the entry that brought it.
public struct ConfigurationAt: Hashable, Sendable {
    /// The index of the entry; for a snapshot's configuration, that of the snapshot.
    public var index: LogIndex
    /// The configuration.
    public var configuration: Configuration

    /// Creates a pair from its parts.
    public init(index: LogIndex, configuration: Configuration) {
        self.index = index
        self.configuration = configuration
    }
}

/// A replica's state for display. Nothing may be decided by it: it is old when it is read.
public struct RaftStatus: Hashable, Sendable {
    /// This replica.
    public var id: ReplicaID
    /// What the replica is doing.
    public var role: Role
    /// The latest term seen.
    public var term: Term
    /// The leader of this term, if known.
    public var leader: ReplicaID?
    /// Everything up to here is compacted away.
    public var snapshot: LogPosition
    /// The last entry of the log, durable or not.
    public var lastLog: LogPosition
    /// Everything up to here is on this replica's disk.
    public var durableIndex: LogIndex
    /// Everything up to here is committed.
    public var commitIndex: LogIndex
    /// Everything up to here is in the state machine.
    public var appliedIndex: LogIndex
    /// Bytes of entries in a leader's memory that are not committed.
    public var uncommittedBytes: Int
    /// Reads that wait for their index.
    public var pendingReads: Int
    /// The configuration in force, and whether it is known to be committed.
    public var configuration: Configuration
    /// Whether the configuration in force is known to be committed.
    public var isConfigurationCommitted: Bool
    /// Until when reads need no round of heartbeats; nil without a lease.
    public var leaseEnd: MonotonicTime?
    /// The others of the group, sorted by id; empty unless this replica leads.
    public var followers: [Follower]

    /// What a leader knows of another replica.
    public struct Follower: Hashable, Sendable {
        /// The follower.
        public var id: ReplicaID
        /// How the leader feeds it.
        public var state: FollowerState
        /// It has durably everything up to here.
        public var match: LogIndex
        /// What it is sent next.
        public var next: LogIndex
        /// Appends sent and not yet answered.
        public var inflightAppends: Int
        /// Bytes of the entries in those appends.
        public var inflightBytes: Int
        /// When it last answered.
        public var lastHeard: MonotonicTime
        /// Whether it keeps up, so that it may become a voter or take over.
        public var isCaughtUp: Bool
    }
}

/// What a leader said is committed. The leader had that much on its own disk, so a replica that heard it can recognize
/// an old image of the leader's log.
public struct LeaderCommit: Hashable, Sendable {
    /// The leader that said so.
    public var leader: ReplicaID
    /// The leader's term.
    public var term: Term
    /// Everything up to here was committed then.
    public var index: LogIndex
}

/// How a leader feeds a follower.
public enum FollowerState: Hashable, Sendable {
    /// Where the logs agree is not known: one append at a time.
    case probe
    /// The logs agree: appends are pipelined.
    case replicate
    /// The log no longer holds what the follower needs: a snapshot is on its way.
    case snapshot
}

extension Raft {
    /// The replica's state for display.
    public var status: RaftStatus {
        RaftStatus(
            id: id, role: role, term: term, leader: leader, snapshot: snapshotPosition, lastLog: lastLog,
            durableIndex: replica.log.durable, commitIndex: commitIndex, appliedIndex: replica.log.applied,
            uncommittedBytes: leadership?.uncommittedBytes ?? 0, pendingReads: leadership?.reads.count ?? 0,
            configuration: configuration, isConfigurationCommitted: isConfigurationCommitted,
            leaseEnd: leadership?.leaseEnd(in: replica),
            followers: (leadership?.followers ?? []).map {
                RaftStatus.Follower(
                    id: $0.id, state: $0.state, match: $0.match, next: $0.next, inflightAppends: $0.inflights.count,
                    inflightBytes: $0.inflights.bytes, lastHeard: $0.lastHeard, isCaughtUp: $0.isCaughtUp(with: replica)
                )
            })
    }
}
