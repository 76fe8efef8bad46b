import GRDB
import RecordModel
import Wire

/// One page of one query, being collected.
struct QueryRun {
    let db: Database
    let plan: QueryPlan
    let zone: ZoneRow
    let limit: Int
    let cursor: QueryCursor?
    /// The only creator whose records the caller may read; nil if all.
    let onlyCreatedBy: Int64?
    private var names: StampNames
    private var examined = 0
    private var bytes = 0
    /// In order; one more than `limit` where there is more.
    private var found: [Candidate] = []
    /// Where the scan stopped for its bounds.
    private var stoppedAt: (keys: [IndexKey?], recordID: Int64?)?

    private struct Candidate {
        var row: RecordRow
        var fields: Fields
        var keys: [IndexKey?]
    }

    init(db: Database, plan: QueryPlan, zone: ZoneRow, limit: Int, cursor: QueryCursor?, onlyCreatedBy: Int64?) {
        self.db = db
        self.plan = plan
        self.zone = zone
        self.limit = limit
        self.cursor = cursor
        self.onlyCreatedBy = onlyCreatedBy
        names = StampNames(db)
    }

    /// Collects the page.
    /// - Throws: `ServiceError` where the query asks for too much, `DatabaseError` on an I/O error.
    mutating func page(queryHash: UInt64) throws -> QueryPage {
        if let driver = try equalityDriver() {
            plan.sorts.isEmpty ? try scanByRecord(driver) : try gather(driver)
        } else {
            try scanBySort()
        }
        let hasMore = found.count > limit
        let kept = found.prefix(limit)
        var end: (keys: [IndexKey?], recordID: Int64?)? = stoppedAt
        if hasMore, let last = kept.last { end = (last.keys, last.row.id) }
        let records = try kept.map { candidate in
            Record(
                name: candidate.row.name, type: plan.type.definition.name,
                changeTag: zone.changeTag(candidate.row.sequence),
                created: Stamp(
                    timestamp: candidate.row.createdAt, user: try names.name(candidate.row.createdBy)),
                modified: Stamp(
                    timestamp: candidate.row.modifiedAt, user: try names.name(candidate.row.modifiedBy)),
                fields: candidate.fields)
        }
        let next = end.map { end in
            QueryCursor(
                queryHash: queryHash, incarnation: UInt64(bitPattern: zone.incarnation), keys: end.keys,
                recordID: end.recordID
            ).encoded()
        }
        return QueryPage(records: records, next: next)
    }

    // MARK: Drivers

    private func scan(_ index: InstalledIndex) -> IndexScan { IndexScan(db: db, zoneID: zone.id, index: index) }

    /// The equality condition with the fewest entries, if it is to drive the page.
    private func equalityDriver() throws -> (index: InstalledIndex, key: IndexKey)? {
        let drivers = plan.conditions.compactMap { condition in
            condition.drivingKey.map { (index: condition.index, key: $0) }
        }
        if plan.sorts.isEmpty && drivers.count == 1 { return drivers.first }
        let max = QueryLimits.gatheredMax + 1
        let counted = try drivers.map { (driver: $0, count: try scan($0.index).count(of: $0.key, max: max)) }
        guard let best = counted.min(by: { $0.count < $1.count }) else { return nil }
        return plan.sorts.isEmpty || best.count < max ? best.driver : nil
    }

    private mutating func scanByRecord(_ driver: (index: InstalledIndex, key: IndexKey)) throws {
        try scan(driver.index).records(of: driver.key, after: cursor?.recordID ?? 0) { _, row in
            examined += 1
            if let candidate = try candidate(row) { append(candidate) }
            return goesOn(at: ([], row.id))
        }
    }

    /// Keeps the best of all records under one key, which are few.
    private mutating func gather(_ driver: (index: InstalledIndex, key: IndexKey)) throws {
        try scan(driver.index).records(of: driver.key, after: 0) { _, row in
            if let candidate = try candidate(row) { insert(candidate, from: 0) }
            return true
        }
        cutToBytes(from: 0)
    }

    /// Reads the first sort key's index: records without the field first when ascending, last when descending.
    private mutating func scanBySort() throws {
        guard let sort = plan.sorts.first else { return }
        if sort.isAscending {
            guard try scanMissing(sort) else { return }
            _ = try scanRanges(sort)
        } else {
            guard try scanRanges(sort) else { return }
            _ = try scanMissing(sort)
        }
    }

    private mutating func scanMissing(_ sort: QueryPlan.SortKey) throws -> Bool {
        let conditions = plan.conditions.filter { $0.index.id == sort.index.id }
        guard conditions.allSatisfy({ $0.holds([]) }) else { return true }
        var bounds: (lower: Int64, upper: Int64) = (.min, .max)
        if let cursor, let first = cursor.keys.first {
            if first != nil && sort.isAscending { return true }
            if first == nil && cursor.recordID == nil { return true }
            if first == nil, plan.sorts.count == 1, let recordID = cursor.recordID {
                if sort.isAscending { bounds.lower = recordID } else { bounds.upper = recordID }
            }
        }
        var group = TieGroup()
        var isAtEnd = true
        try scan(sort.index).recordsMissing(between: bounds, ascending: sort.isAscending) { key, row in
            isAtEnd = try visit(key, row, group: &group)
            return isAtEnd
        }
        return isAtEnd ? closeGroup(&group) : false
    }

    private mutating func scanRanges(_ sort: QueryPlan.SortKey) throws -> Bool {
        var ranges: [KeyRange] = [.all]
        for condition in plan.conditions where condition.index.id == sort.index.id {
            guard let narrower = condition.ranges else { continue }
            ranges = ranges.flatMap { range in narrower.compactMap { $0.intersection(range) } }
        }
        if let rest = rangeAfterCursor(sort) {
            ranges = ranges.compactMap { $0.intersection(rest) }
        } else {
            return true
        }
        var group = TieGroup()
        for range in sort.isAscending ? ranges : ranges.reversed() {
            let isAtEnd = try scan(sort.index).records(in: range, ascending: sort.isAscending) { key, row in
                try visit(key, row, group: &group)
            }
            guard isAtEnd else { return false }
        }
        return closeGroup(&group)
    }

    /// The keys that the cursor leaves; nil if none.
    private func rangeAfterCursor(_ sort: QueryPlan.SortKey) -> KeyRange? {
        guard let cursor, let first = cursor.keys.first else { return .all }
        guard let key = first else { return sort.isAscending ? .all : nil }
        let position: KeyPosition
        if let recordID = cursor.recordID, plan.sorts.count == 1 {
            position = KeyPosition(key: key, recordID: recordID)
        } else {
            // Of several sort keys the first one's group is read again, unless the cursor stands behind it.
            let isBehind = cursor.keys.count == 1 && cursor.recordID == nil
            position = isBehind == sort.isAscending ? .after(key) : .before(key)
        }
        return sort.isAscending ? KeyRange(lower: position, upper: nil) : KeyRange(lower: nil, upper: position)
    }

    // MARK: Collecting

    /// The records that share the first of several sort keys.
    private struct TieGroup {
        var key: IndexKey?
        var count = 0
        /// Where the group's candidates begin in `found`.
        var start = 0
    }

    /// Takes an entry of the first sort key's index; false ends the scan.
    private mutating func visit(_ key: IndexKey?, _ row: RecordRow, group: inout TieGroup) throws -> Bool {
        if plan.sorts.count == 1 {
            examined += 1
            if let candidate = try candidate(row) { append(candidate) }
            return goesOn(at: ([key], row.id))
        }
        if group.count > 0 && group.key != key {
            guard closeGroup(&group) else { return false }
        }
        if group.count == 0 { group = TieGroup(key: key, count: 0, start: found.count) }
        group.count += 1
        examined += 1
        guard group.count <= QueryLimits.tieGroupMax else {
            throw ServiceError(
                .badRequest,
                "more than \(QueryLimits.tieGroupMax) records share the first sort key\'s value: add a filter"
            )
        }
        if let candidate = try candidate(row) { insert(candidate, from: group.start) }
        return true
    }

    /// Ends a group of ties; false if the page is full.
    private mutating func closeGroup(_ group: inout TieGroup) -> Bool {
        guard group.count > 0 else { return true }
        cutToBytes(from: group.start)
        let key = group.key
        group = TieGroup()
        return goesOn(at: ([key], nil))
    }

    /// The row as a candidate, if it passes and comes after the cursor.
    private mutating func candidate(_ row: RecordRow) throws -> Candidate? {
        if let onlyCreatedBy, row.createdBy != onlyCreatedBy { return nil }
        let record = IndexedRecord(
            name: row.name, sequence: row.sequence,
            created: Stamp(timestamp: row.createdAt, user: try names.name(row.createdBy)),
            modified: Stamp(timestamp: row.modifiedAt, user: try names.name(row.modifiedBy)),
            fields: try decodeBody(row.body))
        for condition in plan.conditions where !condition.holds(record.keys(in: condition.index)) { return nil }
        let keys = plan.sorts.map { record.keys(in: $0.index).first }
        if let cursor, !plan.isAfter(cursor, keys: keys, id: row.id) { return nil }
        return Candidate(row: row, fields: record.fields, keys: keys)
    }

    private mutating func append(_ candidate: Candidate) {
        found.append(candidate)
        bytes += candidate.row.body.count
    }

    /// Puts a candidate in its place behind `start`, and drops what the page cannot hold.
    private mutating func insert(_ candidate: Candidate, from start: Int) {
        var low = start
        var high = found.count
        while low < high {
            let middle = (low + high) / 2
            let isBefore = plan.precedes((found[middle].keys, found[middle].row.id), (candidate.keys, candidate.row.id))
            if isBefore { low = middle + 1 } else { high = middle }
        }
        guard low <= limit else { return }
        found.insert(candidate, at: low)
        if found.count > limit + 1 { found.removeLast() }
    }

    /// Counts the bytes of what came in since `start`, and drops what is too much but the first record.
    private mutating func cutToBytes(from start: Int) {
        for (offset, candidate) in found.enumerated().dropFirst(start) {
            bytes += candidate.row.body.count
            guard bytes > QueryLimits.pageBytesMax, offset + 1 < found.count else { continue }
            found.removeSubrange((offset + 1)...)
            stoppedAt = (candidate.keys, candidate.row.id)
            return
        }
    }

    /// Whether the page has room and the scan has work left; remembers the position where not.
    private mutating func goesOn(at position: (keys: [IndexKey?], recordID: Int64?)) -> Bool {
        if found.count > limit || stoppedAt != nil { return false }
        if bytes <= QueryLimits.pageBytesMax && examined < QueryLimits.examinedMax { return true }
        stoppedAt = position
        return false
    }
}
