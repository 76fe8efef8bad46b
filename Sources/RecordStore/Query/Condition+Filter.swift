import RecordModel

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
            test = try Self.near(filter, index)
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

    private static func near(_ filter: Filter, _ index: InstalledIndex) throws(ServiceError) -> Test {
        guard case .location(let location) = filter.value else { throw mismatch(filter.value, index) }
        guard let place = Place(location), let metres = filter.distance, metres.isFinite, metres >= 0 else {
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
