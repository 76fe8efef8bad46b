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

    /// Won with a majority of yes, lost when that cannot come any more.
    /// - Parameter vote: what a replica answered; nil if it has not.
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
        // With n values, those from this place to the end are a majority, and one fewer would be none.
        return ascending[(ascending.count - 1) / 2]
    }
}
