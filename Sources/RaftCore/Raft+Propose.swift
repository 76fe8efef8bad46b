extension Raft {
    /// Appends commands, which may then be committed or, after a change of leader, lost: as many from the first on as may be
    /// uncommitted. The others were not appended, and proposing them again later is safe.
    ///
    /// - Returns: where they are, how many they are, and what to do.
    /// - Throws: `ProposalError` if nothing was appended.
    /// - Precondition: there is at least one command.
    public mutating func propose(
        _ commands: [[UInt8]], now: MonotonicTime
    ) throws(ProposalError) -> (proposal: Proposal, effects: Effects) {
        precondition(!commands.isEmpty, "a proposal of no commands")
        guard role == .leader, transfer == nil else { throw .notLeader(hint: transfer?.target ?? leader) }
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
        // Those who are no longer members after these entries get them, too, as far as they are ready for it.
        for offset in followers.indices { replicate(to: offset) }
        if adoptConfigurations(of: entries) {
            updateFollowers()
            for offset in followers.indices { replicate(to: offset) }
        }
    }
}
