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
    var indexes: [InstalledIndex]
    var test: Test
    /// What the client wrote, for explanations: field and comparator.
    var title: String

    var index: InstalledIndex { indexes[0] }
    var isReady: Bool { indexes.allSatisfy(\.isReady) }

    func holds(_ record: IndexedRecord) -> Bool {
        switch test {
        case .any(let wanted): keys(record).contains { wanted.contains($0) }
        case .none(let unwanted): !keys(record).contains { unwanted.contains($0) }
        case .all(let wanted):
            { keys in wanted.allSatisfy { keys.contains($0) } }(keys(record))
        case .notAll(let unwanted):
            { keys in !unwanted.allSatisfy { keys.contains($0) } }(keys(record))
        case .within(let range): keys(record).contains { range.contains($0) }
        case .without(let range): !keys(record).contains { range.contains($0) }
        case .near(let place, let metres, _):
            record.place(in: index).map { place.distance(to: $0) <= metres } ?? false
        case .words(let ranges, let all):
            { keys in
                all
                    ? ranges.allSatisfy { keys.holdsAny(in: $0) } : ranges.contains { keys.holdsAny(in: $0) }
            }(keys(record))
        }
    }

    /// Ascending where there is one index.
    private func keys(_ record: IndexedRecord) -> [IndexKey] {
        indexes.count == 1 ? record.keys(in: index) : indexes.flatMap { record.keys(in: $0) }
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

extension [IndexKey] {
    fileprivate func holdsAny(in range: KeyRange) -> Bool { contains { range.contains($0) } }
}

// MARK: Index rows

/// Rows of indexes such that every record that passes a condition has at least one of them.
struct EntrySource {
    struct Part {
        var index: InstalledIndex
        /// Ascending within one index, and none overlapping another.
        var range: KeyRange
    }

    var parts: [Part]
    var title: String
    var isReady: Bool { parts.allSatisfy(\.index.isReady) }

    /// Where the source is the rows under one key of one index.
    var point: KeyPoint? {
        guard parts.count == 1, let key = parts[0].range.pointKey else { return nil }
        return KeyPoint(index: parts[0].index, key: key)
    }
}

extension Condition {
    /// Sources that each narrow the records; none where the condition says what is not, or nothing.
    var sources: [EntrySource] {
        switch test {
        case .any(let keys): [source(keys.map(KeyRange.point))]
        case .all(let keys): keys.map { source([.point($0)]) }
        case .within(let range): [source([range])]
        case .near(_, _, let covering): [source(covering)]
        case .words(let ranges, let all):
            all ? ranges.map { source([$0]) } : [source(KeyRange.union(ranges))]
        case .none, .notAll, .without: []
        }
    }

    private func source(_ ranges: [KeyRange]) -> EntrySource {
        EntrySource(
            parts: indexes.flatMap { index in ranges.map { EntrySource.Part(index: index, range: $0) } }, title: title)
    }

    /// The source whose rows, in order, can be the order of a query that names none.
    var orderingSource: EntrySource? { sources.first }

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
