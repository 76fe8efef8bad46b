import GRDB
import RecordModel
import Wire

/// Work on indexes that come and go, in a transaction.
struct IndexJobs: TransactionPart {
    let transaction: RecordTransaction

    /// Gives records their rows in indexes that are being built.
    ///
    /// Writes keep those indexes up from the first moment, so rows may be there already.
    func build(_ job: Job, budget: Int) throws -> Int {
        let building = Set(
            try db.all("SELECT id FROM field_index WHERE job = ? AND state = 0", job.id) { $0.integer(0) })
        let schema = try transaction.schema(id: job.subject)
        let wanted = schema.byID.mapValues { type in type.indexes.filter { building.contains($0.id) } }
            .filter { !$0.value.isEmpty }
        let rowsEach = transaction.level < .boundedRows ? 1 : wanted.values.map(\.count).max() ?? 1
        let (ids, end, used) =
            wanted.isEmpty
            ? ([], nil, 1) : try transaction.scan(job, types: Set(wanted.keys), budget: max(budget / rowsEach, 1))
        var growth: [Int64: Int64] = [:]
        let next = try transaction.forEachRow(ids, end: end) { row, zoneID in
            guard !row.isDeleted, let type = schema.byID[row.typeID] else { return }
            let record = try transaction.indexedRecord(row, fields: try type.fields(of: row))
            for index in wanted[row.typeID] ?? [] {
                growth[zoneID, default: 0] += try transaction.updateIndex(
                    index, zoneID: zoneID, recordID: row.id, from: nil, to: record.keys(in: index))
            }
        }
        try transaction.count(growth)
        if let next {
            try transaction.advance(job, to: next)
        } else {
            try db.run("UPDATE field_index SET state = 1, job = 0 WHERE job = ? AND state = 0", job.id)
            try transaction.end(job)
        }
        try transaction.revise(schemaID: job.subject)
        return used * rowsEach
    }

    /// Removes rows of an index that is gone.
    func drop(_ job: Job, budget: Int) throws -> Int {
        let used = try drop(job.subject, zones: .min ... .max, budget: budget)
        if used < budget {
            try db.run("DELETE FROM field_index WHERE id = ?", job.subject)
            try transaction.end(job)
        }
        return used
    }

    /// Removes rows of an index from the table and the quotas.
    /// - Returns: how many; less than `budget` once all are gone.
    func drop(_ indexID: Int64, zones: ClosedRange<Int64>, budget: Int) throws -> Int {
        var left = budget
        var growth: [Int64: Int64] = [:]
        func dropRows(_ table: String, _ columns: String, read: (SQLRow) -> (Int64, IndexKey?, Int64)) throws {
            let rows = try db.all(
                "SELECT \(columns) FROM \(table) WHERE field = ? AND zone BETWEEN ? AND ? ORDER BY \(columns) LIMIT ?",
                indexID, zones.lowerBound, zones.upperBound, left, body: read)
            for (zone, key, record) in rows {
                growth[zone, default: 0] -= try transaction.removeIndexRow(indexID, zoneID: zone, key, record)
            }
            left -= rows.count
        }
        try dropRows("index_number", "zone, value, record") { ($0.integer(0), .number($0.integer(1)), $0.integer(2)) }
        try dropRows("index_bytes", "zone, value, record") { ($0.integer(0), .bytes($0.bytes(1)), $0.integer(2)) }
        try dropRows("index_missing", "zone, record") { ($0.integer(0), nil, $0.integer(1)) }
        try transaction.count(growth)
        return budget - left
    }
}
