package import GRDB
package import RecordModel
import Wire

extension RecordTables {
    /// Follows the raise of a shard's feature level: where more kinds of rows count in quotas than before, maintenance
    /// counts the existing ones.
    /// - Returns: whether to propose maintenance.
    package static func raise(from old: FeatureLevel, to level: FeatureLevel, in db: Database) throws -> Bool {
        let isToResend = old < .exactNotifications && level >= .exactNotifications
        let isToDivide = old < .filedSubscriptions && level >= .filedSubscriptions
        var hasWork = try isToResend && MatchingQueue.raise(in: db)
        if try isToDivide && MatchingQueue.divide(in: db) { hasWork = true }
        guard old < .countedRows, level >= .countedRows else { return hasWork }
        let isEmpty = try SQLStatement(
            cached: """
                SELECT NOT (EXISTS (SELECT 1 FROM record) OR EXISTS (SELECT 1 FROM zone WHERE state = 1)
                    OR EXISTS (SELECT 1 FROM idempotency) OR EXISTS (SELECT 1 FROM field_index))
                """, in: db
        ).first { $0.integer(0) != 0 }
        if isEmpty ?? true { return hasWork }
        try SQLStatement(cached: "INSERT INTO job VALUES (?, ?, 0, x'', 0, 0)", in: db)
            .run(.integer(Job.recountID), .integer(Job.Kind.recount.rawValue))
        return true
    }
}

extension CountedRows {
    /// What a shard counts now.
    static func load(at level: FeatureLevel, in db: Database) throws -> CountedRows {
        let job = try SQLStatement(cached: "SELECT body FROM job WHERE id = \(Job.recountID)", in: db).first {
            $0.bytes(0)
        }
        return try CountedRows(at: level, job: job)
    }
}

/// A batch of rows to count.
private struct RowPart {
    var last: RowPlace?
    /// How many were read.
    var count = 0
    /// Their bytes by zone, and by database for those outside zones.
    var byZone: [Int64: Int64] = [:]
    var byDatabase: [Int64: Int64] = [:]
}

extension RecordTransaction {
    /// Continues to count rows that are older than the counting. Deleted zones go first: they are not counted.
    func recount(_ job: Job, budget: Int) throws -> Int {
        guard !job.body.isEmpty else {
            if let zoneID = try firstRetiredZone() { return try reclaim(zoneID, budget: budget) }
            try moveRecount(to: RowPlace(before: .record))
            return 1
        }
        let place = try RowPlace(decoding: job.body)
        // Counting a row is much cheaper than working on it.
        let limit = min(budget, 10_000) * 10
        let part = try rows(after: place, limit: limit)
        for (zoneID, bytes) in part.byZone.sorted(by: { $0.key < $1.key }) { try count(bytes, zoneID: zoneID) }
        for (databaseID, bytes) in part.byDatabase.sorted(by: { $0.key < $1.key }) {
            try count(bytes, databaseID: databaseID)
        }
        try Invariant.check(part.count <= limit, "a part of \(limit) rows has \(part.count)")
        if part.count == limit, let last = part.last {
            try moveRecount(to: last)
        } else if let table = place.table.next {
            try moveRecount(to: RowPlace(before: table))
        } else {
            try end(job)
            counted = .all
        }
        return part.count / 10 + 1
    }

    private func moveRecount(to place: RowPlace) throws {
        counted = .upTo(place)
        try SQLStatement(cached: "UPDATE job SET body = ? WHERE id = ?", in: db)
            .run(.blob(place.encoded()), .integer(Job.recountID))
        try db.checkOneRow("the recount at \(place)")
    }

    private func rows(after place: RowPlace, limit: Int) throws -> RowPart {
        switch place.table {
        case .record: try records(after: place, limit: limit)
        case .idempotency: try remembered(after: place, limit: limit)
        case .indexNumber, .indexBytes, .indexMissing: try indexRows(after: place, limit: limit)
        }
    }

    private func records(after place: RowPlace, limit: Int) throws -> RowPart {
        var part = RowPart()
        try SQLStatement(
            cached: """
                SELECT id, zone, CASE deleted WHEN 1 THEN length(CAST(name AS BLOB)) ELSE 0 END FROM record
                WHERE id > ? ORDER BY id LIMIT ?
                """, in: db
        ).forEach([.integer(place.row), .integer(Int64(limit))]) { row in
            part.last = RowPlace(.record, row: row.integer(0))
            part.count += 1
            part.byZone[row.integer(1), default: 0] += RowBytes.record + row.integer(2)
            return true
        }
        return part
    }

    private func remembered(after place: RowPlace, limit: Int) throws -> RowPart {
        var part = RowPart()
        try SQLStatement(
            cached: """
                SELECT id, database, \(RememberedOutcome.rowBytes) FROM idempotency WHERE id > ? ORDER BY id LIMIT ?
                """, in: db
        ).forEach([.integer(place.row), .integer(Int64(limit))]) { row in
            part.last = RowPlace(.idempotency, row: row.integer(0))
            part.count += 1
            part.byDatabase[row.integer(1), default: 0] += row.integer(2)
            return true
        }
        return part
    }

    private func indexRows(after place: RowPlace, limit: Int) throws -> RowPart {
        var part = RowPart()
        let columns = place.table == .indexMissing ? "field, zone, record" : "field, zone, value, record"
        let name =
            switch place.table {
            case .indexNumber: "index_number"
            case .indexBytes: "index_bytes"
            default: "index_missing"
            }
        var values: [SQLValue] = [.integer(place.field), .integer(place.zone)]
        if place.table != .indexMissing { values.append(place.key?.value ?? .blob([])) }
        if place.table == .indexNumber && place.key == nil { values[2] = .integer(.min) }
        values += [.integer(place.row), .integer(Int64(limit))]
        let marks = place.table == .indexMissing ? "?, ?, ?" : "?, ?, ?, ?"
        try SQLStatement(
            cached: "SELECT \(columns) FROM \(name) WHERE (\(columns)) > (\(marks)) ORDER BY \(columns) LIMIT ?", in: db
        ).forEach(values) { row in
            var found = RowPlace(place.table, field: row.integer(0), zone: row.integer(1), row: row.integer(2))
            switch place.table {
            case .indexNumber: (found.key, found.row) = (.number(row.integer(2)), row.integer(3))
            case .indexBytes: (found.key, found.row) = (.bytes(row.bytes(2)), row.integer(3))
            default: break
            }
            part.last = found
            part.count += 1
            part.byZone[found.zone, default: 0] += found.key?.rowBytes ?? RowBytes.index
            return true
        }
        return part
    }
}

/// Counts what quotas count from the stored rows alone.
struct Recount {
    private let counted: CountedRows
    /// The container environment's indexes, including those being removed.
    private let indexes: [Int64]
    private let db: Database

    init(_ request: UsageRequest, level: FeatureLevel, in db: Database) throws {
        self.db = db
        counted = try CountedRows.load(at: level, in: db)
        let schema = try Rows(db: db).schema(container: request.container, environment: request.environment)
        indexes =
            try schema.map { schema in
                try SQLStatement(
                    cached: """
                        SELECT i.id FROM record_type t JOIN field_index i ON i.type = t.id WHERE t.schema = ? ORDER BY i.id
                        """, in: db
                ).all(.integer(schema.id)) { $0.integer(0) }
            } ?? []
    }

    /// What a zone's rows count for.
    func zone(_ id: Int64) throws -> QuotaAmounts {
        let lastCounted: Int64 = counted == .all ? .max : counted.last?.table == .record ? counted.last?.row ?? 0 : .max
        let sum = try SQLStatement(
            cached: """
                SELECT coalesce(sum(length(CAST(name AS BLOB)) + length(body)) FILTER (WHERE deleted = 0), 0),
                    coalesce(sum(\(RowBytes.record) + deleted * length(CAST(name AS BLOB))) FILTER (WHERE id <= ?2), 0),
                    count(*) FILTER (WHERE deleted = 0)
                FROM record WHERE zone = ?1
                """, in: db
        ).first(.integer(id), .integer(counted.isNone ? 0 : lastCounted)) {
            QuotaAmounts(bytes: $0.integer(0) + $0.integer(1), records: $0.integer(2))
        }
        let rows = counted.isNone ? 0 : try indexes.reduce(0) { try $0 + indexBytes($1, zone: id) }
        let versions = try SQLStatement(
            cached: "SELECT coalesce(sum(\(VersionRow.bytes)), 0) FROM record_version v WHERE v.zone = ?", in: db
        ).first(.integer(id)) { $0.integer(0) }
        return (sum ?? .zero) + QuotaAmounts(bytes: rows + (versions ?? 0), assets: try assetBytes(zone: id))
    }

    /// The sizes of the files that a zone's records name. Bodies are decoded only where some may name any.
    private func assetBytes(zone: Int64) throws -> Int64 {
        let hasAssets = try SQLStatement(cached: "SELECT EXISTS (SELECT 1 FROM asset)", in: db).first {
            $0.integer(0) != 0
        }
        guard hasAssets == true else { return 0 }
        var bytes: Int64 = 0
        try SQLStatement(
            cached: """
                SELECT body FROM record WHERE zone = ?1 AND deleted = 0
                UNION ALL SELECT body FROM record_version WHERE zone = ?1
                """, in: db
        ).forEach([.integer(zone)]) { row in
            bytes = saturating(bytes, try decodeBody(row.bytes(0)).assets.countedBytes)
            return true
        }
        return bytes
    }

    /// What is in no live zone of a database: rows of deleted zones, and what requests are remembered by.
    func others(_ databaseID: Int64) throws -> QuotaAmounts {
        if counted.isNone { return .zero }
        var sum = QuotaAmounts.zero
        let retired = try SQLStatement(cached: "SELECT id FROM zone WHERE database = ? AND state = 1", in: db)
            .all(.integer(databaseID)) { $0.integer(0) }
        for id in retired { sum.bytes += try zone(id).bytes }
        try SQLStatement(
            cached: "SELECT id, \(RememberedOutcome.rowBytes) FROM idempotency WHERE database = ?", in: db
        ).forEach([.integer(databaseID)]) { row in
            if counted.contains(RowPlace(.idempotency, row: row.integer(0))) { sum.bytes += row.integer(1) }
            return true
        }
        return sum
    }

    private func indexBytes(_ index: Int64, zone: Int64) throws -> Int64 {
        var bytes: Int64 = 0
        try SQLStatement(cached: "SELECT value, record FROM index_number WHERE field = ? AND zone = ?", in: db)
            .forEach([.integer(index), .integer(zone)]) { row in
                let key = IndexKey.number(row.integer(0))
                let place = RowPlace(.indexNumber, field: index, zone: zone, key: key, row: row.integer(1))
                if counted.contains(place) { bytes += key.rowBytes }
                return true
            }
        try SQLStatement(cached: "SELECT value, record FROM index_bytes WHERE field = ? AND zone = ?", in: db)
            .forEach([.integer(index), .integer(zone)]) { row in
                let key = IndexKey.bytes(row.bytes(0))
                let place = RowPlace(.indexBytes, field: index, zone: zone, key: key, row: row.integer(1))
                if counted.contains(place) { bytes += key.rowBytes }
                return true
            }
        try SQLStatement(cached: "SELECT record FROM index_missing WHERE field = ? AND zone = ?", in: db)
            .forEach([.integer(index), .integer(zone)]) { row in
                let place = RowPlace(.indexMissing, field: index, zone: zone, row: row.integer(0))
                if counted.contains(place) { bytes += RowBytes.index }
                return true
            }
        return bytes
    }
}
