/// Changes of members (dissertation chapter 4). A change of voters goes through a joint configuration; its second entry
/// is appended by the leader itself as soon as the first is committed, and by the next leader if this one fails.
extension Raft {
    /// Changes the group's members from `base`, the configuration in force, to `target`.
    ///
    /// A replica joins as a learner first: it starts with `RestoredState(bootstrap: Configuration(voters: []))`, and
    /// its log or a snapshot comes from the leader. It can be made a voter when it has caught up. Any number of voters
    /// may change at once.
    ///
    /// The change is done when `configuration` is `target` and `isConfigurationCommitted`. The entry whose place is
    /// returned is only its beginning; like any entry it may be lost with its leader, and the group is then where it
    /// was. A leader that is not in `target` hands over and follows when the change is done.
    /// - Throws: `ConfigurationChangeError`, and then nothing was appended.
    public mutating func propose(
        configuration target: Configuration, replacing base: Configuration, now: MonotonicTime
    ) throws(ConfigurationChangeError) -> (proposal: Proposal, effects: Effects) {
        begin(now)
        try checkMayChange(from: base)
        try check(target)
        let first = LogPosition(index: log.last.index.next, term: term)
        // Learners do not count, so changing them alone needs no agreement of two majorities.
        appendOwn([.configuration(target.voters == base.voters ? target : base.joint(with: target))])
        return (Proposal(first: first, count: 1), finish())
    }

    private func checkMayChange(from base: Configuration) throws(ConfigurationChangeError) {
        guard role == .leader else { throw .notLeader(hint: leader) }
        // Before that, a configuration of an earlier term that is not committed may still come into force elsewhere:
        // the fault of the dissertation's single-server changes as first published. Joint majorities would meet all the
        // same; the rule costs a moment and keeps every change one step from a configuration that is committed.
        guard canServeReads else { throw .termNotCommitted(term) }
        let latest = configurations[configurations.count - 1]
        if latest.configuration.isJoint || !isConfigurationCommitted { throw .changeUnderway(at: latest.index) }
        guard latest.configuration == base else { throw .unknownBase(inForce: latest.configuration) }
    }

    private func check(_ target: Configuration) throws(ConfigurationChangeError) {
        if target.voters.isEmpty { throw .noVoters }
        if target.isJoint { throw .jointTarget }
        if target == configuration { throw .unchanged }
        for voter in target.voters where !configuration.voters.contains(voter) {
            guard let follower = followers.first(where: { $0.id == voter }) else { throw .notLearner(voter) }
            guard isCaughtUp(follower) else {
                throw .notCaughtUp(voter, missingEntries: log.last.index.rawValue - follower.match.rawValue)
            }
        }
        let silent = target.voters.filter { voter in
            voter != id && !followers.contains { $0.id == voter && wasHeardLately($0) }
        }
        guard silent.count < target.voters.count - target.voters.count / 2 else { throw .majoritySilent(silent) }
    }

    /// Whether the follower keeps up: it lacks no more than it can be sent within an election timeout.
    func isCaughtUp(_ follower: Progress) -> Bool {
        guard follower.state == .replicate, wasHeardLately(follower) else { return false }
        return follower.match == log.last.index
            || follower.catchUp.isShort(settings.electionTimeoutNanoseconds, now: now)
    }

    private func wasHeardLately(_ follower: Progress) -> Bool {
        now < follower.lastHeard.adding(milliseconds: settings.electionTimeoutMilliseconds)
    }

    /// Continues a change whose latest entry is committed: leaves a joint configuration, or steps down if this replica
    /// is no longer a voter (dissertation sections 4.2.2 and 4.3).
    mutating func advanceMembership() {
        guard role == .leader, isConfigurationCommitted, canServeReads else { return }
        if configuration.isJoint {
            appendOwn([.configuration(configuration.withoutOutgoing)])
            return
        }
        dismissLeaving()
        if !configuration.isVoter(id) {
            resign()
        }
    }

    /// Tells removed replicas that their removal is committed, so that they stop campaigning. Up-to-date ones have the
    /// entry. Others may still ask for votes, which does not disturb a leader (section 4.2.3).
    private mutating func dismissLeaving() {
        let index = configurations[configurations.count - 1].index
        guard !leaving.isEmpty, let indexTerm = log.term(at: index) else { return }
        let position = LogPosition(index: index, term: indexTerm)
        let news = AppendRequest(previous: position, entries: [], commit: announcedCommit)
        for replica in leaving { send(.appendRequest(news), to: replica) }
        leaving = []
    }

    /// Steps down, and asks a voter that has the whole log to campaign at once.
    private mutating func resign() {
        let heir = followers.first { follower in
            configuration.voters.contains(follower.id) && follower.state == .replicate && wasHeardLately(follower)
                && follower.match == log.last.index
        }
        if let heir { askToTakeOver(heir.id) }
        becomeFollower(term: term, leader: nil)
    }

    /// Makes the members of the configuration in force the followers. Members that stay keep their progress.
    mutating func updateFollowers() {
        precondition(role == .leader, "a \(role) has no followers")
        let known = followers
        leaving = (leaving + known.map(\.id)).filter { !configuration.contains($0) }
        followers = configuration.all.filter { $0 != id }.map { member in
            known.first { $0.id == member } ?? Progress(id: member, next: log.last.index.next, now: now)
        }
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
