/// The members of a group (dissertation chapter 4). Lists are sorted and hold no id twice.
///
/// While `outgoing` is not empty the configuration is joint: elections and commits need a majority of `voters` and a
/// majority of `outgoing`.
public struct Configuration: Hashable, Sendable {
    /// Replicas that vote.
    public private(set) var voters: [ReplicaID]
    /// The old voters of a joint configuration; empty otherwise.
    public private(set) var outgoing: [ReplicaID]
    /// Replicas that receive the log and never vote.
    public private(set) var learners: [ReplicaID]

    public init(voters: [ReplicaID], outgoing: [ReplicaID] = [], learners: [ReplicaID] = []) {
        self.voters = Set(voters).sorted()
        self.outgoing = Set(outgoing).sorted()
        self.learners = Set(learners).subtracting(voters).subtracting(outgoing).sorted()
    }

    /// Every replica that receives the log, sorted.
    public var all: [ReplicaID] { Set(voters + outgoing + learners).sorted() }

    /// Whether two majorities are needed.
    public var isJoint: Bool { !outgoing.isEmpty }

    /// Whether the replica's vote counts.
    public func isVoter(_ replica: ReplicaID) -> Bool { voters.contains(replica) || outgoing.contains(replica) }
}
