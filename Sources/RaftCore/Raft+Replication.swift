extension Raft {
    /// Appends commands, which may then be committed or, after a change of leader, lost: as many from the first on as
    /// may be uncommitted. The others were not appended, and proposing them again later is safe.
    ///
    /// - Returns: where they are, how many they are, and what to do.
    /// - Throws: `ProposalError` if nothing was appended.
    /// - Precondition: there is at least one command.
    public mutating func propose(
        _ commands: [[UInt8]], now: MonotonicTime
    ) throws(ProposalError) -> (proposal: Proposal, effects: Effects) {
        precondition(!commands.isEmpty, "a proposal of no commands")
        guard role == .leader else { throw .notLeader(hint: leader) }
        var payloads: [Entry.Payload] = []
        var bytes = uncommittedBytes
        for command in commands {
            let payload = Entry.Payload.command(command)
            let size = Entry(index: .zero, term: .zero, payload: payload).sizeBytes
            guard bytes == 0 || bytes + size <= settings.uncommittedBytesMax else { break }
            bytes += size
            payloads.append(payload)
        }
        guard !payloads.isEmpty else {
            throw .overloaded(uncommittedBytes: uncommittedBytes, uncommittedBytesMax: settings.uncommittedBytesMax)
        }
        begin(now)
        let first = LogPosition(index: log.last.index.next, term: term)
        appendOwn(payloads)
        return (Proposal(first: first, count: payloads.count), finish())
    }

    /// Appends entries of this term and sends them at once, while the own persist runs (dissertation section 10.2.1).
    mutating func appendOwn(_ payloads: [Entry.Payload]) {
        precondition(role == .leader, "a \(role) appends")
        precondition(
            output.append.last.map { $0.position == log.last } ?? true, "an append that does not follow \(log.last)")
        var index = log.last.index
        let entries = payloads.map { payload in
            index = index.next
            return Entry(index: index, term: term, payload: payload)
        }
        for entry in entries { uncommittedBytes += entry.sizeBytes }
        log.append(entries)
        output.append += entries
        // Replicas that these entries remove get them, too, if their window allows it.
        for offset in followers.indices { replicate(to: offset) }
        if adoptConfigurations(of: entries) {
            updateFollowers()
            for offset in followers.indices { replicate(to: offset) }
        }
    }

    /// Sends a follower as much as its window allows.
    mutating func replicate(to offset: Int) {
        precondition(role == .leader, "a \(role) replicates")
        while followers[offset].mayReceive(settings) {
            let follower = followers[offset]
            if follower.state == .replicate && follower.next > log.last.index { return }
            let previous = follower.next.previous
            guard let previousTerm = log.term(at: previous) else {
                startSnapshot(to: offset)
                return
            }
            let bytesMax = follower.state == .probe ? settings.probeBytesMax : settings.appendBytesMax
            guard let entries = log.cached(from: follower.next, through: log.last.index, bytesMax: bytesMax) else {
                startLoad(for: offset, bytesMax: bytesMax)
                return
            }
            sendAppend(entries, after: LogPosition(index: previous, term: previousTerm), to: offset)
        }
    }

    mutating func sendAppend(_ entries: [Entry], after previous: LogPosition, to offset: Int) {
        precondition(entries.first?.index ?? previous.index.next == previous.index.next, "a gap after \(previous)")
        let request = AppendRequest(previous: previous, entries: entries, commit: announcedCommit)
        send(.appendRequest(request), to: followers[offset].id)
        let bytes = entries.reduce(0) { $0 + $1.sizeBytes }
        followers[offset].sent(last: entries.last?.index ?? previous.index, bytes: bytes, now: now)
    }

    private mutating func startLoad(for offset: Int, bytesMax: Int) {
        let from = followers[offset].next
        let through = log.cacheFirst.previous
        precondition(from <= through && through <= log.durable, "load \(from)...\(through), durable \(log.durable)")
        let request = LoadRequest(
            follower: followers[offset].id, from: from, through: through, bytesMax: bytesMax, term: term)
        followers[offset].load = request
        output.loads.append(request)
    }

    mutating func startSnapshot(to offset: Int) {
        followers[offset].becomeSnapshot()
        output.snapshots.append(followers[offset].id)
    }

    /// Entries that a `LoadRequest` asked for were read.
    ///
    /// - Parameter entries: from `request.from` without a gap, at least one; none if `request.from` is compacted
    ///   away, and then
    ///   the follower gets a snapshot.
    public mutating func loaded(_ request: LoadRequest, entries: [Entry], now: MonotonicTime) -> Effects {
        begin(now)
        guard role == .leader, request.term == term,
            let offset = followers.firstIndex(where: { $0.id == request.follower }),
            followers[offset].load == request
        else { return finish() }
        followers[offset].load = nil
        guard !entries.isEmpty, let previousTerm = log.term(at: request.from.previous) else {
            startSnapshot(to: offset)
            return finish()
        }
        var expected = request.from
        for entry in entries {
            precondition(entry.index == expected, "loaded \(entry.index) where \(expected) was due")
            let known = log.term(at: expected)
            precondition(
                known == nil || known == entry.term, "loaded \(entry.position), but its term is \(known ?? .zero)")
            expected = expected.next
        }
        precondition(followers[offset].next == request.from, "loaded \(request.from), next \(followers[offset].next)")
        sendAppend(entries, after: LogPosition(index: request.from.previous, term: previousTerm), to: offset)
        replicate(to: offset)
        return finish()
    }

    /// The connection to a replica broke: appends under way are taken for lost, and a leader for dead unless it is
    /// heard again soon. A transport that cannot tell reports nothing; then heartbeats and election timeouts find it
    /// out. One that can reports with `peerConnected` that there is a connection again.
    public mutating func peerDisconnected(_ replica: ReplicaID, now: MonotonicTime) -> Effects {
        begin(now)
        if role == .leader, let offset = followers.firstIndex(where: { $0.id == replica }),
            followers[offset].state == .replicate
        {
            followers[offset].becomeProbe(next: followers[offset].match.next)
            // The next heartbeat's answer says that there is someone to send to.
            followers[offset].pause()
        }
        if role == .follower, replica == leader { loseLeader() }
        return finish()
    }

    /// The leader of this term sends entries (dissertation section 3.5).
    mutating func receiveAppendRequest(_ request: AppendRequest, _ message: Message) {
        guard request.isWellFormed, request.entries.last?.term ?? request.previous.term <= term else { return }
        heardLeader(message.from)
        heardCommit(request.commit, from: message.from)
        // The log is about to be replaced; what is appended to the old one would be lost after it was acknowledged.
        if pendingInstall != nil { return }
        guard let request = request.droppingEntries(through: commitIndex, term: log.term(at: commitIndex)) else {
            acknowledge(commitIndex)
            return
        }
        guard log.contains(request.previous) else {
            rejectAppend(after: request.previous, to: message.from)
            return
        }
        let matched = request.entries.last?.index ?? request.previous.index
        let hasNew = appendNew(request.entries)
        if hasNew {
            let accepted = Message.Body.appendResponse(.accepted(match: matched))
            output.sendAfterPersist.append(Message(from: id, to: message.from, term: term, body: accepted))
            if let owed = owedMatch, owed.index <= matched { owedMatch = nil }
        } else {
            acknowledge(matched)
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
                index > commitIndex,
                "entry \(new[0].position) contradicts \(log.term(at: index) ?? .zero), committed to \(commitIndex)")
            log.truncate(from: index, term: term)
            rollBackConfigurations(from: index)
            if let owed = owedMatch, owed.index >= index { owedMatch = nil }
        }
        precondition(output.append.isEmpty, "two appends in one event")
        log.append(new)
        adoptConfigurations(of: new)
        output.append = new
        return true
    }

    /// Says how far back the logs may agree: where this one's terms are no later than the leader's at `previous`. Whole
    /// terms are skipped, so that one rejection a term is enough.
    private mutating func rejectAppend(after previous: LogPosition, to sender: ReplicaID) {
        // What is committed is in the leader's log.
        let found = log.greatestIndex(through: previous.index, termAtMost: previous.term) ?? commitIndex
        let hint = max(found, commitIndex)
        precondition(hint <= previous.index, "hint \(hint) after \(previous)")
        let position = LogPosition(index: hint, term: log.term(at: hint) ?? .zero)
        send(.appendResponse(.rejected(previous: previous.index, hint: position)), to: sender)
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

extension Raft {
    /// A follower took entries, or could not.
    mutating func receiveAppendResponse(_ response: AppendResponse, _ message: Message) {
        guard role == .leader, let offset = followers.firstIndex(where: { $0.id == message.from }) else { return }
        followers[offset].lastHeard = now
        switch response {
        case .accepted(let match): accepted(match, by: offset)
        case .rejected(let previous, let hint): rejected(previous: previous, hint: hint, by: offset)
        }
    }

    private mutating func accepted(_ match: LogIndex, by offset: Int) {
        precondition(
            match <= log.last.index, "\(followers[offset].id) has \(match), but the leader's log ends at \(log.last)")
        let isNews = followers[offset].acknowledged(match, last: log.last.index, now: now)
        switch followers[offset].state {
        case .probe:
            if followers[offset].isProbed { followers[offset].becomeReplicate() }
        case .snapshot:
            // The snapshot is installed, or was not needed, once the log holds what follows.
            if isNews, match >= log.snapshot.index { followers[offset].becomeReplicate() }
        case .replicate:
            break
        }
        let follower = followers[offset].id
        if isNews { advanceCommit() }
        // A commit may end this reign, or change who follows.
        guard role == .leader, let offset = followers.firstIndex(where: { $0.id == follower }) else { return }
        replicate(to: offset)
    }

    private mutating func rejected(previous: LogIndex, hint: LogPosition, by offset: Int) {
        let match = followers[offset].match
        switch followers[offset].state {
        case .snapshot:
            return
        case .replicate:
            // Older than what was accepted since: a late answer.
            if previous <= match { return }
            followers[offset].becomeProbe(next: match.next)
        case .probe:
            if previous.next != followers[offset].next || previous <= match { return }
            // Without an index that may agree, the one before the snapshot makes a snapshot due.
            let agreed = log.greatestIndex(through: hint.index, termAtMost: hint.term) ?? log.snapshot.index.previous
            followers[offset].becomeProbe(next: max(min(previous, agreed.next), match.next))
        }
        replicate(to: offset)
    }

    /// The commit index that a leader reports: never more than is durable here.
    var announcedCommit: LogIndex { min(commitIndex, log.durable) }

    /// A leader of this term reported its commit index.
    mutating func heardCommit(_ index: LogIndex, from leader: ReplicaID) {
        guard let known = leaderCommit, known.leader == leader, known.term == term else {
            leaderCommit = LeaderCommit(leader: leader, term: term, index: index)
            return
        }
        leaderCommit?.index = max(known.index, index)
    }

    /// The shell made durable everything up to `position` and `hardState`.
    ///
    /// Persists are reported in the order in which they were asked for; some may be left out in favour of a later
    /// one. A position that the log no longer holds is ignored, `hardState` is not.
    /// - Parameter hardState: what is durable along with `position`, not something newer.
    public mutating func persisted(
        _ position: LogPosition, hardState persisted: HardState, now: MonotonicTime
    ) -> Effects {
        begin(now)
        precondition(persisted.term <= term, "persisted term \(persisted.term) in term \(term)")
        precondition(
            persisted.term >= durableHardState.term, "persisted term \(persisted.term) after \(durableHardState.term)")
        durableHardState = persisted
        log.persisted(position, inTerm: persisted.term)
        switch role {
        case .leader: advanceCommit()
        case .candidate: countVotes()
        case .preCandidate: break
        case .follower: payOwedMatch()
        }
        trim()
        return finish()
    }

    /// The state machine holds the effects of everything up to `index`; memory may be freed.
    /// - Precondition: `index` was allowed by `Effects.commitIndex`.
    public mutating func applied(_ index: LogIndex) {
        precondition(index <= reportedCommit, "applied \(index), but only \(reportedCommit) was allowed")
        // A report from before a snapshot was installed is late, not wrong.
        appliedIndex = max(appliedIndex, index)
        trim()
    }

    /// Commits what a majority holds durably, counting only entries of this term (dissertation section 3.6.2).
    mutating func advanceCommit() {
        precondition(role == .leader, "a \(role) counts replicas")
        let reached = Quorum.reached(configuration) { voter in
            voter == id ? log.durable : followers.first { $0.id == voter }?.match ?? .zero
        }
        guard let reached, reached > commitIndex, log.term(at: reached) == term else { return }
        let wasReadable = canServeReads
        // Entries that are not committed leave memory no more once they are in it.
        uncommittedBytes -= log.cachedBytes(after: commitIndex, through: reached)
        precondition(uncommittedBytes >= 0, "\(uncommittedBytes) bytes uncommitted")
        commitIndex = reached
        trim()
        if !wasReadable { startRound() }
        advanceMembership()
    }

    /// Learns from the leader that everything up to `index` is committed.
    mutating func commitAsFollower(through index: LogIndex) {
        precondition(role == .follower, "a \(role) is told what is committed")
        if index <= commitIndex || pendingInstall != nil { return }
        precondition(
            index <= log.last.index,
            "committed to \(index), but the log ends at \(log.last): it lost entries that it had acknowledged")
        commitIndex = index
    }

    /// Tells the leader of a match that was not durable when it asked.
    mutating func payOwedMatch() {
        guard let owed = owedMatch, log.durable >= owed.index, hardState == durableHardState else { return }
        owedMatch = nil
        guard let leader, log.contains(owed) else { return }
        send(.appendResponse(.accepted(match: owed.index)), to: leader)
    }

    /// Frees memory: entries that are applied first, entries that are only committed if there are far too many.
    mutating func trim() {
        log.trim(toBytes: settings.cacheBytesMax, keepingAfter: appliedIndex)
        log.trim(toBytes: 4 * settings.cacheBytesMax, keepingAfter: commitIndex)
    }
}
