extension Raft {
    /// Appends commands, which may then be committed or, after a change of leader, lost.
    ///
    /// - Returns: where they are, and what to do.
    /// - Throws: `ProposalError` if nothing was appended.
    /// - Precondition: there is at least one command.
    public mutating func propose(
        _ commands: [[UInt8]], now: MonotonicTime
    ) throws(ProposalError) -> (proposal: Proposal, effects: Effects) {
        precondition(!commands.isEmpty, "a proposal of no commands")
        guard role == .leader, transfer == nil else { throw .notLeader(hint: transfer?.target ?? leader) }
        let payloads = commands.map(Entry.Payload.command)
        let bytes = payloads.reduce(0) { $0 + Entry(index: .zero, term: .zero, payload: $1).sizeBytes }
        guard uncommittedBytes == 0 || uncommittedBytes + bytes <= settings.uncommittedBytesMax else {
            throw .overloaded(uncommittedBytes: uncommittedBytes, uncommittedBytesMax: settings.uncommittedBytesMax)
        }
        begin(now)
        let first = LogPosition(index: log.last.index.next, term: term)
        appendOwn(payloads)
        return (Proposal(first: first, count: commands.count), finish())
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
        // Those who are no longer members after these entries get them, too, as far as they are ready for it.
        for offset in followers.indices { replicate(to: offset) }
        if adoptConfigurations(of: entries) {
            updateFollowers()
            for offset in followers.indices { replicate(to: offset) }
        }
    }
}
