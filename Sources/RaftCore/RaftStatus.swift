/// A replica's state for display. Nothing may be decided by it: it is old when it is read.
public struct RaftStatus: Hashable, Sendable {
    public var id: ReplicaID
    public var role: Role
    public var term: Term
    public var leader: ReplicaID?
    public var snapshot: LogPosition
    public var lastLog: LogPosition
    public var durableIndex: LogIndex
    public var commitIndex: LogIndex
    public var appliedIndex: LogIndex
    public var uncommittedBytes: Int
    public var pendingReads: Int
    /// The configuration in force, and whether it is known to be committed.
    public var configuration: Configuration
    public var isConfigurationCommitted: Bool
    /// Until when reads need no round of heartbeats; nil without a lease.
    public var leaseEnd: MonotonicTime?
    /// Who is being asked to take over.
    public var transferTarget: ReplicaID?
    /// The others of the group, sorted by id; empty unless this replica leads.
    public var followers: [Follower]

    /// What a leader knows of another replica.
    public struct Follower: Hashable, Sendable {
        public var id: ReplicaID
        public var state: FollowerState
        /// It has durably everything up to here.
        public var match: LogIndex
        /// What it is sent next.
        public var next: LogIndex
        public var inflightAppends: Int
        public var inflightBytes: Int
        public var lastHeard: MonotonicTime
        /// Whether it keeps up, so that it may become a voter or take over.
        public var isCaughtUp: Bool
    }
}

/// What a leader said is committed. It had that much on its own disk, whoever else has it; so whoever heard it can tell an old copy of the
/// leader's log from the log.
public struct LeaderCommit: Hashable, Sendable {
    public var leader: ReplicaID
    public var term: Term
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
            id: id, role: role, term: term, leader: leader, snapshot: log.snapshot, lastLog: log.last,
            durableIndex: log.durable, commitIndex: commitIndex, appliedIndex: appliedIndex,
            uncommittedBytes: uncommittedBytes, pendingReads: reads.count, configuration: configuration,
            isConfigurationCommitted: isConfigurationCommitted, leaseEnd: leaseEnd, transferTarget: transfer?.target,
            followers: followers.map {
                RaftStatus.Follower(
                    id: $0.id, state: $0.state, match: $0.match, next: $0.next, inflightAppends: $0.inflights.count,
                    inflightBytes: $0.inflights.bytes, lastHeard: $0.lastHeard, isCaughtUp: isCaughtUp($0))
            })
    }
}
