import RaftCore
import Wire

/// The places of one group's entries, and the state that must survive collection. It takes 8 bytes an entry and 40 a
/// run.
struct GroupLog {
    /// A place in a known segment.
    struct Place {
        var offset: UInt32
        var sizeBytes: UInt32
    }

    /// Consecutive entries in one segment.
    struct Run {
        var segment: UInt64
        var first: LogIndex
        var places: [Place]
        /// The index after the last.
        var end: LogIndex { LogIndex(first.rawValue + UInt64(places.count)) }
    }

    private(set) var hardState = HardState()
    /// The segment with the newest record of the hard state; nil if there never was one.
    private(set) var hardStateSegment: UInt64?
    private(set) var snapshot: SnapshotMark?
    private(set) var markSegment: UInt64?
    /// The index before the first entry held.
    private(set) var base = LogIndex.zero
    private(set) var runs: [Run] = []
    private(set) var terms: [LogPosition] = []
    private(set) var configurations: [PlacedConfiguration] = []
    /// The index up to which the state machine is durable.
    var durable: SnapshotMark?
    /// Where copies of the state machine stand that are on their way to followers, by copy: who gets one goes on with
    /// the entries past it.
    var copies: [UInt64: LogIndex] = [:]

    var firstIndex: LogIndex { base.next }
    var lastIndex: LogIndex { runs.last?.end.previous ?? base }
    /// Entries must follow this index or a later one.
    var snapshotIndex: LogIndex { snapshot?.position.index ?? .zero }

    /// The term of an entry held, or of the snapshot.
    func term(at index: LogIndex) -> Term? {
        if index > base, index <= lastIndex { return terms.last { $0.index <= index }?.term }
        return index == snapshotIndex ? snapshot?.position.term ?? .zero : nil
    }

    /// Whether a mark at this position leaves the entries after it standing.
    func holds(_ position: LogPosition) -> Bool { term(at: position.index) == position.term }

    /// Adds one record. Records come in the order of the log.
    mutating func apply(_ operation: LogOperation) {
        let segment = operation.address.segment
        switch operation.change {
        case .hardState(let hardState):
            self.hardState = hardState
            hardStateSegment = segment
        case .entry(let position, let configuration):
            let place = Place(offset: UInt32(operation.address.offset), sizeBytes: UInt32(operation.sizeBytes))
            append(position, at: place, in: segment, configuration: configuration)
        case .trim(let mark):
            take(mark, in: segment)
            if mark.position.index > lastIndex {
                clear(base: mark.position.index)
            } else {
                trim(through: mark.position.index)
            }
        case .reset(let mark):
            take(mark, in: segment)
            clear(base: mark.position.index)
        case .carriedMark(let mark):
            take(mark, in: segment)
            if runs.isEmpty || mark.position.index > lastIndex { clear(base: mark.position.index) }
        case .removal, .watermark: break
        }
    }

    private mutating func take(_ mark: SnapshotMark, in segment: UInt64) {
        snapshot = mark
        markSegment = segment
    }

    private mutating func append(
        _ position: LogPosition, at place: Place, in segment: UInt64, configuration: Configuration?
    ) {
        let index = position.index
        if index <= lastIndex {
            removeSuffix(from: index)
        } else if index != lastIndex.next {
            // Only while reading a log back whose older segments were collected: what went before is gone or
            // overwritten.
            clear(base: index.previous)
        }
        if runs.isEmpty { base = index.previous }
        precondition(lastIndex.next == index, "entry \(index) would follow \(lastIndex)")
        if let last = runs.indices.last, runs[last].segment == segment {
            if let before = runs[last].places.last {
                precondition(
                    place.offset >= before.offset + before.sizeBytes,
                    "entry \(index) is at \(place.offset), within the one before it at \(before.offset)")
            }
            runs[last].places.append(place)
        } else {
            precondition(
                runs.last.map { $0.segment < segment } ?? true,
                "entry \(index) is in segment \(segment), before \(runs.last?.segment ?? 0)")
            runs.append(Run(segment: segment, first: index, places: [place]))
        }
        if terms.last?.term != position.term { terms.append(position) }
        if let configuration { configurations.append(PlacedConfiguration(index: index, configuration: configuration)) }
    }

    private mutating func clear(base: LogIndex) {
        runs = []
        terms = []
        configurations = []
        self.base = base
    }

    private mutating func removeSuffix(from index: LogIndex) {
        while let last = runs.indices.last, runs[last].end > index {
            if runs[last].first >= index {
                runs.removeLast()
            } else {
                runs[last].places.removeLast(Int(runs[last].end.rawValue - index.rawValue))
            }
        }
        precondition(
            runs.last.map { $0.end <= index } ?? true, "entries from \(index) on are gone, and \(lastIndex) is there")
        while let last = terms.last, last.index >= index { terms.removeLast() }
        while let last = configurations.last, last.index >= index { configurations.removeLast() }
    }

    /// Forgets the entries up to and with `index`, which is at most the last.
    mutating func trim(through index: LogIndex) {
        guard index > base else { return }
        precondition(index <= lastIndex, "the log ends at \(lastIndex), and would be trimmed to \(index)")
        let gone = runs.prefix { $0.end <= index.next }.count
        runs.removeFirst(gone)
        if let first = runs.first, first.first <= index {
            runs[0].places.removeFirst(Int(index.rawValue - first.first.rawValue + 1))
            runs[0].first = index.next
        }
        let next = index.next
        let runTerm = terms.last { $0.index <= next }?.term
        terms.removeAll { $0.index <= next }
        if let runTerm, !runs.isEmpty { terms.insert(LogPosition(index: next, term: runTerm), at: 0) }
        configurations.removeAll { $0.index <= index }
        base = index
        precondition(
            runs.first.map { $0.first == next && !$0.places.isEmpty } ?? true,
            "the log was trimmed to \(index), and begins at \(runs.first?.first ?? .zero)")
    }

    /// The run that holds an index.
    func run(holding index: LogIndex) -> Int? {
        let place = runs.prefixEnd { $0.end <= index }
        return place < runs.count && runs[place].first <= index ? place : nil
    }

    /// The newest mark up to which entries may go: the durable one if the log has its entry, else the snapshot's.
    ///
    /// For a moment the state machine may have a snapshot of which the log knows nothing yet. The log may then hold
    /// entries of another leader at the mark's index and past it; they do not follow that mark, and go when the log
    /// takes it.
    var collectableMark: SnapshotMark? {
        guard let durable, durable.position.index > snapshotIndex, holds(durable.position) else { return snapshot }
        return durable
    }
}

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

    /// Notes the index up to which a group's state machine is durable. An older one is ignored.
    mutating func setDurable(_ mark: SnapshotMark, of group: GroupID) {
        guard let log = groups[group] else { return }
        if let known = log.durable, known.position.index >= mark.position.index { return }
        groups[group]?.durable = mark
    }

    /// Notes where a copy stands that is on its way to a follower; nil: it is not any more.
    mutating func setCopy(_ id: UInt64, at index: LogIndex?, of group: GroupID) { groups[group]?.copies[id] = index }

    mutating func settle() -> (group: GroupID, detail: String)? {
        for group in groups.keys.sorted() {
            if let detail = groups[group]?.settle() { return (group, detail) }
        }
        return nil
    }

    /// Forgets the oldest segment. Every group's state in it was written again before.
    mutating func dropOldest() -> Segment {
        precondition(segments.count > 1, "the segment that is written to would be dropped")
        let segment = segments.removeFirst()
        for group in groups.keys {
            guard let last = groups[group]?.runs.last(where: { $0.segment <= segment.number }) else { continue }
            groups[group]?.trim(through: last.end.previous)
        }
        return segment
    }

    var sizeBytes: Int { segments.reduce(0) { $0 + $1.sizeBytes } }

    /// The oldest segment with an entry that the group still needs.
    /// - Parameters:
    ///   - keepEntries: how many entries below the durable index count as needed.
    ///   - forCopies: whether those count that come after copies on their way to followers.
    private func neededSegment(of log: GroupLog, keepEntries: Int, forCopies: Bool) -> UInt64? {
        let through = log.collectableMark?.position.index.rawValue ?? 0
        var floor = through > UInt64(keepEntries) ? through - UInt64(keepEntries) : 0
        if forCopies, let copy = log.copies.values.min() { floor = min(floor, copy.rawValue) }
        let first = LogIndex(max(floor + 1, log.firstIndex.rawValue))
        return log.run(holding: first).map { log.runs[$0].segment }
    }

    /// How the oldest segment can go now; nil where it is needed. The last one always is.
    func collectionPlan(keepEntries: Int, forCopies: Bool) -> CollectionPlan? {
        guard let active = segments.last?.number, let oldest = segments.first?.number else { return nil }
        var needed = active
        for log in groups.values {
            needed = min(needed, neededSegment(of: log, keepEntries: keepEntries, forCopies: forCopies) ?? active)
        }
        guard needed > oldest else { return nil }
        let next = oldest + 1
        var carried: [(group: GroupID, change: LogOperation.Change)] = []
        for group in groups.keys.sorted() {
            guard let log = groups[group] else { continue }
            if let segment = log.hardStateSegment, segment < next {
                carried.append((group, .hardState(log.hardState)))
            }
            let losesEntries = log.runs.first.map { $0.segment < next } ?? false
            let losesMark = log.markSegment.map { $0 < next } ?? false
            if losesEntries || losesMark, let mark = log.collectableMark { carried.append((group, .carriedMark(mark))) }
        }
        precondition(needed <= active, "segment \(needed) is needed, and \(active) is written to")
        return CollectionPlan(carried: carried)
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
            guard let log = groups[group] else { return false }
            return neededSegment(of: log, keepEntries: 0, forCopies: false).map { $0 <= through } ?? false
        }
    }
}

/// The plan of dropping the oldest segment.
struct CollectionPlan {
    /// The records that must be written again first, sorted by group.
    var carried: [(group: GroupID, change: LogOperation.Change)]
}

/// A place in the log: a segment's number, which is its generation, and a byte offset in it. Ordered as written.
struct LogAddress: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    /// Number in the upper 32 bits, offset in the lower.
    var rawValue: UInt64

    init(rawValue: UInt64) { self.rawValue = rawValue }

    init(segment: UInt64, offset: Int) {
        precondition(segment <= UInt64(UInt32.max), "segment number \(segment) does not fit in 32 bits")
        rawValue = segment << 32 | UInt64(UInt32(offset))
    }

    var segment: UInt64 { rawValue >> 32 }
    var offset: Int { Int(rawValue & 0xFFFF_FFFF) }
    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// Before everything.
    static let start = LogAddress(rawValue: 0)
    var description: String { "\(segment):\(offset)" }
}
