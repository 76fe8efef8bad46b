import Wire

/// What a replica knows of its log: where it begins and ends, the term of every entry, the latest entries themselves,
/// and how far it is durable, committed and applied.
///
/// Invariants: `snapshot.index <= durable <= last.index`; the cached entries have no gap and end at `last`; every
/// entry that is not durable is cached. At the end of an event also
/// `snapshot.index <= applied <= reported <= min(committed, durable)`, and `committed <= last.index`.
struct RaftLog: Hashable, Sendable {
    /// Everything up to here is gone from the log.
    private(set) var snapshot: LogPosition
    private(set) var last: LogPosition
    /// Everything up to here survives a crash.
    private(set) var durable: LogIndex
    /// Everything up to here is committed.
    private(set) var committed: LogIndex
    /// What the shell was told that it may apply.
    private var reported: LogIndex
    /// What the state machine has.
    private(set) var applied: LogIndex
    private var cachedBytes = 0
    private var runs: TermRuns
    private var cache: [Entry] = []
    /// The term in which the log was last cut. A persist made in an earlier term may still be undone by the persist
    /// of the cut, so it does not count even if it names an entry that the log holds again.
    private var cutTerm = Term.zero

    init(_ restored: RestoredState) {
        snapshot = restored.snapshot.position
        last = restored.lastLog
        durable = restored.lastLog.index
        committed = restored.applied
        reported = restored.applied
        applied = restored.applied
        runs = TermRuns(restored.terms)
        precondition(snapshot.index <= last.index, "the log ends at \(last), before its snapshot at \(snapshot)")
        if snapshot.index == last.index {
            precondition(snapshot == last && restored.terms.isEmpty, "an empty log after \(snapshot) ends at \(last)")
        } else {
            precondition(restored.terms.first?.index == snapshot.index.next, "no term for the entry after \(snapshot)")
            precondition(
                restored.terms.last?.term == last.term, "the last run is not of the last entry's term: \(last)")
            precondition(
                restored.terms.allSatisfy { $0.index <= last.index && $0.term >= snapshot.term },
                "a term run lies outside of \(snapshot)...\(last)")
        }
        precondition(
            applied >= snapshot.index && applied <= last.index,
            "applied to \(applied), but the log is \(snapshot)...\(last)")
        for entry in restored.tail.reversed() {
            let expected = last.index.rawValue - UInt64(cache.count)
            precondition(entry.index.rawValue == expected, "the tail holds \(entry.index), not \(expected)")
            precondition(
                entry.index > snapshot.index, "the tail holds \(entry.index), which the snapshot \(snapshot) covers")
            precondition(term(at: entry.index) == entry.term, "the tail's \(entry.position) is not in the term runs")
            cachedBytes += entry.sizeBytes
            cache.append(entry)
        }
        cache.reverse()
    }

    /// The index of the first entry in memory; one past the last without entries.
    var cacheFirst: LogIndex { cache.first?.index ?? last.index.next }

    /// The commit index that others are told: never more than is durable here.
    var announced: LogIndex { min(committed, durable) }

    /// The entry's term; nil if it is compacted away or beyond the end.
    func term(at index: LogIndex) -> Term? {
        if index > last.index || index < snapshot.index { return nil }
        return index == snapshot.index ? snapshot.term : runs.term(at: index)
    }

    func contains(_ position: LogPosition) -> Bool { term(at: position.index) == position.term }

    /// The greatest index up to `limit` whose term is at most `term`.
    func greatestIndex(through limit: LogIndex, termAtMost term: Term) -> LogIndex? {
        let limit = min(limit, last.index)
        if let found = runs.greatestIndex(through: limit, termAtMost: term) { return found }
        return limit >= snapshot.index && snapshot.term <= term ? snapshot.index : nil
    }

    /// Entries from memory: at least one if the range holds any, and no more than `bytesMax`; nil if `from` is not in
    /// memory.
    func cached(from: LogIndex, through: LogIndex, bytesMax: Int) -> [Entry]? {
        if from > last.index || from > through { return [] }
        guard from >= cacheFirst else { return nil }
        let start = Int(from.rawValue - cacheFirst.rawValue)
        let limit = Int(min(through, last.index).rawValue - cacheFirst.rawValue) + 1
        var end = start
        var bytes = 0
        while end < limit {
            bytes += cache[end].sizeBytes
            if end > start, bytes > bytesMax { break }
            end += 1
        }
        return Array(cache[start..<end])
    }

    /// The size of a range's entries, as far as they are in memory.
    func cachedBytes(after: LogIndex, through: LogIndex) -> Int {
        let from = max(after.next, cacheFirst)
        guard from <= through else { return 0 }
        let start = Int(from.rawValue - cacheFirst.rawValue)
        let end = Int(through.rawValue - cacheFirst.rawValue)
        precondition(end < cache.count, "entries through \(through) of a log that ends at \(last)")
        return cache[start...end].reduce(0) { $0 + $1.sizeBytes }
    }

    /// Puts entries at the end. They are not durable yet.
    mutating func append(_ entries: [Entry]) {
        for entry in entries {
            precondition(entry.index == last.index.next, "entry \(entry.position) after \(last)")
            precondition(entry.term >= last.term, "entry \(entry.position) after \(last)")
            runs.append(entry.position)
            cache.append(entry)
            cachedBytes += entry.sizeBytes
            last = entry.position
        }
    }

    /// Cuts off everything at and after `index`, in favour of a leader of `term`.
    mutating func truncate(from index: LogIndex, term: Term) {
        precondition(index > snapshot.index, "a cut at \(index) would reach into the snapshot at \(snapshot)")
        precondition(index <= last.index, "a cut at \(index) of a log that ends at \(last)")
        precondition(cutTerm < term, "a second cut in term \(term): its leader's log shrank, or there are two leaders")
        guard let previousTerm = self.term(at: index.previous) else {
            preconditionFailure("no term at \(index.previous), snapshot \(snapshot), last \(last)")
        }
        while let entry = cache.last, entry.index >= index {
            cachedBytes -= entry.sizeBytes
            cache.removeLast()
        }
        runs.truncate(from: index)
        last = LogPosition(index: index.previous, term: previousTerm)
        durable = min(durable, last.index)
        cutTerm = term
    }

    /// Notes that everything up to `position` is on disk, if it still names an entry of this log and no cut is under
    /// way.
    mutating func persisted(_ position: LogPosition, inTerm term: Term) {
        if term >= cutTerm, contains(position) { durable = max(durable, position.index) }
        precondition(durable <= last.index, "durable to \(durable) in a log that ends at \(last)")
    }

    /// Notes that everything up to `index` is committed.
    mutating func commit(through index: LogIndex) {
        precondition(
            index <= last.index,
            "committed to \(index), but the log ends at \(last): it lost entries that it had acknowledged")
        committed = max(committed, index)
    }

    /// Takes the index up to which entries may be applied; nil if it was taken before.
    mutating func report() -> LogIndex? {
        guard announced > reported else { return nil }
        reported = announced
        return reported
    }

    /// Notes that the state machine has everything up to `index`.
    mutating func apply(through index: LogIndex) {
        precondition(index <= reported, "applied \(index), but only \(reported) was allowed")
        // A report from before a snapshot was installed is late, not wrong.
        applied = max(applied, index)
    }

    /// Traps unless the indices are in order at the end of an event.
    func checkInvariants() {
        precondition(snapshot.index <= applied, "applied \(applied), snapshot \(snapshot)")
        precondition(applied <= reported, "applied \(applied) of \(reported)")
        precondition(reported <= committed, "reported \(reported) of \(committed)")
        precondition(reported <= durable, "reported \(reported), durable \(durable)")
        precondition(committed <= last.index, "committed \(committed), log ends at \(last)")
    }

    /// Forgets everything up to `index`, which is in the state machine.
    mutating func compact(through index: LogIndex) {
        precondition(index >= snapshot.index && index <= durable, "compaction to \(index): \(snapshot)...\(durable)")
        guard let term = term(at: index) else { preconditionFailure("no term at \(index)") }
        runs.compact(through: index, last: last.index)
        snapshot = LogPosition(index: index, term: term)
        dropCached(through: index)
    }

    /// Forgets everything; the log goes on after `snapshot`, which is in the state machine.
    mutating func reset(to snapshot: LogPosition, term: Term) {
        precondition(snapshot.index > self.snapshot.index, "a reset from \(self.snapshot) back to \(snapshot)")
        self.snapshot = snapshot
        last = snapshot
        durable = snapshot.index
        committed = snapshot.index
        reported = snapshot.index
        applied = snapshot.index
        runs = TermRuns([])
        cache = []
        cachedBytes = 0
        cutTerm = max(cutTerm, term)
    }

    /// Frees memory: entries that are applied first, entries that are only committed if there are far too many.
    mutating func trim(toBytes bytesMax: Int) {
        trim(toBytes: bytesMax, keepingAfter: applied)
        trim(toBytes: 4 * bytesMax, keepingAfter: committed)
    }

    /// Drops the oldest entries from memory until a quarter of `bytesMax` is free, but only durable ones up to `keep`.
    private mutating func trim(toBytes bytesMax: Int, keepingAfter keep: LogIndex) {
        guard cachedBytes > bytesMax else { return }
        var bytes = cachedBytes
        var cut: LogIndex?
        for entry in cache {
            if bytes <= bytesMax / 4 * 3 || entry.index > keep || entry.index > durable { break }
            bytes -= entry.sizeBytes
            cut = entry.index
        }
        if let cut { dropCached(through: cut) }
    }

    private mutating func dropCached(through index: LogIndex) {
        guard index >= cacheFirst else { return }
        let count = min(cache.count, Int(index.rawValue - cacheFirst.rawValue) + 1)
        for entry in cache[..<count] { cachedBytes -= entry.sizeBytes }
        cache.removeFirst(count)
        precondition(cachedBytes >= 0, "\(cachedBytes) bytes in memory")
    }
}

/// The term of every entry of a log, as the first position of each run of equal terms.
///
/// A term lasts from one election to the next, so the list is short however long the log. Indices and terms both grow.
struct TermRuns: Hashable, Sendable {
    private(set) var starts: [LogPosition]

    init(_ starts: [LogPosition]) {
        for (left, right) in zip(starts, starts.dropFirst()) {
            precondition(left.index < right.index && left.term < right.term, "term runs \(left), \(right) do not grow")
        }
        self.starts = starts
    }

    /// The term at an index that is at or after the first start; nil before it.
    func term(at index: LogIndex) -> Term? {
        // The last entries are asked for most.
        if let last = starts.last, last.index <= index { return last.term }
        let next = starts.prefixEnd { $0.index <= index }
        return next == 0 ? nil : starts[next - 1].term
    }

    /// The greatest index up to `limit` whose term is at most `term`.
    func greatestIndex(through limit: LogIndex, termAtMost term: Term) -> LogIndex? {
        var end = limit
        for start in starts.reversed() where start.index <= limit {
            if start.term <= term { return end }
            end = start.index.previous
        }
        return nil
    }

    mutating func append(_ position: LogPosition) {
        if let last = starts.last {
            precondition(last.term <= position.term, "term \(position.term) after \(last.term)")
            precondition(last.index < position.index, "index \(position.index) after \(last.index)")
            if last.term == position.term { return }
        }
        starts.append(position)
    }

    /// Forgets everything at and after `index`.
    mutating func truncate(from index: LogIndex) {
        while let last = starts.last, last.index >= index { starts.removeLast() }
    }

    /// Forgets everything up to `index`; `last` is where the log ends.
    mutating func compact(through index: LogIndex, last: LogIndex) {
        precondition(index <= last, "compaction to \(index) of a log that ends at \(last)")
        guard let term = term(at: index.next), index < last else {
            starts = []
            return
        }
        starts.removeAll { $0.index <= index.next }
        starts.insert(LogPosition(index: index.next, term: term), at: 0)
    }
}
