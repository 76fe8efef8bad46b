/// The members of a group (dissertation chapter 4). Lists are sorted and hold no id twice.
///
/// While `outgoing` is not empty the configuration is joint: elections and commits need a majority of `voters` and a
/// majority of `outgoing`. No learner is among `voters`; one that is among `outgoing` still votes, and becomes a
/// learner when the joint configuration is left.
public struct Configuration: Hashable, Sendable {
    /// Replicas that vote.
    public private(set) var voters: [ReplicaID]
    /// The old voters of a joint configuration; empty otherwise.
    public private(set) var outgoing: [ReplicaID]
    /// Replicas that receive the log and do not count; see `outgoing` for the exception.
    public private(set) var learners: [ReplicaID]

    public init(voters: [ReplicaID], outgoing: [ReplicaID] = [], learners: [ReplicaID] = []) {
        self.voters = Set(voters).sorted()
        self.outgoing = Set(outgoing).sorted()
        self.learners = Set(learners).subtracting(voters).sorted()
    }

    /// Every replica that receives the log, sorted.
    public var all: [ReplicaID] { Set(voters + outgoing + learners).sorted() }

    /// Whether two majorities are needed.
    public var isJoint: Bool { !outgoing.isEmpty }

    /// Whether the replica's vote counts.
    public func isVoter(_ replica: ReplicaID) -> Bool { voters.contains(replica) || outgoing.contains(replica) }

    /// Whether the replica receives the log.
    public func contains(_ replica: ReplicaID) -> Bool { isVoter(replica) || learners.contains(replica) }

    /// The joint configuration by which this one, which is not joint, becomes `target` (dissertation section 4.3).
    func joint(with target: Configuration) -> Configuration {
        precondition(!isJoint && !target.isJoint, "joining \(self) with \(target), one of which is joint")
        return Configuration(voters: target.voters, outgoing: voters, learners: target.learners)
    }

    /// What this joint configuration becomes when it is left.
    var withoutOutgoing: Configuration { Configuration(voters: voters, learners: learners) }
}
