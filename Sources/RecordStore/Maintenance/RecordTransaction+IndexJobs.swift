import GRDB
import RecordModel

extension RecordTransaction {
    /// Gives records their rows in indexes that are being built.
    ///
    /// Writes keep those indexes up from the first moment, so rows may be there already.
    func buildIndexes(_ job: Job, budget: Int) throws -> Int {
        let building = Set(
            try SQLStatement(cached: "SELECT id FROM field_index WHERE job = ? AND state = 0", in: db)
                .all(.integer(job.id)) { $0.integer(0) })
        let schema = try schema(id: job.subject)
        let wanted = schema.byID.mapValues { type in type.indexes.filter { building.contains($0.id) } }
            .filter { !$0.value.isEmpty }
        let rowsEach = level < .boundedRows ? 1 : wanted.values.map(\.count).max() ?? 1
        let (ids, end, used) =
            wanted.isEmpty ? ([], nil, 1) : try scan(job, types: Set(wanted.keys), budget: max(budget / rowsEach, 1))
        var growth: [Int64: Int64] = [:]
        let next = try forEachRow(ids, end: end) { row, zoneID in
            guard !row.isDeleted, let type = schema.byID[row.typeID] else { return }
            let record = try indexedRecord(row, fields: try type.fields(of: row))
            for index in wanted[row.typeID] ?? [] {
                growth[zoneID, default: 0] += try updateIndex(
                    index, zoneID: zoneID, recordID: row.id, from: nil, to: record.keys(in: index))
            }
        }
        try count(growth)
        if let next {
            try advance(job, to: next)
        } else {
            try SQLStatement(cached: "UPDATE field_index SET state = 1, job = 0 WHERE job = ? AND state = 0", in: db)
                .run(.integer(job.id))
            try self.end(job)
        }
        try revise(schemaID: job.subject)
        return used * rowsEach
    }

    func rowAndZone(_ id: Int64) throws -> (row: RecordRow, zoneID: Int64)? {
        try SQLStatement(cached: Self.findRowAndZone, in: db).first(.integer(id)) { (RecordRow($0), $0.integer(10)) }
    }

    private static let findRowAndZone = "SELECT \(RecordRow.columns), r.zone FROM record r WHERE r.id = ?"

    /// Removes rows of an index that is gone.
    func dropIndex(_ job: Job, budget: Int) throws -> Int {
        let used = try dropRows(of: job.subject, zones: .min ... .max, budget: budget)
        if used < budget {
            try SQLStatement(cached: "DELETE FROM field_index WHERE id = ?", in: db).run(.integer(job.subject))
            try end(job)
        }
        return used
    }

    /// Removes rows of an index, whatever records there are, and counts them in no quota any more; returns how many:
    /// less than `budget` once none is left.
    func dropRows(of indexID: Int64, zones: ClosedRange<Int64>, budget: Int) throws -> Int {
        let field = SQLValue.integer(indexID)
        let (first, last) = (SQLValue.integer(zones.lowerBound), SQLValue.integer(zones.upperBound))
        var left = budget
        let numbers = try SQLStatement(
            cached: """
                SELECT zone, value, record FROM index_number WHERE field = ? AND zone BETWEEN ? AND ?
                ORDER BY zone, value, record LIMIT ?
                """, in: db
        ).all(field, first, last, .integer(Int64(left))) {
            ($0.integer(0), IndexKey.number($0.integer(1)), $0.integer(2))
        }
        var growth: [Int64: Int64] = [:]
        for (zone, key, record) in numbers {
            growth[zone, default: 0] -= try removeIndexRow(indexID, zoneID: zone, key, record)
        }
        left -= numbers.count
        let bytes = try SQLStatement(
            cached: """
                SELECT zone, value, record FROM index_bytes WHERE field = ? AND zone BETWEEN ? AND ?
                ORDER BY zone, value, record LIMIT ?
                """, in: db
        ).all(field, first, last, .integer(Int64(left))) {
            ($0.integer(0), IndexKey.bytes($0.bytes(1)), $0.integer(2))
        }
        for (zone, key, record) in bytes {
            growth[zone, default: 0] -= try removeIndexRow(indexID, zoneID: zone, key, record)
        }
        left -= bytes.count
        let missing = try SQLStatement(
            cached: """
                SELECT zone, record FROM index_missing WHERE field = ? AND zone BETWEEN ? AND ?
                ORDER BY zone, record LIMIT ?
                """, in: db
        ).all(field, first, last, .integer(Int64(left))) { ($0.integer(0), $0.integer(1)) }
        for (zone, record) in missing {
            growth[zone, default: 0] -= try removeIndexRow(indexID, zoneID: zone, nil, record)
        }
        try count(growth)
        return budget - left + missing.count
    }
}
