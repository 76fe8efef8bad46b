import Authorization
import GRDB
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

    /// The order of a query without sort: by record id where a filter wants one key of one index, whose rows are in
    /// that order; else that of the rows of the first filter that narrows; else all records by name; else by the field
    /// of the first filter.
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

/// What the ways to read a page ask of a plan.
extension QueryPlan {
    /// The indexes that filters and order name, each once.
    var indexes: [InstalledIndex] {
        var seen: Set<Int64> = []
        let ofOrder = order.keys.flatMap { key in
            switch key.kind {
            case .values(let index), .distance(let index, _): [index]
            case .leastKey(let source): source.indexes
            }
        }
        return (conditions.flatMap(\.indexes) + ofOrder).filter { seen.insert($0.id).inserted }
    }

    /// The ranges of an index of single values that filters on it leave, ascending.
    func ranges(of index: InstalledIndex) -> [KeyRange] {
        var ranges: [KeyRange] = [.all]
        for condition in conditions where condition.indexes.count == 1 && condition.index.id == index.id {
            for source in condition.sources { ranges = KeyRange.common(ranges, source.ranges) }
        }
        return ranges
    }

    /// Whether records without a value in the index pass the filters on it.
    func takesMissing(_ index: InstalledIndex) -> Bool {
        conditions.allSatisfy { $0.indexes.count > 1 || $0.index.id != index.id || $0.holdsWithoutKeys }
    }

    /// Conditions that are not answered by index rows alone.
    /// - Parameters:
    ///   - settled: points that every record in question was found or looked up under.
    ///   - scanned: the index of single values that is read only where filters on it leave ranges.
    func tested(settled: Set<KeyPoint>, scanned: InstalledIndex? = nil) -> [Condition] {
        conditions.filter { condition in
            if let scanned, condition.indexes.count == 1, condition.index.id == scanned.id {
                switch condition.test {
                case .any, .all, .within: return false
                case .none, .notAll, .without, .near, .words: return true
                }
            }
            let sources = condition.sources
            return sources.isEmpty
                || !sources.allSatisfy { $0.point.map(settled.contains) ?? false }
        }
    }

    /// The refusal that names the indexes which are not ready.
    func building(in db: Database) throws -> ServiceError {
        let names = try indexes.filter { !$0.isReady }.map { index in
            "index on \(index.name) of record type \(type.definition.name): "
                + "\(Int((try index.progress(in: db) * 100).rounded(.down))) % built"
        }
        return ServiceError(
            .tryAgainLater, "an index that the query needs is being built; " + names.joined(separator: ", "),
            retryAfterSeconds: 1)
    }

    /// The circles around places that filters on a cell index ask for.
    func circles(over index: InstalledIndex) -> [Circle] {
        guard index.purpose == .cells else { return [] }
        return conditions.compactMap { condition in
            guard case .near(let place, let metres, _) = condition.test, condition.index.id == index.id else {
                return nil
            }
            return Circle(center: place, metres: metres)
        }
    }
}

/// A place and its neighbourhood.
struct Circle {
    var center: Place
    var metres: Double
}

extension [Circle] {
    /// Whether a location in a cell may be in all circles. A cell is a centimetre wide; a metre allows for rounding.
    func mayHold(_ key: IndexKey) -> Bool {
        guard case .number(let cell) = key else { return true }
        let middle = LocationCell(value: cell).center
        return allSatisfy { $0.center.distance(to: middle) <= $0.metres + 1 }
    }
}

extension QueryOrder.Key {
    /// Whether reading in this order already reads no more than the source's rows.
    func isReadThrough(_ source: EntrySource) -> Bool {
        switch kind {
        case .values(let index), .distance(let index, _): source.indexes.allSatisfy { $0.id == index.id }
        case .leastKey(let own): own.title == source.title && own.indexes.map(\.id) == source.indexes.map(\.id)
        }
    }
}

/// A query by one caller in one database: makes its plans and runs, zone by zone.
struct QueryReader {
    let db: Database
    let query: Query
    let container: String
    let type: InstalledType
    /// The only creator whose records the caller may read; nil if all.
    let onlyCreatedBy: Int64?
    /// Made once: a query has up to thousands of values, and a database thousands of zones.
    private let plan: QueryPlan
    /// Whether a filter asks for change tags, which mean something in one zone only.
    private let namesTags: Bool

    /// - Throws: `ServiceError` where the type is unknown, cannot be queried, or is closed to the caller.
    init(_ query: Query, caller: Caller, database: DatabaseKey, schema: InstalledSchema, in db: Database) throws {
        guard query.recordType != RecordType.usersName else {
            throw ServiceError(
                .badRequest, "records of type \(RecordType.usersName) cannot be queried: look them up by name")
        }
        guard let type = schema.byName[query.recordType] else {
            throw ServiceError(.badRequest, "record type not found: \(query.recordType)", detail: .unknownRecordType)
        }
        func mayRead(isCreator: Bool) -> Bool {
            Permissions(of: caller, in: type.definition, of: database, isCreator: isCreator).contains(.read)
        }
        guard mayRead(isCreator: true) else {
            throw ServiceError(.accessDenied, "no permission to read records of type \(type.definition.name)")
        }
        if mayRead(isCreator: false) {
            onlyCreatedBy = nil
        } else {
            // A number that no caller has: one that never wrote here has no records.
            onlyCreatedBy = try caller.user.flatMap { try Rows(db: db).userID($0) } ?? -1
        }
        self.db = db
        self.query = query
        self.type = type
        container = database.container
        namesTags = query.filters.contains { $0.field == SystemField.etag.rawValue }
        plan = try Self.plan(query, container: database.container, type: type)
    }

    /// The query's plan in a zone; nil stands for no particular zone.
    /// - Throws: `BAD_REQUEST` where the query asks for what the schema does not have.
    func plan(in zone: ZoneRow?) throws(ServiceError) -> QueryPlan {
        guard let zone, namesTags else { return plan }
        return try Self.plan(query, container: container, type: type, UInt64(bitPattern: zone.incarnation))
    }

    private static func plan(
        _ query: Query, container: String, type: InstalledType, _ incarnation: UInt64? = nil
    ) throws(ServiceError) -> QueryPlan {
        try QueryPlan(query, scope: QueryScope(container: container, type: type, incarnation: incarnation))
    }
}

/// Where a query is asked: what its fields and tags are looked up in.
struct QueryScope {
    var container: String
    var type: InstalledType
    /// The life of the zone, which change tags name.
    var incarnation: UInt64?
    /// What distances are told by.
    var trigonometry = Trigonometry.own

    /// The index of a field for a purpose.
    /// - Throws: `BAD_REQUEST` that says which index is missing and how to add it.
    func index(
        _ field: String?, _ purpose: IndexPurpose, _ option: RecordModel.IndexOptions
    ) throws(ServiceError) -> InstalledIndex {
        guard let field else { throw ServiceError(.badRequest, "a filter without a field searches for words") }
        guard let index = type.index(named: field, for: purpose), index.options.contains(option) else {
            throw unindexed(field, option, purpose)
        }
        return index
    }

    /// The indexes that words are looked up in; without a field, those of all searchable fields.
    func searched(_ field: String?) throws(ServiceError) -> [InstalledIndex] {
        if let field { return [try index(field, .tokens, .searchable)] }
        let all = type.indexes.filter { $0.purpose == .tokens }.sorted { $0.name < $1.name }
        guard !all.isEmpty else {
            throw ServiceError(
                .badRequest,
                "Field 'self' is not marked searchable: record type \(type.definition.name) has no searchable field; "
                    + "add one with `\(command("FIELD", "SEARCHABLE"))`")
        }
        // A byte says in an order which of them a word is in.
        guard all.count <= Limits.searchedFieldsMax else {
            throw ServiceError(
                .badRequest,
                "record type \(type.definition.name) has \(all.count) searchable fields, at most "
                    + "\(Limits.searchedFieldsMax) are searched at once: name one of them")
        }
        return all
    }

    /// CloudKit's words first: clients look for them.
    func unindexed(
        _ field: String, _ option: RecordModel.IndexOptions, _ purpose: IndexPurpose = .values
    ) -> ServiceError {
        let definition = type.fields[field]
        let scalar = SystemField(rawValue: field)?.type ?? definition?.type
        guard let scalar else {
            return ServiceError(.badRequest, "record type \(type.definition.name) has no field \(field)")
        }
        let isMarked = definition?.indexes.contains(option) ?? false
        if scalar.isEncrypted || scalar.scalar == .asset || isMarked {
            return ServiceError(
                .badRequest,
                "'\(field)' is of type \(scalar.webName)\(scalar.isEncrypted ? ", encrypted" : ""), "
                    + "which cannot be searched or sorted by in this way")
        }
        let word = option == .sortable ? "sortable" : option == .searchable ? "searchable" : "queryable"
        let name = field == SystemField.recordID.rawValue ? "recordName" : field
        return ServiceError(
            .badRequest,
            "Field '\(name)' is not marked \(word): record type \(type.definition.name) needs that index; add it with "
                + "`\(command(field, word.uppercased()))`")
    }

    private func command(_ field: String, _ word: String) -> String {
        "zonekeeper schema add-index \(container) \(type.definition.name) \(field) \(word)"
    }
}

/// Where one way to read a page gives over to another. Answers do not depend on it; tests set it low, so that small
/// data takes every way.
package struct QueryTuning: Sendable {
    /// Entries of the sort key's index that are read before anything is counted.
    package var walkedFirst = 64
    /// Entries of the sort key's index that are read before filters' rows are intersected.
    package var triedEntries = 256
    /// Rows of a filter that are always fewer than any other way would read.
    package var fewRows = 500
    /// Rows that a filter may have for its matches to be sorted where the order is by distance, or there is no order.
    package var gatheredRows = 2_000
    /// Entries that share a sort key and are sorted in memory; a greater group is read through the next sort key.
    package var groupMax = 1_000
    /// When a group's size is looked up.
    package var groupLooked = 64
    /// Locations that a ring should hold: few to sort, enough that the ring is no thin line.
    package var ringMin = 400
    /// Locations that a ring may hold; one with more is made thinner, down to a few centimetres.
    package var ringMax = 4_000
    /// Steps of work that one page may take.
    package var workMax = QueryLimits.workMax
    /// Index entries that one page looks at.
    package var examinedMax = QueryLimits.examinedMax
    /// Bytes of record bodies in a page, give or take one record.
    package var pageBytesMax = QueryLimits.pageBytesMax
    /// Rows that one page of a feed looks at.
    package var feedRowsMax = FeedLimits.examinedMax
    /// Bytes of record bodies in a page of a feed, give or take one record.
    package var feedBytesMax = FeedLimits.pageBytesMax
    /// Bytes of the records in a page's answer: it ends before the record that would make it larger.
    package var answerBytesMax = QueryLimits.answerBytesMax

    package init() {}

    /// For the calls inside `$current.withValue`.
    @TaskLocal package static var current = QueryTuning()
}
