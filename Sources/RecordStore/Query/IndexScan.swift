import GRDB

/// Reads records of one zone through an index, in the index's order.
struct IndexScan {
    let db: Database
    let zoneID: Int64
    let index: InstalledIndex

    /// The shape of a page's work: called for each entry with its key; false ends the scan.
    typealias Visit = (IndexKey?, RecordRow) throws -> Bool

    /// How many entries a key has, counted up to `max`.
    func count(of key: IndexKey, max: Int) throws -> Int {
        let sql = """
            SELECT count(*) FROM (SELECT 1 FROM \(table) WHERE field = ? AND zone = ? AND value = ? LIMIT ?)
            """
        return try SQLStatement(cached: sql, in: db)
            .first(.integer(index.id), .integer(zoneID), key.value, .integer(Int64(max))) { Int($0.integer(0)) } ?? 0
    }

    /// Records under one key after a record, by record id.
    func records(of key: IndexKey, after recordID: Int64, visit: Visit) throws {
        let sql = """
            SELECT \(RecordRow.columns) FROM \(table) d CROSS JOIN record r ON r.id = d.record
            WHERE d.field = ? AND d.zone = ? AND d.value = ? AND d.record > ? ORDER BY d.record
            """
        try SQLStatement(cached: sql, in: db)
            .forEach([.integer(index.id), .integer(zoneID), key.value, .integer(recordID)]) { row in
                try visit(key, RecordRow(row))
            }
    }

    /// Records without the field strictly between two record ids.
    func recordsMissing(between: (lower: Int64, upper: Int64), ascending: Bool, visit: Visit) throws {
        let sql = """
            SELECT \(RecordRow.columns) FROM index_missing d CROSS JOIN record r ON r.id = d.record
            WHERE d.field = ? AND d.zone = ? AND d.record > ? AND d.record < ?
            ORDER BY d.record \(ascending ? "ASC" : "DESC")
            """
        try SQLStatement(cached: sql, in: db)
            .forEach([.integer(index.id), .integer(zoneID), .integer(between.lower), .integer(between.upper)]) { row in
                try visit(nil, RecordRow(row))
            }
    }

    /// Records with keys in a range, by key and record id. Returns whether the scan went to the end.
    func records(in range: KeyRange, ascending: Bool, visit: Visit) throws -> Bool {
        let isNumber = index.indexClass == .number
        let lower = range.lower ?? .before(isNumber ? .number(.min) : .bytes([]))
        let upper = range.upper ?? (isNumber ? .after(.number(.max)) : nil)
        let order = ascending ? "ASC" : "DESC"
        let sql = """
            SELECT \(RecordRow.columns), d.value FROM \(table) d CROSS JOIN record r ON r.id = d.record
            WHERE d.field = ? AND d.zone = ? AND (d.value, d.record) > (?, ?)
            \(upper == nil ? "" : "AND (d.value, d.record) < (?, ?)") ORDER BY d.value \(order), d.record \(order)
            """
        var values: [SQLValue] = [
            .integer(index.id), .integer(zoneID), lower.key.value, .integer(lower.recordID),
        ]
        if let upper { values += [upper.key.value, .integer(upper.recordID)] }
        var isAtEnd = true
        try SQLStatement(cached: sql, in: db).forEach(values) { row in
            let key: IndexKey = isNumber ? .number(row.integer(10)) : .bytes(row.bytes(10))
            isAtEnd = try visit(key, RecordRow(row))
            return isAtEnd
        }
        return isAtEnd
    }

    private var table: String { index.indexClass == .number ? "index_number" : "index_bytes" }
}
