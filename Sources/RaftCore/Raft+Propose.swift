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
        guard role == .leader else { throw .notLeader(hint: leader) }
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

    /// Changes the group's members. Not built yet: always refused.
    public mutating func propose(
        configuration: Configuration, now: MonotonicTime
    ) throws(ProposalError) -> (proposal: Proposal, effects: Effects) {
        guard role == .leader else { throw .notLeader(hint: leader) }
        throw .configurationChangesUnsupported
    }

    /// Appends entries of this term and sends them at once, while the own persist runs (dissertation section 10.2.1).
    mutating func appendOwn(_ payloads: [Entry.Payload]) {
        precondition(role == .leader, "a \(role) appends")
        precondition(output.append.isEmpty, "two appends in one event")
        var index = log.last.index
        let entries = payloads.map { payload in
            index = index.next
            return Entry(index: index, term: term, payload: payload)
        }
        for entry in entries { uncommittedBytes += entry.sizeBytes }
        log.append(entries)
        output.append = entries
        for offset in followers.indices { replicate(to: offset) }
    }
}
