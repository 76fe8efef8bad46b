import RecordModel

/// A filter in terms of index keys, tested against all keys of a record: zero where it lacks the field, one for a
/// scalar, several for a list or a text's words.
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

    /// One index; for words in any field those of all searchable fields.
    let indexes: [InstalledIndex]
    let test: Test
    /// What the client wrote, for explanations: field and comparator.
    let title: String
    /// Rows that each narrow the records; empty for negative conditions.
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
            record.record.place(in: index, by: place.trigonometry).map { place.distance(to: $0) <= metres } ?? false
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

    /// A key that no matching record has; looked up rather than read from the record.
    var unwantedKey: IndexKey? {
        switch test {
        case .none(let keys) where keys.count == 1 && indexes.count == 1: keys[0]
        default: nil
        }
    }
}

// MARK: Index rows

/// Rows of indexes such that every record that passes a condition has at least one of them.
struct EntrySource {
    /// Each has rows in the ranges; at least one.
    var indexes: [InstalledIndex]
    /// Ascending, without overlap.
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

extension IndexedRecord {
    /// The location behind a cell index.
    func place(in index: InstalledIndex, by trigonometry: Trigonometry = .own) -> Place? {
        guard index.purpose == .cells, case .location(let location)? = fields[index.name] else { return nil }
        return Place(location, by: trigonometry)
    }
}

extension Condition {
    /// Translates a filter on a field of an installed type.
    /// - Throws: `BAD_REQUEST` where the field lacks the index or does not go with the comparator or the value.
    init(_ filter: Filter, scope: QueryScope) throws(ServiceError) {
        let indexes: [InstalledIndex]
        let test: Test
        switch filter.comparator {
        case .near:
            let index = try scope.index(filter.field, .cells, .queryable)
            indexes = [index]
            test = try Self.near(filter, index, by: scope.trigonometry)
        case .containsAllTokens, .containsAnyTokens:
            indexes = try scope.searched(filter.field)
            test = try Self.words(filter)
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals:
            let index = try scope.index(filter.field, .values, .sortable)
            indexes = [index]
            test = try Self.range(filter, index)
        default:
            let index = try scope.index(filter.field, .values, .queryable)
            indexes = [index]
            test =
                try index.type.isList
                ? Self.listTest(filter, index) : Self.scalarTest(filter, index, incarnation: scope.incarnation)
        }
        self.init(
            indexes, test, title: "\(filter.field ?? "any searchable field") \(filter.comparator.rawValue)")
    }

    private static func near(
        _ filter: Filter, _ index: InstalledIndex, by trigonometry: Trigonometry
    ) throws(ServiceError) -> Test {
        guard case .location(let location) = filter.value else { throw mismatch(filter.value, index) }
        guard let place = Place(location, by: trigonometry), let metres = filter.distance, metres.isFinite, metres >= 0
        else {
            throw ServiceError(
                .badRequest, "filter on \(index.name): NEAR needs a place and a distance of 0 metres or more")
        }
        let covering = CellCovering.ranges(around: place, outer: metres).map { cells in
            KeyRange(lower: .before(.number(cells.lowerBound)), upper: .after(.number(cells.upperBound)))
        }
        return .near(place, metres: metres, covering: covering)
    }

    private static func words(_ filter: Filter) throws(ServiceError) -> Test {
        guard case .string(let text) = filter.value else { throw unusable(filter) }
        let words = Tokenizer.words(of: text)
        guard !words.isEmpty, words.count <= Limits.inListMax else {
            throw ServiceError(
                .badRequest,
                "filter on \(filter.field ?? "all searchable fields"): \(words.count) words in the text; "
                    + "give 1 to \(Limits.inListMax)")
        }
        let ranges = words.map { $0.isPrefix ? KeyRange.prefix($0.token) : .point(.bytes($0.token)) }
        return .words(ranges, all: filter.comparator == .containsAllTokens)
    }

    private static func range(_ filter: Filter, _ index: InstalledIndex) throws(ServiceError) -> Test {
        guard index.system != .etag, !index.type.isList else { throw unusable(filter) }
        guard let key = index.type.indexKey(filter.value) else { throw mismatch(filter.value, index) }
        return switch filter.comparator {
        case .lessThan: .within(KeyRange(lower: nil, upper: .before(key)))
        case .lessThanOrEquals: .within(KeyRange(lower: nil, upper: .after(key)))
        case .greaterThan: .within(KeyRange(lower: .after(key), upper: nil))
        default: .within(KeyRange(lower: .before(key), upper: nil))
        }
    }

    private static func scalarTest(
        _ filter: Filter, _ index: InstalledIndex, incarnation: UInt64?
    ) throws(ServiceError) -> Test {
        func key(_ value: FieldValue) throws(ServiceError) -> IndexKey {
            index.system == .etag
                ? try tag(value, index, incarnation: incarnation) : try Self.key(value, index)
        }
        switch filter.comparator {
        case .equals: return .any([try key(filter.value)])
        case .notEquals: return .none([try key(filter.value)])
        case .in: return .any(try keys(filter.value, index, key))
        case .notIn: return .none(try keys(filter.value, index, key))
        case .beginsWith: return .within(try prefix(filter, index))
        case .notBeginsWith: return .without(try prefix(filter, index))
        default: throw unusable(filter)
        }
    }

    private static func listTest(_ filter: Filter, _ index: InstalledIndex) throws(ServiceError) -> Test {
        func key(_ value: FieldValue) throws(ServiceError) -> IndexKey { try Self.key(value, index) }
        switch filter.comparator {
        case .listContains: return .all([try key(filter.value)])
        case .notListContains: return .none([try key(filter.value)])
        case .listContainsAll: return .all(try keys(filter.value, index, key))
        case .notListContainsAll: return .notAll(try keys(filter.value, index, key))
        case .listContainsAny: return .any(try keys(filter.value, index, key))
        case .notListContainsAny: return .none(try keys(filter.value, index, key))
        case .listMemberBeginsWith: return .within(try prefix(filter, index))
        case .notListMemberBeginsWith: return .without(try prefix(filter, index))
        default: throw unusable(filter)
        }
    }

    private static func prefix(_ filter: Filter, _ index: InstalledIndex) throws(ServiceError) -> KeyRange {
        guard index.type.settledScalar == .string, index.system == nil, case .string(let text) = filter.value else {
            throw unusable(filter)
        }
        return .prefix(Array(text.utf8))
    }

    private static func key(_ value: FieldValue, _ index: InstalledIndex) throws(ServiceError) -> IndexKey {
        guard let key = index.type.indexKey(value) else { throw mismatch(value, index) }
        return key
    }

    /// A tag of another life of the zone is a key that no record has.
    private static func tag(
        _ value: FieldValue, _ index: InstalledIndex, incarnation: UInt64?
    ) throws(ServiceError) -> IndexKey {
        guard case .string(let text) = value else { throw mismatch(value, index) }
        guard let tag = ChangeTag(text), tag.incarnation == incarnation else { return .number(-1) }
        return .number(Int64(truncatingIfNeeded: tag.sequence))
    }

    /// Ascending, no key twice.
    private static func keys(
        _ value: FieldValue, _ index: InstalledIndex, _ key: (FieldValue) throws(ServiceError) -> IndexKey
    ) throws(ServiceError) -> [IndexKey] {
        guard case .list(_, let members) = value else { throw mismatch(value, index) }
        guard members.count <= Limits.inListMax else {
            throw ServiceError(
                .badRequest, "filter on \(index.name): \(members.count) values, at most \(Limits.inListMax)")
        }
        var keys: Set<IndexKey> = []
        for member in members { keys.insert(try key(member)) }
        return keys.sorted()
    }

    private static func mismatch(_ value: FieldValue, _ index: InstalledIndex) -> ServiceError {
        ServiceError(
            .badRequest,
            "filter on \(index.name): value of type \(value.type.webName) for a field of type "
                + index.type.webName)
    }

    private static func unusable(_ filter: Filter) -> ServiceError {
        ServiceError(
            .badRequest,
            "filter on \(filter.field ?? "all fields"): \(filter.comparator.rawValue) is not supported for its type")
    }
}
