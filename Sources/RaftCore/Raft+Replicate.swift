extension Raft {
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

    /// The connection to a replica broke: appends under way are taken for lost, and a leader for dead unless it is heard
    /// again soon. A transport that cannot tell reports nothing; then heartbeats and election timeouts find it out. One that
    /// can reports with `peerConnected` that there is a connection again.
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
}
