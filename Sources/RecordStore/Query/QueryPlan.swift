import RecordModel

/// A query translated for one installed type: what its records must be, and their order. A function of the query and
/// the schema, so that a cursor means the same on every page, whatever way the page is read.
struct QueryPlan {
    var type: InstalledType
    var conditions: [Condition]
    var order: QueryOrder

    /// - Throws: `BAD_REQUEST` where the query asks for what the schema does not have; a retry does not help.
    init(_ query: Query, scope: QueryScope) throws(ServiceError) {
        guard query.filters.count <= Limits.filtersMax, query.sorts.count <= Limits.sortsMax else {
            throw ServiceError(
                .badRequest, "at most \(Limits.filtersMax) filters and \(Limits.sortsMax) sort keys in a query")
        }
        type = scope.type
        conditions = []
        for filter in query.filters { conditions.append(try Condition(filter, scope: scope)) }
        order = QueryOrder(keys: [])
        for sort in query.sorts { order.keys.append(try Self.key(sort, scope: scope)) }
        if query.sorts.isEmpty { order = try Self.impliedOrder(conditions, scope: scope) }
    }

    private static func key(_ sort: Sort, scope: QueryScope) throws(ServiceError) -> QueryOrder.Key {
        if let location = sort.relativeLocation {
            let index = try scope.index(sort.field, .cells, .sortable)
            guard let place = Place(location) else {
                throw ServiceError(.badRequest, "sort by \(sort.field): relativeLocation is no place")
            }
            return QueryOrder.Key(
                kind: .distance(index, from: place), isAscending: sort.isAscending, missingFirst: !sort.isAscending)
        }
        let index = try scope.index(sort.field, .values, .sortable)
        guard !index.type.isList else { throw scope.unindexed(sort.field, .sortable) }
        return QueryOrder.Key(
            kind: .values(index), isAscending: sort.isAscending, missingFirst: sort.isAscending)
    }

    /// The order of a query that names none: by record id where some filter wants one key of one index, whose rows are
    /// in that order; else that of the rows of the first filter that narrows; else all records by name; else by the
    /// field of the first filter.
    private static func impliedOrder(
        _ conditions: [Condition], scope: QueryScope
    ) throws(ServiceError) -> QueryOrder {
        let sources = conditions.flatMap(\.sources)
        if sources.contains(where: { $0.point != nil || $0.ranges.isEmpty }) { return QueryOrder(keys: []) }
        func ascending(_ kind: QueryOrder.Key.Kind) -> QueryOrder {
            QueryOrder(keys: [QueryOrder.Key(kind: kind, isAscending: true, missingFirst: true)])
        }
        if let first = sources.first { return ascending(.leastKey(first)) }
        if let all = scope.allRecords { return ascending(.values(all)) }
        if let first = conditions.first(where: { $0.index.purpose == .values && !$0.index.type.isList }) {
            return ascending(.values(first.index))
        }
        throw scope.unindexed(SystemField.recordID.rawValue, .queryable)
    }
}

extension QueryScope {
    /// The index that lists all records, by name.
    var allRecords: InstalledIndex? {
        type.index(named: SystemField.recordID.rawValue).flatMap { $0.options.contains(.queryable) ? $0 : nil }
    }
}
