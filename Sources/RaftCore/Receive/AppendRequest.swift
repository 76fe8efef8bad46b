extension Raft {
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

    /// Appends those entries that the log does not hold, in place of those that contradict them. Returns whether
    /// there were any.
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
