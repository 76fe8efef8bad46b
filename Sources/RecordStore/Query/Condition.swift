import RecordModel

/// A filter in terms of index keys. It is tested against all keys that a record has in the index: none where the record
/// lacks the field, one for a scalar, several for a list.
struct Condition {
    enum Test {
        case any([IndexKey])
        case none([IndexKey])
        case all([IndexKey])
        case notAll([IndexKey])
        case within(KeyRange)
        case without(KeyRange)
    }

    var index: InstalledIndex
    var test: Test

    func holds(_ keys: [IndexKey]) -> Bool {
        switch test {
        case .any(let wanted): keys.contains { wanted.contains($0) }
        case .none(let unwanted): !keys.contains { unwanted.contains($0) }
        case .all(let wanted): wanted.allSatisfy { keys.contains($0) }
        case .notAll(let unwanted): !unwanted.allSatisfy { keys.contains($0) }
        case .within(let range): keys.contains { range.contains($0) }
        case .without(let range): !keys.contains { range.contains($0) }
        }
    }

    /// A key that every matching record has, exactly once in the index.
    var drivingKey: IndexKey? {
        switch test {
        case .any(let keys) where keys.count == 1: keys.first
        case .all(let keys): keys.first
        default: nil
        }
    }

    /// Ascending ranges that hold every matching key of a scalar field; nil if the condition narrows nothing.
    var ranges: [KeyRange]? {
        switch test {
        case .any(let keys): keys.map(KeyRange.point)
        case .all(let keys): keys.first.map { [.point($0)] }
        case .within(let range): [range]
        case .none, .notAll, .without: nil
        }
    }
}

extension Condition {
    /// Translates a filter on a field of an installed type.
    init(_ filter: Filter, type: InstalledType, zone: ZoneRow) throws(ServiceError) {
        guard let index = type.index(named: filter.field) else {
            throw Self.notMarked(filter.field, type: type, "queryable")
        }
        let needsSortable: Bool
        switch filter.comparator {
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals: needsSortable = true
        default: needsSortable = false
        }
        guard index.options.contains(needsSortable ? .sortable : .queryable) else {
            throw Self.notMarked(filter.field, type: type, needsSortable ? "sortable" : "queryable")
        }
        self.index = index
        test =
            try index.type.isList
            ? Self.listTest(filter, index) : Self.scalarTest(filter, index, zone: zone)
    }

    private static func scalarTest(
        _ filter: Filter, _ index: InstalledIndex, zone: ZoneRow
    ) throws(ServiceError) -> Test {
        let value = filter.value
        switch filter.comparator {
        case .equals: return .any([try key(value, index, zone)])
        case .notEquals: return .none([try key(value, index, zone)])
        case .in: return .any(try keys(value, index, zone))
        case .notIn: return .none(try keys(value, index, zone))
        case .beginsWith: return .within(try prefix(filter, index))
        case .notBeginsWith: return .without(try prefix(filter, index))
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals:
            guard index.system != .etag else { throw unusable(filter) }
            let key = try key(value, index, zone)
            return .within(range(filter.comparator, key))
        default: throw unusable(filter)
        }
    }

    private static func listTest(_ filter: Filter, _ index: InstalledIndex) throws(ServiceError) -> Test {
        switch filter.comparator {
        case .listContains: return .all([try key(filter.value, index, nil)])
        case .notListContains: return .none([try key(filter.value, index, nil)])
        case .listContainsAll: return .all(try keys(filter.value, index, nil))
        case .notListContainsAll: return .notAll(try keys(filter.value, index, nil))
        case .listContainsAny: return .any(try keys(filter.value, index, nil))
        case .notListContainsAny: return .none(try keys(filter.value, index, nil))
        case .listMemberBeginsWith: return .within(try prefix(filter, index))
        case .notListMemberBeginsWith: return .without(try prefix(filter, index))
        default: throw unusable(filter)
        }
    }

    private static func range(_ comparator: Comparator, _ key: IndexKey) -> KeyRange {
        switch comparator {
        case .lessThan: KeyRange(lower: nil, upper: .before(key))
        case .lessThanOrEquals: KeyRange(lower: nil, upper: .after(key))
        case .greaterThan: KeyRange(lower: .after(key), upper: nil)
        default: KeyRange(lower: .before(key), upper: nil)
        }
    }

    private static func prefix(_ filter: Filter, _ index: InstalledIndex) throws(ServiceError) -> KeyRange {
        guard index.type.settledScalar == .string, index.system == nil, case .string(let text) = filter.value else {
            throw unusable(filter)
        }
        return .prefix(Array(text.utf8))
    }

    /// A tag of another life of the zone is a key that no record has.
    private static func key(
        _ value: FieldValue, _ index: InstalledIndex, _ zone: ZoneRow?
    ) throws(ServiceError) -> IndexKey {
        if index.system == .etag, let zone {
            guard case .string(let text) = value else { throw mismatch(value, index) }
            guard let tag = ChangeTag(text), zone.changeTag(Int64(truncatingIfNeeded: tag.sequence)) == tag else {
                return .number(-1)
            }
            return .number(Int64(truncatingIfNeeded: tag.sequence))
        }
        guard let key = index.type.indexKey(value) else { throw mismatch(value, index) }
        return key
    }

    /// Ascending, no key twice.
    private static func keys(
        _ value: FieldValue, _ index: InstalledIndex, _ zone: ZoneRow?
    ) throws(ServiceError) -> [IndexKey] {
        guard case .list(_, let members) = value else { throw mismatch(value, index) }
        guard members.count <= Limits.inListMax else {
            throw ServiceError(
                .badRequest, "filter on \(index.name): \(members.count) values, at most \(Limits.inListMax)")
        }
        var keys: Set<IndexKey> = []
        for member in members { keys.insert(try key(member, index, zone)) }
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
            .badRequest, "filter on \(filter.field): \(filter.comparator.rawValue) is not supported for its type")
    }

    static func notMarked(_ field: String, type: InstalledType, _ option: String) -> ServiceError {
        if SystemField(rawValue: field) == nil && type.fields[field] == nil {
            return ServiceError(.badRequest, "record type \(type.definition.name) has no field \(field)")
        }
        let name = field == SystemField.recordID.rawValue ? "recordName" : field
        return ServiceError(.badRequest, "Field '\(name)' is not marked \(option)")
    }
}
