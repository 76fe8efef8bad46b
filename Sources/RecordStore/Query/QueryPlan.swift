import RecordModel

/// A query translated for one installed type.
struct QueryPlan {
    struct SortKey {
        var index: InstalledIndex
        var isAscending: Bool
    }

    var type: InstalledType
    var conditions: [Condition]
    /// The order, with the record id as the tie break. Empty: by record id alone, for which some condition has a
    /// driving key.
    var sorts: [SortKey]
    /// Ties go the way of the first sort, which is the way its index is read.
    var tiesAscend: Bool { sorts.first?.isAscending ?? true }

    init(_ query: Query, type: InstalledType, zone: ZoneRow) throws(ServiceError) {
        guard query.filters.count <= Limits.filtersMax, query.sorts.count <= Limits.sortsMax else {
            throw ServiceError(
                .badRequest, "at most \(Limits.filtersMax) filters and \(Limits.sortsMax) sort keys in a query")
        }
        self.type = type
        conditions = []
        for filter in query.filters { conditions.append(try Condition(filter, type: type, zone: zone)) }
        sorts = []
        for sort in query.sorts {
            guard let index = type.index(named: sort.field), index.options.contains(.sortable), !index.type.isList
            else {
                throw Condition.notMarked(sort.field, type: type, "sortable")
            }
            sorts.append(SortKey(index: index, isAscending: sort.isAscending))
        }
        if sorts.isEmpty, !conditions.contains(where: { $0.drivingKey != nil }) {
            sorts = [SortKey(index: try Self.drivingIndex(conditions, type: type), isAscending: true)]
        }
    }

    /// The index to read through where the query names neither an order nor a value: that of the first filter that
    /// narrows it, else all records by name, else the first filter's. It depends on the query and the schema only, so
    /// that a cursor means the same on every page.
    private static func drivingIndex(
        _ conditions: [Condition], type: InstalledType
    ) throws(ServiceError) -> InstalledIndex {
        let scalars = conditions.filter { !$0.index.type.isList }
        if let narrowing = scalars.first(where: { $0.ranges != nil }) { return narrowing.index }
        let recordID = SystemField.recordID.rawValue
        if let all = type.index(named: recordID), all.options.contains(.queryable) { return all }
        if let first = scalars.first { return first.index }
        throw Condition.notMarked(recordID, type: type, "queryable")
    }

    /// Whether a position comes before another in the query's order.
    func precedes(_ left: (keys: [IndexKey?], id: Int64), _ right: (keys: [IndexKey?], id: Int64)) -> Bool {
        for (offset, sort) in sorts.enumerated() where left.keys[offset] != right.keys[offset] {
            let isLess: Bool
            switch (left.keys[offset], right.keys[offset]) {
            case (let left?, let right?): isLess = left < right
            case (nil, _): isLess = true
            case (_, nil): isLess = false
            }
            return isLess == sort.isAscending
        }
        return tiesAscend ? left.id < right.id : left.id > right.id
    }

    /// Whether a record comes after a cursor's position.
    func isAfter(_ cursor: QueryCursor, keys: [IndexKey?], id: Int64) -> Bool {
        if let recordID = cursor.recordID { return precedes((cursor.keys, recordID), (keys, id)) }
        for (offset, key) in cursor.keys.enumerated() where key != keys[offset] {
            return precedes((cursor.keys + keys.dropFirst(cursor.keys.count), id), (keys, id))
        }
        return false
    }

    /// Whether a cursor can be a position in this order.
    func accepts(_ cursor: QueryCursor) -> Bool {
        let fits = zip(cursor.keys, sorts).allSatisfy { key, sort in
            switch key {
            case nil: true
            case .number: sort.index.indexClass == .number
            case .bytes: sort.index.indexClass == .bytes
            }
        }
        guard fits else { return false }
        return cursor.recordID == nil
            ? !cursor.keys.isEmpty && cursor.keys.count < sorts.count : cursor.keys.count == sorts.count
    }
}
