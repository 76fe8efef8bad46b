import GRDB
import RecordModel
import Wire

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

    /// Removes rows of an index that is gone.
    func dropIndex(_ job: Job, budget: Int) throws -> Int {
        let used = try dropRows(of: job.subject, zones: .min ... .max, budget: budget)
        if used < budget {
            try SQLStatement(cached: "DELETE FROM field_index WHERE id = ?", in: db).run(.integer(job.subject))
            try end(job)
        }
        return used
    }

    /// Removes rows of an index from the table and the quotas.
    /// - Returns: how many; less than `budget` once all are gone.
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

    /// Cleans records of what the schema lost: records of lost types become tombstones, which feeds show; values of
    /// lost fields go without a trace, since reads have not shown them since.
    ///
    /// Their earlier versions follow.
    func scrub(_ job: Job, budget: Int) throws -> Int {
        let types = Set(
            try SQLStatement(cached: "SELECT type FROM stray WHERE job = ?", in: db).all(.integer(job.id)) {
                $0.integer(0)
            })
        let schema = try schema(id: job.subject)
        if !job.body.isEmpty {
            let (next, used) = try VersionTable(self).scrub(job, types: types, schema, budget: budget)
            if let next { try advance(job, to: next) } else { try endScrub(job) }
            return used
        }
        let (ids, end, used) = try scan(job, types: types, budget: budget)
        let next = try forEachRow(ids, end: end) { row, zoneID in
            // What is in a retired zone stays as its index rows were made from, until it is reclaimed with them.
            guard !row.isDeleted, let zone = try openZone(id: zoneID) else { return }
            if let type = schema.byID[row.typeID] {
                try strip(row, type: type, zone: zone)
            } else {
                try leaveTombstone(row, type: nil, zone: zone, by: UserNameCache.anonymous, nil)
            }
        }
        if let next {
            try advance(job, to: next)
        } else if try !VersionTable(self).isEmpty() {
            try SQLStatement(cached: "UPDATE job SET body = x'01', position = 0 WHERE id = ?", in: db)
                .run(.integer(job.id))
            try db.checkOneRow("the versions of job \(job.id)")
        } else {
            try endScrub(job)
        }
        return used
    }

    private func endScrub(_ job: Job) throws {
        try SQLStatement(cached: "DELETE FROM stray WHERE job = ?", in: db).run(.integer(job.id))
        try end(job)
        try revise(schemaID: job.subject)
    }

    /// Index rows are made from visible fields, so they stay as they are. Numbers that the preferred kind of their
    /// field cannot hold stay hidden.
    private func strip(_ row: RecordRow, type: InstalledType, zone: OpenZone) throws {
        let body = try decodeBody(row.body)
        let visible = type.scrubbed(body)
        if visible == body { return }
        var scrubbed = row
        scrubbed.body = encodeBody(visible)
        try SQLStatement(cached: "UPDATE record SET body = ? WHERE id = ?", in: db)
            .run(.blob(scrubbed.body), .integer(row.id))
        try db.checkOneRow("the values of record \(row.id)")
        zone.count(scrubbed.size(visible.assets) - row.size(body.assets))
        try updateAssets(from: body.assets, to: visible.assets)
        try updateEdges(
            zone: zone, recordID: row.id, from: Edge.all(in: body), to: Edge.all(in: visible), sequence: row.sequence)
    }
}

extension Rows {
    func rowAndZone(_ id: Int64) throws -> (row: RecordRow, zoneID: Int64)? {
        try SQLStatement(cached: Self.findRowAndZone, in: db).first(.integer(id)) { (RecordRow($0), $0.integer(10)) }
    }

    private static let findRowAndZone = "SELECT \(RecordRow.columns), r.zone FROM record r WHERE r.id = ?"
}
