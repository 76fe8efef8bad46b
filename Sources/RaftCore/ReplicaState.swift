/// What a replica has in every role (dissertation figure 3.1): the log, the configurations, the term and the vote, and
/// what the event under way asks for. It takes from a leader what a follower does, and knows nothing of elections.
struct ReplicaState: Hashable, Sendable {
    let id: ReplicaID
    let settings: RaftSettings
    private(set) var now: MonotonicTime
    private(set) var log: RaftLog
    private(set) var configurations: ConfigurationHistory
    /// A snapshot that the shell is installing. Until it is done the replica neither appends nor campaigns nor applies.
    private(set) var pendingInstall: SnapshotMark?
    /// A match that was not durable when the leader of this term asked, and that no later effects would tell it of.
    private(set) var owedMatch: LogPosition?
    var outbox: Outbox

    init(id: ReplicaID, settings: RaftSettings, restored: RestoredState, now: MonotonicTime) {
        self.id = id
        self.settings = settings
        self.now = now
        log = RaftLog(restored)
        configurations = ConfigurationHistory(restored)
        outbox = Outbox(sender: id, restored.hardState)
        precondition(term >= log.last.term, "term \(term), but the log ends at \(log.last)")
    }

    var hardState: HardState { outbox.hardState }
    var term: Term { outbox.hardState.term }
    /// The place of the next entry that this replica appends as leader.
    var nextEntry: LogPosition { LogPosition(index: log.last.index.next, term: term) }
    /// The configuration in force.
    var configuration: Configuration { configurations.latest.configuration }
    var isConfigurationCommitted: Bool { configurations.latest.index <= log.committed }
    /// Whether this replica is all it takes for a majority.
    var isOnlyVoter: Bool { Quorum.isMajority(configuration) { $0 == id } }
    /// Whether this replica may campaign.
    var isPromotable: Bool { pendingInstall == nil && configurations.mayCampaign(id, committed: log.committed) }
    /// Whether a leader knows what is committed: not before an entry of its own term is.
    var canServeReads: Bool { log.term(at: log.committed) == term }

    /// Begins an event.
    mutating func begin(_ time: MonotonicTime) {
        now = max(now, time)
        precondition(outbox.effects == Effects(), "an event inside an event")
    }

    /// Traps unless the log is in order at the end of an event.
    func checkInvariants() {
        log.checkInvariants()
        precondition(log.last.term <= term, "the log ends at \(log.last) in term \(term)")
    }

    /// Says what may newly be applied.
    mutating func reportCommit() {
        if pendingInstall == nil, let index = log.report() { outbox.effects.commitIndex = index }
    }

    /// Enters a later term. A match that was owed to the leader of an earlier one is void.
    mutating func enter(_ term: Term, vote: ReplicaID?) {
        outbox.enter(term, vote: vote)
        owedMatch = nil
    }

    /// Appends a leader's own entries. Returns them, and whether they change the members.
    mutating func append(_ payloads: [Entry.Payload]) -> (entries: [Entry], changesMembers: Bool) {
        precondition(
            outbox.effects.append.last.map { $0.position == log.last } ?? true,
            "an append that does not follow \(log.last)")
        var index = log.last.index
        let entries = payloads.map { payload in
            index = index.next
            return Entry(index: index, term: term, payload: payload)
        }
        log.append(entries)
        outbox.effects.append += entries
        return (entries, configurations.adopt(of: entries))
    }

    /// Commits what a majority holds.
    mutating func commitAsLeader(through index: LogIndex) {
        log.commit(through: index)
        trim()
    }

    /// Learns from the leader that everything up to `index` is committed.
    mutating func commitAsFollower(through index: LogIndex) {
        if pendingInstall == nil { log.commit(through: index) }
    }

    mutating func persisted(_ position: LogPosition, _ hardState: HardState) {
        outbox.persisted(hardState)
        log.persisted(position, inTerm: hardState.term)
    }

    mutating func applied(_ index: LogIndex) {
        log.apply(through: index)
        trim()
    }

    mutating func trim() { log.trim(toBytes: settings.cacheBytesMax) }

    mutating func compacted(through mark: SnapshotMark) {
        let position = mark.position
        precondition(position.index <= log.applied, "compacted \(position), but applied only \(log.applied)")
        guard position.index > log.snapshot.index else { return }
        precondition(log.contains(position), "compacted \(position), which the log does not hold")
        configurations.compact(through: mark)
        log.compact(through: position.index)
    }
}

/// What comes from a leader of this term.
extension ReplicaState {
    /// Takes the leader's entries (dissertation section 3.5).
    mutating func receive(_ request: AppendRequest, from leader: ReplicaID) {
        // The log is about to be replaced; what is appended to the old one would be lost after it was acknowledged.
        if pendingInstall != nil { return }
        guard let request = request.droppingEntries(through: log.committed, term: log.term(at: log.committed)) else {
            acknowledge(log.committed, to: leader)
            return
        }
        guard log.contains(request.previous) else {
            rejectAppend(after: request.previous, to: leader)
            return
        }
        let matched = request.entries.last?.index ?? request.previous.index
        if appendNew(request.entries) {
            outbox.sendAfterPersist(.appendResponse(.accepted(match: matched)), to: leader)
            if let owed = owedMatch, owed.index <= matched { owedMatch = nil }
        } else {
            acknowledge(matched, to: leader)
        }
        commitAsFollower(through: min(request.commit, matched))
    }

    /// Appends missing entries, replacing conflicting ones.
    /// - Returns: whether there were any.
    private mutating func appendNew(_ entries: [Entry]) -> Bool {
        guard let first = entries.firstIndex(where: { !log.contains($0.position) }) else { return false }
        let new = Array(entries[first...])
        let index = new[0].index
        if index <= log.last.index {
            precondition(
                index > log.committed,
                "entry \(new[0].position) contradicts \(log.term(at: index) ?? .zero), committed to \(log.committed)")
            log.truncate(from: index, term: term)
            configurations.rollBack(from: index)
            if let owed = owedMatch, owed.index >= index { owedMatch = nil }
        }
        precondition(outbox.effects.append.isEmpty, "two appends in one event")
        log.append(new)
        configurations.adopt(of: new)
        outbox.effects.append = new
        return true
    }

    /// Says how far back the logs may agree: where this one's terms are no later than the leader's at `previous`. Whole
    /// terms are skipped, so that one rejection a term is enough.
    private mutating func rejectAppend(after previous: LogPosition, to leader: ReplicaID) {
        // What is committed is in the leader's log.
        let found = log.greatestIndex(through: previous.index, termAtMost: previous.term) ?? log.committed
        let hint = max(found, log.committed)
        precondition(hint <= previous.index, "hint \(hint) after \(previous)")
        let position = LogPosition(index: hint, term: log.term(at: hint) ?? .zero)
        outbox.send(.appendResponse(.rejected(previous: previous.index, hint: position)), to: leader)
    }

    /// Tells the leader of a match up to `index`, as far as it is durable now, and of the rest when it is.
    private mutating func acknowledge(_ index: LogIndex, to leader: ReplicaID) {
        guard let indexTerm = log.term(at: index) else {
            preconditionFailure("no entry \(index) to acknowledge: \(log.snapshot)...\(log.last)")
        }
        outbox.send(.appendResponse(.accepted(match: min(index, log.durable))), to: leader)
        let owed = LogPosition(index: index, term: indexTerm)
        if index > log.durable { owedMatch = owedMatch.map { $0.index > index ? $0 : owed } ?? owed }
    }

    /// Tells the leader, if there is one, of a match that was not durable when it asked.
    mutating func payOwedMatch(to leader: ReplicaID?) {
        guard let owed = owedMatch, log.durable >= owed.index, outbox.isHardStateDurable else { return }
        owedMatch = nil
        guard let leader, log.contains(owed) else { return }
        outbox.send(.appendResponse(.accepted(match: owed.index)), to: leader)
    }

    /// Has the leader's snapshot installed, if the log lacks what it holds.
    mutating func receive(_ mark: SnapshotMark, from leader: ReplicaID) {
        if pendingInstall != nil { return }
        let position = mark.position
        if position.index <= log.committed {
            acknowledge(log.committed, to: leader)
        } else if log.contains(position) {
            // The log has it all; only the news that it is committed was missing.
            commitAsFollower(through: position.index)
            acknowledge(position.index, to: leader)
        } else {
            pendingInstall = mark
            owedMatch = nil
            outbox.effects.install = mark
        }
    }

    mutating func installed(_ mark: SnapshotMark, from leader: ReplicaID?) {
        precondition(pendingInstall == mark, "installed \(mark.position), which was not asked for")
        precondition(mark.position.index > log.committed, "installed \(mark.position), committed \(log.committed)")
        pendingInstall = nil
        log.reset(to: mark.position, term: term)
        configurations.reset(to: mark)
        if let leader { acknowledge(log.committed, to: leader) }
    }
}

extension AppendRequest {
    /// Whether the entries follow `previous` and each other, with terms that never fall.
    var isWellFormed: Bool {
        var last = previous
        for entry in entries {
            if entry.index != last.index.next || entry.term < last.term { return false }
            last = entry.position
        }
        return true
    }

    /// The request without what is committed here, and so known to agree; nil if nothing is left, not even a claim
    /// about what comes after.
    fileprivate func droppingEntries(through committed: LogIndex, term: Term?) -> AppendRequest? {
        if previous.index >= committed { return self }
        let skipped = Int(committed.rawValue - previous.index.rawValue)
        guard entries.count > skipped, let term else { return nil }
        precondition(
            entries[skipped - 1].term == term,
            "entry \(entries[skipped - 1].position) contradicts a committed term \(term)")
        let rest = Array(entries[skipped...])
        return AppendRequest(previous: LogPosition(index: committed, term: term), entries: rest, commit: commit)
    }
}
