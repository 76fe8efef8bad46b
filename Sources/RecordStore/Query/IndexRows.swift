import GRDB

/// The index rows of one zone, read on one connection.
///
/// Nothing but rows of the index tables is read here. A statement is the connection's, so no scan may run inside
/// another of the same shape; what runs inside scans (probes, `findRecord`) has statements of its own.
///
/// Scans can look up rows of other indexes: for each entry they say whether the record has all of them. SQLite does
/// that inside the scan, cheaper than a statement for each look-up.
struct IndexRows {
    let db: Database
    let zoneID: Int64
    /// What each row that is read, counted or looked up is charged to.
    let work: QueryWork

    /// Look-ups that one scan takes; more would make too many shapes of statements.
    static let lookUpsMax = 2

    /// How many rows a range has, counted up to `max`.
    func count(_ index: InstalledIndex, _ range: KeyRange, max: Int) throws -> Int {
        let (bounds, values) = Self.bounds(range, index)
        let sql =
            "SELECT count(*) FROM (SELECT 1 FROM \(index.table) d WHERE d.field = ? AND d.zone = ?\(bounds) LIMIT ?)"
        let count = try number(sql, key(index) + values + [max])
        work.charge(QueryCost.statement + count)
        return count
    }

    func countMissing(_ index: InstalledIndex, max: Int) throws -> Int {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM index_missing WHERE field = ? AND zone = ? LIMIT ?)"
        let count = try number(sql, key(index) + [max])
        work.charge(QueryCost.statement + count)
        return count
    }

    private func number(_ sql: String, _ values: [any SQLValue]) throws -> Int {
        try SQLStatement(cached: sql, in: db).first(values) { Int($0.integer(0)) } ?? 0
    }

    /// Rows in a range, by key and record id, and whether the record has the rows to look up. Returns whether the scan
    /// went to the end; false from `visit` ends it.
    func scan(
        _ index: InstalledIndex, _ range: KeyRange, ascending: Bool = true, lookUps: [KeyPoint] = [],
        visit: (IndexKey, Int64, Bool) throws -> Bool
    ) throws -> Bool {
        let (bounds, values) = Self.bounds(range, index)
        let order = ascending ? "ASC" : "DESC"
        let isNumber = index.indexClass == .number
        let point = range.pointKey
        let (joins, last, joined) = self.joins(lookUps)
        let sql = """
            SELECT d.record, \(last), \(point == nil ? "d.value" : "0") FROM \(index.table) d\(joins)
            WHERE d.field = ? AND d.zone = ?\(bounds) ORDER BY d.value \(order), d.record \(order)
            """
        var isAtEnd = true
        let cost = 1 + lookUps.count * QueryCost.probe
        work.charge(QueryCost.statement)
        try db.forEach(sql, values: joined + key(index) + values) { row in
            let value = point ?? (isNumber ? .number(row.integer(2)) : .bytes(row.bytes(2)))
            work.charge(cost + (point == nil ? QueryCost.bytes(value.byteCount) : 0))
            isAtEnd = try visit(value, row.integer(0), !row.isNull(1))
            return isAtEnd
        }
        return isAtEnd
    }

    /// Records under one key behind a record, by record id.
    func records(
        under key: IndexKey, of index: InstalledIndex, after recordID: Int64, lookUps: [KeyPoint],
        visit: (Int64, Bool) throws -> Bool
    ) throws -> Bool {
        let start = KeyRange(lower: KeyPosition(key: key, recordID: recordID), upper: .after(key))
        return try scan(index, start, lookUps: lookUps) { try visit($1, $2) }
    }

    /// Records without the field strictly between two record ids.
    func missing(
        _ index: InstalledIndex, between: (lower: Int64, upper: Int64), ascending: Bool, lookUps: [KeyPoint],
        visit: (Int64, Bool) throws -> Bool
    ) throws -> Bool {
        let (joins, last, joined) = self.joins(lookUps)
        let sql = """
            SELECT d.record, \(last) FROM index_missing d\(joins)
            WHERE d.field = ? AND d.zone = ? AND d.record > ? AND d.record < ?
            ORDER BY d.record \(ascending ? "ASC" : "DESC")
            """
        var isAtEnd = true
        let cost = 1 + lookUps.count * QueryCost.probe
        work.charge(QueryCost.statement)
        try db.forEach(sql, values: joined + key(index) + [between.lower, between.upper]) { row in
            work.charge(cost)
            isAtEnd = try visit(row.integer(0), !row.isNull(1))
            return isAtEnd
        }
        return isAtEnd
    }

    /// A question to ask of many records: whether it has a row under the key (nil: whether it is missing).
    func probe(_ point: KeyPoint) throws -> RowProbe {
        let sql =
            point.key == nil
            ? "SELECT 1 FROM index_missing WHERE field = ?1 AND zone = ?2 AND record = ?4 AND ?3 IS NULL"
            : "SELECT 1 FROM \(point.index.table) WHERE field = ?1 AND zone = ?2 AND value = ?3 AND record = ?4"
        return RowProbe(
            statement: try SQLStatement(cached: sql, in: db), field: point.index.id, zone: zoneID,
            value: point.key?.value ?? Int64?.none as any SQLValue, work: work)
    }

    /// Finds a record's row by its id.
    static func findRecord(in db: Database) throws -> SQLStatement {
        try SQLStatement(cached: "SELECT \(RecordRow.columns) FROM record r WHERE r.id = ?", in: db)
    }

    private func key(_ index: InstalledIndex) -> [any SQLValue] { [index.id, zoneID] }

    /// The joins of look-ups, the column that is NULL where one finds nothing, and their values. Each takes its record
    /// from the one before, so that none runs after a miss.
    private func joins(_ lookUps: [KeyPoint]) -> (sql: String, last: String, values: [any SQLValue]) {
        var (sql, last, values) = ("", "d.record", [any SQLValue]())
        for (number, point) in lookUps.enumerated() {
            let name = "p\(number)"
            let table = point.key == nil ? "index_missing" : point.index.table
            let value = point.key == nil ? "" : " AND \(name).value = ?"
            sql += "\nLEFT JOIN \(table) \(name) ON \(name).field = ? AND \(name).zone = ?\(value)"
            sql += " AND \(name).record = \(last)"
            values += key(point.index) + (point.key.map { [$0.value] } ?? [])
            last = "\(name).record"
        }
        return (sql, last, values)
    }

    private static func bounds(_ range: KeyRange, _ index: InstalledIndex) -> (String, [any SQLValue]) {
        if let key = range.pointKey { return (" AND d.value = ?", [key.value]) }
        var sql = ""
        var values: [any SQLValue] = []
        // Without any bound on the value, SQLite would still read the index in order; one shape less to prepare.
        let lower = range.lower ?? .before(index.indexClass == .number ? .number(.min) : .bytes([]))
        sql += " AND (d.value, d.record) > (?, ?)"
        values += [lower.key.value, lower.recordID]
        if let upper = range.upper {
            sql += " AND (d.value, d.record) < (?, ?)"
            values += [upper.key.value, upper.recordID]
        }
        return (sql, values)
    }
}

/// Whether records have a certain row.
struct RowProbe {
    let statement: SQLStatement
    let field: Int64
    let zone: Int64
    let value: any SQLValue
    let work: QueryWork

    func holds(_ recordID: Int64) throws -> Bool {
        work.charge(QueryCost.probe)
        return try statement.first([field, zone, value, recordID]) { _ in true } ?? false
    }
}

extension InstalledIndex {
    var table: String { indexClass == .number ? "index_number" : "index_bytes" }
}

/// The rows of a query's filters: how many there are, and what records they share.
struct FilterRows {
    private let plan: QueryPlan
    private let rows: IndexRows
    private let work: QueryWork

    init(_ plan: QueryPlan, _ rows: IndexRows) {
        self.plan = plan
        self.rows = rows
        work = rows.work
    }

    /// The source with the fewest rows, if it has at most `max`. Counting takes an eighth of the work that is left.
    func smallest(_ sources: [EntrySource], max: Int) throws -> EntrySource? {
        try work.within(work.left / 8) {
            var best: EntrySource?
            var bestCount = max + 1
            for source in sources {
                guard let count = try count(source, max: bestCount) else { return best }
                if count < bestCount { (best, bestCount) = (source, count) }
            }
            return best
        }
    }

    /// How many rows a source has, counted up to `max`; nil where no work is left for that.
    private func count(_ source: EntrySource, max: Int) throws -> Int? {
        var count = 0
        for index in source.indexes {
            for range in source.ranges where count < max {
                guard !work.isSpent else { return nil }
                count += try rows.count(index, range, max: max - count)
            }
        }
        return count
    }

    /// The records that have rows of the smallest source and of every other that is the rows under one key, by record
    /// id: the other's rows are read too where they are few, and else looked up. Nil where the work does not suffice.
    /// - Returns: also the points that all of them have rows under.
    func intersection(
        _ smallest: EntrySource, _ others: [EntrySource]
    ) throws -> (ids: [Int64], settled: Set<KeyPoint>)? {
        let points = others.compactMap(\.point).filter { $0 != smallest.point }
        guard var ids = try recordIDs(of: smallest) else { return nil }
        for point in points {
            guard let key = point.key, !ids.isEmpty else { continue }
            guard !work.isSpent else { return nil }
            let lookUps = ids.count * QueryCost.probe
            if try rows.count(point.index, .point(key), max: lookUps) < lookUps {
                let source = EntrySource(indexes: [point.index], ranges: [.point(key)], title: "")
                guard let others = try recordIDs(of: source) else { return nil }
                ids = ids.common(with: others)
            } else {
                let probe = try rows.probe(point)
                ids = try ids.filter { try probe.holds($0) }
            }
        }
        return (ids, Set(points + [smallest.point].compactMap { $0 }))
    }

    /// Ascending, without duplicates; nil if the work does not suffice.
    private func recordIDs(of source: EntrySource) throws -> [Int64]? {
        var ids: [Int64] = []
        for index in source.indexes {
            let circles = plan.circles(over: index)
            for range in source.ranges {
                let isAtEnd = try rows.scan(index, range) { key, id, _ in
                    work.charge(circles.count)
                    if circles.isEmpty || circles.mayHold(key) { ids.append(id) }
                    return !work.isSpent
                }
                guard isAtEnd, !work.isSpent else { return nil }
            }
        }
        if source.point != nil { return ids }
        work.charge(QueryCost.members(ids.count))
        ids.sort()
        var last: Int64?
        return ids.filter { id in
            defer { last = id }
            return id != last
        }
    }
}

extension [Int64] {
    /// The numbers that two ascending lists share.
    fileprivate func common(with other: [Int64]) -> [Int64] {
        var result: [Int64] = []
        var position = 0
        for number in self {
            while position < other.count, other[position] < number { position += 1 }
            if position < other.count, other[position] == number { result.append(number) }
        }
        return result
    }
}
