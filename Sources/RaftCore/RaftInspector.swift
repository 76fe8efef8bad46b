/// What a checker may see of a replica beyond what the replica shows to everybody.
package struct RaftInspector {
    private let raft: Raft

    /// - Parameter raft: as it was between two events.
    package init(_ raft: Raft) { self.raft = raft }

    /// The term of an entry; nil where that is compacted away or beyond the log's end.
    package func term(at index: LogIndex) -> Term? { raft.replica.log.term(at: index) }

    /// The snapshot's configuration and those of the log, oldest first.
    package var configurations: [ConfigurationAt] { raft.replica.configurations.all }

    /// The term and the vote in it.
    package var hardState: HardState { raft.replica.hardState }

    /// Until when the replica serves reads by its lease, on its own clock; nil where it has none.
    package var leaseEnd: MonotonicTime? { raft.leadership?.leaseEnd(in: raft.replica) }

    /// Everything up to here is taken for durable on this replica's disk.
    package var durableIndex: LogIndex { raft.replica.log.durable }

    /// The latest round of heartbeats that each follower is taken to have answered.
    package var answeredRounds: [(replica: ReplicaID, round: UInt64)] {
        (raft.leadership?.followers ?? []).map { ($0.id, $0.confirmedRound) }
    }

    /// Up to where a leader counts each follower for what it has durably.
    package var matches: [(replica: ReplicaID, index: LogIndex)] {
        (raft.leadership?.followers ?? []).map { ($0.id, $0.match) }
    }

    /// What the leader of this term is to be told that the replica has, once it is durable.
    package var owedMatch: LogIndex? { raft.replica.owedMatch?.index }

    /// What reads that wait for a round of heartbeats are to see.
    package var readIndexes: [LogIndex] { (raft.leadership?.reads.batches ?? []).map(\.index) }

    /// Whether the replica heard a leader so recently that at a time of its clock it wants no other.
    package func hearsLeader(at time: MonotonicTime) -> Bool {
        raft.role == .leader || raft.timer.hasLiveLeader(at: time, raft.settings)
    }

    /// Whether the replica, if it hears nothing more, votes for nobody at a time of its clock.
    package func keepsQuiet(at time: MonotonicTime) -> Bool { !raft.timer.mayVote(at: time) || hearsLeader(at: time) }
}
