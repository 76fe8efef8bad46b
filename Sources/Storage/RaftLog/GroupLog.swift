import RaftCore

/// Where one group's entries are, and what must not be forgotten of it. 8 bytes an entry, and 40 a run.
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
    /// What the state machine has durably.
    var durable: SnapshotMark?

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

    /// Takes in one record. Records come in the order of the log.
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
        if let last = runs.indices.last, runs[last].segment == segment {
            runs[last].places.append(place)
        } else {
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
        while let last = terms.last, last.index >= index { terms.removeLast() }
        while let last = configurations.last, last.index >= index { configurations.removeLast() }
    }

    /// Forgets the entries up to and with `index`, which is at most the last.
    mutating func trim(through index: LogIndex) {
        guard index > base else { return }
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
    }

    /// The run that holds an index.
    func run(holding index: LogIndex) -> Int? {
        var low = 0
        var high = runs.count
        while low < high {
            let middle = (low + high) / 2
            if runs[middle].end <= index { low = middle + 1 } else { high = middle }
        }
        return low < runs.count && runs[low].first <= index ? low : nil
    }
}
