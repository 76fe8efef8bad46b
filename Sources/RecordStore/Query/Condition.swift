import RecordModel

/// A filter in terms of index keys. It is tested against all keys that a record has in the index: none where the record
/// lacks the field, one for a scalar, several for a list or a text's words.
struct Condition {
    enum Test {
        case any([IndexKey])
        case none([IndexKey])
        case all([IndexKey])
        case notAll([IndexKey])
        case within(KeyRange)
        case without(KeyRange)
        /// In cells of the covering, and not farther than the metres.
        case near(Place, metres: Double, covering: [KeyRange])
        /// A key in each of the ranges, or in one of them.
        case words([KeyRange], all: Bool)
    }

    /// One, or for words in any field those of all searchable fields.
    let indexes: [InstalledIndex]
    let test: Test
    /// What the client wrote, for explanations: field and comparator.
    let title: String
    /// Rows that each narrow the records; none where the condition says what is not, or nothing.
    let sources: [EntrySource]
    /// What comparing one of the condition's keys costs.
    private let compareCost: Int

    init(_ indexes: [InstalledIndex], _ test: Test, title: String) {
        self.indexes = indexes
        self.test = test
        self.title = title
        sources = test.narrowing.map { EntrySource(indexes: indexes, ranges: $0, title: title) }
        compareCost = 1 + QueryCost.bytes(test.keyBytesMax)
    }

    var index: InstalledIndex { indexes[0] }
    var isReady: Bool { indexes.allSatisfy(\.isReady) }

    func holds(_ record: inout KeyedRecord) -> Bool {
        switch test {
        case .any(let wanted): shares(wanted, with: &record)
        case .none(let unwanted): !shares(unwanted, with: &record)
        case .all(let wanted): hasAll(wanted, &record)
        case .notAll(let unwanted): !hasAll(unwanted, &record)
        case .within(let range): hasKey(in: range, &record)
        case .without(let range): !hasKey(in: range, &record)
        case .near(let place, let metres, _):
            record.record.place(in: index).map { place.distance(to: $0) <= metres } ?? false
        case .words(let ranges, let all):
            all ? ranges.allSatisfy { hasKey(in: $0, &record) } : ranges.contains { hasKey(in: $0, &record) }
        }
    }

    /// Whether the record has one of some ascending keys. Each key of the shorter list is searched for in the longer
    /// one.
    private func shares(_ wanted: [IndexKey], with record: inout KeyedRecord) -> Bool {
        let keys = record.keys(in: index)
        let (few, many) = keys.count < wanted.count ? (keys, wanted) : (wanted, keys)
        record.charge(few.count * QueryCost.search(many.count) * compareCost)
        return few.contains { many.holds($0) }
    }

    private func hasAll(_ wanted: [IndexKey], _ record: inout KeyedRecord) -> Bool {
        let keys = record.keys(in: index)
        record.charge(wanted.count * QueryCost.search(keys.count) * compareCost)
        return wanted.allSatisfy { keys.holds($0) }
    }

    private func hasKey(in range: KeyRange, _ record: inout KeyedRecord) -> Bool {
        for index in indexes {
            let keys = record.keys(in: index)
            record.charge(QueryCost.search(keys.count) * compareCost)
            if keys.first(in: range) != nil { return true }
        }
        return false
    }

    /// Whether a record without any value in the index passes.
    var holdsWithoutKeys: Bool {
        switch test {
        case .none, .without: true
        case .all(let keys): keys.isEmpty
        case .notAll(let keys): !keys.isEmpty
        case .any, .within, .near, .words: false
        }
    }
}

// MARK: Index rows

/// Rows of indexes such that every record that passes a condition has at least one of them.
struct EntrySource {
    /// Each has rows in the ranges; at least one.
    var indexes: [InstalledIndex]
    /// Ascending, and none overlapping another.
    var ranges: [KeyRange]
    var title: String
    var isReady: Bool { indexes.allSatisfy(\.isReady) }

    /// Where the source is the rows under one key of one index.
    var point: KeyPoint? {
        guard indexes.count == 1, ranges.count == 1, let key = ranges[0].pointKey else { return nil }
        return KeyPoint(index: indexes[0], key: key)
    }
}

extension Condition.Test {
    /// The ranges of each source that the test makes.
    fileprivate var narrowing: [[KeyRange]] {
        switch self {
        case .any(let keys): [keys.map(KeyRange.point)]
        case .all(let keys): keys.map { [.point($0)] }
        case .within(let range): [[range]]
        case .near(_, _, let covering): [covering]
        case .words(let ranges, let all): all ? ranges.map { [$0] } : [KeyRange.union(ranges)]
        case .none, .notAll, .without: []
        }
    }

    /// Bytes of the longest key that records' keys are compared with.
    fileprivate var keyBytesMax: Int {
        func bytes(_ range: KeyRange) -> Int { max(range.lower?.key.byteCount ?? 0, range.upper?.key.byteCount ?? 0) }
        return switch self {
        case .any(let keys), .none(let keys), .all(let keys), .notAll(let keys):
            keys.reduce(0) { max($0, $1.byteCount) }
        case .within(let range), .without(let range): bytes(range)
        case .words(let ranges, _): ranges.reduce(0) { max($0, bytes($1)) }
        case .near: 0
        }
    }
}

extension Condition {
    /// A key that no matching record has; looked up rather than read from the record.
    var unwantedKey: IndexKey? {
        switch test {
        case .none(let keys) where keys.count == 1 && indexes.count == 1: keys[0]
        default: nil
        }
    }
}

extension IndexedRecord {
    /// The location behind a cell index; nil where there is none.
    func place(in index: InstalledIndex) -> Place? {
        guard index.purpose == .cells, case .location(let location)? = fields[index.name] else { return nil }
        return Place(location)
    }
}
