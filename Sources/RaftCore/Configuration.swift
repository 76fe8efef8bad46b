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

    /// Creates a configuration. Lists are sorted, duplicates dropped, and a learner that is also a voter is a voter.
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

/// Majorities of a configuration. A joint configuration needs one of each half (dissertation section 4.3); a half
/// without voters has no majority, except that a configuration that is not joint has only the first half.
public enum Quorum {
    /// How an election stands.
    public enum Result: Hashable, Sendable {
        case won, lost, pending
    }

    /// Whether the replicas for which `holds` is true are a majority.
    public static func isMajority(_ configuration: Configuration, where holds: (ReplicaID) -> Bool) -> Bool {
        if !isMajority(of: configuration.voters, where: holds) { return false }
        return !configuration.isJoint || isMajority(of: configuration.outgoing, where: holds)
    }

    /// The greatest value that a majority has reached; nil without voters.
    public static func reached<Value: Comparable>(
        _ configuration: Configuration, by value: (ReplicaID) -> Value
    ) -> Value? {
        guard let incoming = reached(of: configuration.voters, by: value) else { return nil }
        guard configuration.isJoint, let outgoing = reached(of: configuration.outgoing, by: value) else {
            return incoming
        }
        return min(incoming, outgoing)
    }

    /// Won with a majority of yes, lost when that is no longer possible.
    /// - Parameter vote: a replica's answer; nil without one.
    public static func election(_ configuration: Configuration, vote: (ReplicaID) -> Bool?) -> Result {
        if isMajority(configuration, where: { vote($0) == true }) { return .won }
        return isMajority(configuration, where: { vote($0) != false }) ? .pending : .lost
    }

    private static func isMajority(of voters: [ReplicaID], where holds: (ReplicaID) -> Bool) -> Bool {
        var count = 0
        for voter in voters where holds(voter) { count += 1 }
        return count > voters.count / 2
    }

    private static func reached<Value: Comparable>(
        of voters: [ReplicaID], by value: (ReplicaID) -> Value
    ) -> Value? {
        if voters.isEmpty { return nil }
        let ascending = voters.map(value).sorted()
        // With n values, those from this place to the end are the smallest majority.
        return ascending[(ascending.count - 1) / 2]
    }
}
