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

/// The configurations of a log. The latest is in force, committed or not (dissertation section 4.1).
struct ConfigurationHistory: Hashable, Sendable {
    /// The snapshot's configuration and those of the log, oldest first; at least one.
    private(set) var all: [ConfigurationAt]

    init(_ restored: RestoredState) {
        all = []
        reset(to: restored.snapshot)
        for next in restored.configurations {
            precondition(next.index > latest.index, "configurations out of order")
            precondition(
                next.index <= restored.lastLog.index,
                "a configuration at \(next.index) after the end \(restored.lastLog)")
            all.append(next)
        }
    }

    /// The one in force.
    var latest: ConfigurationAt {
        precondition(!all.isEmpty, "no configuration")
        return all[all.count - 1]
    }

    /// Whether a replica may campaign: it votes in the configuration in force, or did before one that may never be
    /// committed without it (dissertation section 4.2.2).
    func mayCampaign(_ id: ReplicaID, committed: LogIndex) -> Bool {
        let first = all.lastIndex { $0.index <= committed } ?? 0
        return all[first...].contains { $0.configuration.isVoter(id) }
    }

    /// Takes the configurations of new entries into force. Returns whether there were any.
    @discardableResult
    mutating func adopt(of entries: [Entry]) -> Bool {
        var hasNew = false
        for entry in entries {
            guard case .configuration(let configuration) = entry.payload else { continue }
            all.append(ConfigurationAt(index: entry.index, configuration: configuration))
            hasNew = true
        }
        return hasNew
    }

    /// Goes back to the configuration before `index`.
    mutating func rollBack(from index: LogIndex) {
        while let latest = all.last, latest.index >= index, all.count > 1 { all.removeLast() }
    }

    /// Forgets what the log up to `mark` brought.
    mutating func compact(through mark: SnapshotMark) {
        while all.count > 1, all[1].index <= mark.position.index { all.removeFirst() }
        precondition(
            all[0].configuration == mark.configuration,
            "the configuration at \(mark.position) came with entry \(all[0].index) and is not the mark's")
        all[0].index = mark.position.index
    }

    /// Forgets all but the configuration of a snapshot.
    mutating func reset(to mark: SnapshotMark) {
        all = [ConfigurationAt(index: mark.position.index, configuration: mark.configuration)]
    }
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

/// Why a change of members was refused. Nothing was appended.
public enum ConfigurationChangeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// This replica does not lead. A retry helps, at `hint` if there is one.
    case notLeader(hint: ReplicaID?)
    /// The leader has not committed an entry of its own term yet, so it does not know which configuration is committed.
    /// A retry helps in a moment.
    case termNotCommitted(Term)
    /// The latest configuration, at this index, is joint or not committed. A retry helps when that change is done.
    case changeUnderway(at: LogIndex)
    /// The configuration to be replaced is not the one in force: it was changed meanwhile. A retry helps if it begins
    /// with this one.
    case unknownBase(inForce: Configuration)
    /// The group would have no voters. A retry does not help.
    case noVoters
    /// A joint configuration cannot be asked for: the group goes through one and leaves it by itself. A retry does not
    /// help.
    case jointTarget
    /// The group has these members already.
    case unchanged
    /// A new voter is not a learner yet. A retry helps after it was made one and has caught up.
    case notLearner(ReplicaID)
    /// A new voter lacks more than it could be sent in an election timeout, or does not answer. A retry helps later.
    case notCaughtUp(ReplicaID, missingEntries: UInt64)
    /// Too many of the new voters were silent for an election timeout: the rest is not a majority. A retry helps when
    /// they are back.
    case majoritySilent([ReplicaID])

    /// What was wrong and what to do about it.
    public var description: String {
        switch self {
        case .notLeader(let hint):
            "only a leader can change members, and this replica is none; ask "
                + (hint.map { "replica \($0)" } ?? "again when there is one")
        case .termNotCommitted(let term):
            "the leader of term \(term) has committed nothing yet; try again in a moment"
        case .changeUnderway(let index):
            "the change of members at entry \(index) is under way; try again when it is done"
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
