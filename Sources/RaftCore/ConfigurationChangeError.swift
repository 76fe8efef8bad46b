/// Why a change of members was refused. Nothing was appended.
public enum ConfigurationChangeError: Error, Hashable, Sendable {
    /// This replica does not lead. A retry helps, at `hint` if there is one.
    case notLeader(hint: ReplicaID?)
    /// The leader has not committed an entry of its own term yet, so it does not know which configuration is committed. A
    /// retry helps in a moment.
    case termNotCommitted(Term)
    /// The latest configuration, at this index, is joint or not committed. A retry helps when that change is done.
    case changeUnderway(at: LogIndex)
    /// Leadership is being handed over. A retry helps, at the next leader.
    case transferUnderway(to: ReplicaID)
    /// The configuration to be replaced is not the one in force: someone else changed it. A retry helps if it begins with this
    /// one.
    case unknownBase(inForce: Configuration)
    /// The group would have no voters. A retry does not help.
    case noVoters
    /// A joint configuration cannot be asked for: the group goes through one and leaves it by itself. A retry does not help.
    case jointTarget
    /// The group has these members already.
    case unchanged
    /// A new voter is no learner yet. A retry helps after it was made one and has caught up.
    case notLearner(ReplicaID)
    /// A new voter lacks more than it could be sent in an election timeout, or does not answer. A retry helps later.
    case notCaughtUp(ReplicaID, missingEntries: UInt64)
    /// So many of the new voters were not heard for an election timeout that the rest is no majority. A retry helps when they
    /// are back.
    case majoritySilent([ReplicaID])
}

extension ConfigurationChangeError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .notLeader(let hint):
            "only a leader can change members, and this replica is none; ask "
                + (hint.map { "replica \($0)" } ?? "again when there is one")
        case .termNotCommitted(let term):
            "the leader of term \(term) has committed nothing yet; try again in a moment"
        case .changeUnderway(let index):
            "the change of members at entry \(index) is under way; try again when it is done"
        case .transferUnderway(let target):
            "leadership is being handed over to replica \(target); try again there"
        case .unknownBase(let inForce):
            "the members have changed meanwhile: the voters are \(inForce.voters), the learners \(inForce.learners); "
                + "start from these"
        case .noVoters: "a group needs at least one voter"
        case .jointTarget: "a joint configuration cannot be asked for; leave its outgoing voters out"
        case .unchanged: "the group has these members already"
        case .notLearner(let id): "replica \(id) is no learner yet; add it as one and wait until it has caught up"
        case .notCaughtUp(let id, let missing):
            "replica \(id) lacks \(missing) entries or does not answer; try again when it has caught up"
        case .majoritySilent(let ids):
            "no majority of the new voters answers: \(ids) are silent; bring them back or leave them out"
        }
    }
}
