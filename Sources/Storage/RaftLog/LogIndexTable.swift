import RaftCore

/// The index of the whole log: every group and every segment that holds records. Kept under a lock by its owner.
struct LogIndexTable: Sendable {
    private(set) var groups: [GroupID: GroupLog] = [:]
    /// Segments with records, ascending by number; the last is written to.
    private(set) var segments: [Segment] = []

    /// Takes in one record.
    mutating func apply(_ operation: LogOperation) {
        switch operation.change {
        case .watermark: break
        case .removal: groups[operation.group] = nil
        default: groups[operation.group, default: GroupLog()].apply(operation)
        }
    }

    /// Adds the segment that is written to next.
    mutating func add(_ segment: Segment) {
        precondition(segments.last.map { $0.number < segment.number } ?? true, "segment \(segment.number) out of order")
        segments.append(segment)
    }

    /// Has the last segment's records in another file.
    mutating func replaceLast(_ segment: Segment) {
        precondition(segments.last?.number == segment.number, "segment \(segment.number) is not the last")
        segments[segments.count - 1] = segment
    }

    func segment(_ number: UInt64) -> Segment? {
        guard let first = segments.first?.number, number >= first, number - first < UInt64(segments.count) else {
            return nil
        }
        return segments[Int(number - first)]
    }

    /// Notes what a group's state machine has durably; older news is disregarded.
    mutating func setDurable(_ mark: SnapshotMark, of group: GroupID) {
        guard let log = groups[group] else { return }
        if let known = log.durable, known.position.index >= mark.position.index { return }
        groups[group]?.durable = mark
    }

    mutating func settle() -> (group: GroupID, detail: String)? {
        for group in groups.keys.sorted() {
            if let detail = groups[group]?.settle() { return (group, detail) }
        }
        return nil
    }

    /// Forgets the oldest segment. Every group's state in it was written again before.
    mutating func dropOldest() -> Segment {
        let segment = segments.removeFirst()
        for group in groups.keys {
            guard let last = groups[group]?.runs.last(where: { $0.segment <= segment.number }) else { continue }
            groups[group]?.trim(through: last.end.previous)
        }
        return segment
    }

    var sizeBytes: Int { segments.reduce(0) { $0 + $1.sizeBytes } }
}

/// What collection is about to do.
struct CollectionPlan {
    /// How many of the oldest segments go.
    var segments: Int
    /// What must be written again first, sorted by group.
    var carried: [(group: GroupID, change: LogOperation.Change)]
}

extension LogIndexTable {
    /// The oldest segment with an entry of the group that is still needed; nil if the group needs none.
    /// - Parameter keepEntries: how many entries below the durable index count as needed.
    private func neededSegment(of log: GroupLog, keepEntries: Int) -> UInt64? {
        let through = log.collectableMark?.position.index.rawValue ?? 0
        let floor = through > UInt64(keepEntries) ? through - UInt64(keepEntries) : 0
        let first = LogIndex(max(floor + 1, log.firstIndex.rawValue))
        return log.run(holding: first).map { log.runs[$0].segment }
    }

    /// Which segments can go now. The last one never does.
    func collectionPlan(keepEntries: Int) -> CollectionPlan? {
        guard let active = segments.last?.number, let oldest = segments.first?.number else { return nil }
        var needed = active
        for log in groups.values { needed = min(needed, neededSegment(of: log, keepEntries: keepEntries) ?? active) }
        guard needed > oldest else { return nil }
        var carried: [(group: GroupID, change: LogOperation.Change)] = []
        for group in groups.keys.sorted() {
            guard let log = groups[group] else { continue }
            if let segment = log.hardStateSegment, segment < needed {
                carried.append((group, .hardState(log.hardState)))
            }
            let losesEntries = log.runs.first.map { $0.segment < needed } ?? false
            let losesMark = log.markSegment.map { $0 < needed } ?? false
            if losesEntries || losesMark, let mark = log.collectableMark { carried.append((group, .carriedMark(mark))) }
        }
        return CollectionPlan(segments: Int(needed - oldest), carried: carried)
    }

    /// The groups with entries past both their durable index and their snapshot.
    var uncheckpointedGroups: Set<GroupID> {
        Set(groups.lazy.filter { $1.lastIndex > max($1.durable?.position.index ?? .zero, $1.snapshotIndex) }.map(\.key))
    }

    /// The groups that stand in the way of bringing the log down to `sizeBytesTarget`, sorted.
    func pinningGroups(sizeBytesTarget: Int) -> [GroupID] {
        var excess = sizeBytes - sizeBytesTarget
        var through: UInt64?
        for segment in segments.dropLast() where excess > 0 {
            through = segment.number
            excess -= segment.sizeBytes
        }
        guard let through else { return [] }
        return groups.keys.sorted().filter { group in
            guard let log = groups[group], let needed = neededSegment(of: log, keepEntries: 0) else { return false }
            return needed <= through
        }
    }
}

extension GroupLog {
    /// The newest mark up to which entries may go: the durable one if the log has its entry, else the snapshot's.
    ///
    /// For a moment the state machine may have a snapshot of which the log knows nothing yet. The log may then hold entries of another
    /// leader at the mark's index and past it; they do not follow that mark, and go when the log takes it.
    var collectableMark: SnapshotMark? {
        guard let durable, durable.position.index > snapshotIndex, holds(durable.position) else { return snapshot }
        return durable
    }
}
