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
        let isEmpty = try db.first(
            """
            SELECT NOT (EXISTS (SELECT 1 FROM record) OR EXISTS (SELECT 1 FROM zone WHERE state = 1)
                OR EXISTS (SELECT 1 FROM idempotency) OR EXISTS (SELECT 1 FROM field_index))
            """
        ) { $0.integer(0) != 0 }
        if isEmpty ?? true { return hasWork }
        try db.run("INSERT INTO job VALUES (?, ?, 0, x'', 0, 0)", Job.recountID, Job.Kind.recount.rawValue)
        return true
    }
}

extension CountedRows {
    /// What a shard counts now.
    static func load(at level: FeatureLevel, in db: Database) throws -> CountedRows {
        let job = try db.first("SELECT body FROM job WHERE id = \(Job.recountID)") {
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

/// Counts rows that are older than the counting, in a transaction.
struct RecountJob: TransactionPart {
    let transaction: RecordTransaction

    /// Continues to count rows that are older than the counting. Deleted zones go first: they are not counted.
    func work(on job: Job, budget: Int) throws -> Int {
        guard !job.body.isEmpty else {
            let retired = RetiredZones(transaction)
            if let zoneID = try retired.first() { return try retired.reclaim(zoneID, budget: budget) }
            try moveRecount(to: RowPlace(before: .record))
            return 1
        }
        let place = try RowPlace(decoding: job.body)
        // Counting a row is much cheaper than working on it.
        let limit = min(budget, 10_000) * 10
        let part = try rows(after: place, limit: limit)
        for (zoneID, bytes) in part.byZone.sorted(by: { $0.key < $1.key }) {
            try transaction.count(bytes, zoneID: zoneID)
        }
        for (databaseID, bytes) in part.byDatabase.sorted(by: { $0.key < $1.key }) {
            try transaction.count(bytes, databaseID: databaseID)
        }
        try Invariant.check(part.count <= limit, "a part of \(limit) rows has \(part.count)")
        if part.count == limit, let last = part.last {
            try moveRecount(to: last)
        } else if let table = place.table.next {
            try moveRecount(to: RowPlace(before: table))
        } else {
            try JobTable(transaction).end(job)
            transaction.counted = .all
        }
        return part.count / 10 + 1
    }

    private func moveRecount(to place: RowPlace) throws {
        transaction.counted = .upTo(place)
        try db.run("UPDATE job SET body = ? WHERE id = ?", place.encoded(), Job.recountID)
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
        try db.forEach(
            """
            SELECT id, zone, CASE deleted WHEN 1 THEN length(CAST(name AS BLOB)) ELSE 0 END FROM record
            WHERE id > ? ORDER BY id LIMIT ?
            """, place.row, limit
        ) { row in
            part.last = RowPlace(.record, row: row.integer(0))
            part.count += 1
            part.byZone[row.integer(1), default: 0] += RowBytes.record + row.integer(2)
            return true
        }
        return part
    }

    private func remembered(after place: RowPlace, limit: Int) throws -> RowPart {
        var part = RowPart()
        try db.forEach(
            "SELECT id, database, \(RememberedOutcome.rowBytes) FROM idempotency WHERE id > ? ORDER BY id LIMIT ?",
            place.row, limit
        ) { row in
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
        var values: [any SQLValue] = [place.field, place.zone]
        if place.table != .indexMissing { values.append(place.key?.value ?? [UInt8]()) }
        if place.table == .indexNumber && place.key == nil { values[2] = Int64.min }
        values += [place.row, limit]
        let marks = place.table == .indexMissing ? "?, ?, ?" : "?, ?, ?, ?"
        try db.forEach(
            "SELECT \(columns) FROM \(name) WHERE (\(columns)) > (\(marks)) ORDER BY \(columns) LIMIT ?", values: values
        ) { row in
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
                try db.all(
                    "SELECT i.id FROM record_type t JOIN field_index i ON i.type = t.id WHERE t.schema = ? ORDER BY i.id",
                    schema.id
                ) { $0.integer(0) }
            } ?? []
    }

    /// What a zone's rows count for.
    func zone(_ id: Int64) throws -> QuotaAmounts {
        let lastCounted: Int64 = counted == .all ? .max : counted.last?.table == .record ? counted.last?.row ?? 0 : .max
        let sum = try db.first(
            """
            SELECT coalesce(sum(length(CAST(name AS BLOB)) + length(body)) FILTER (WHERE deleted = 0), 0),
                coalesce(sum(\(RowBytes.record) + deleted * length(CAST(name AS BLOB))) FILTER (WHERE id <= ?2), 0),
                count(*) FILTER (WHERE deleted = 0)
            FROM record WHERE zone = ?1
            """, id, counted.isNone ? 0 : lastCounted
        ) { QuotaAmounts(bytes: $0.integer(0) + $0.integer(1), records: $0.integer(2)) }
        let rows = counted.isNone ? 0 : try indexes.reduce(0) { try $0 + indexBytes($1, zone: id) }
        let versions = try db.first(
            "SELECT coalesce(sum(\(VersionRow.bytes)), 0) FROM record_version v WHERE v.zone = ?", id
        ) { $0.integer(0) }
        return (sum ?? .zero) + QuotaAmounts(bytes: rows + (versions ?? 0), assets: try assetBytes(zone: id))
    }

    /// The sizes of the files that a zone's records name. Bodies are decoded only where some may name any.
    private func assetBytes(zone: Int64) throws -> Int64 {
        let hasAssets = try db.first("SELECT EXISTS (SELECT 1 FROM asset)") {
            $0.integer(0) != 0
        }
        guard hasAssets == true else { return 0 }
        var bytes: Int64 = 0
        try db.forEach(
            """
            SELECT body FROM record WHERE zone = ?1 AND deleted = 0
            UNION ALL SELECT body FROM record_version WHERE zone = ?1
            """, zone
        ) { row in
            bytes = saturating(bytes, try decodeBody(row.bytes(0)).assets.countedBytes)
            return true
        }
        return bytes
    }

    /// What is in no live zone of a database: rows of deleted zones, and what requests are remembered by.
    func others(_ databaseID: Int64) throws -> QuotaAmounts {
        if counted.isNone { return .zero }
        var sum = QuotaAmounts.zero
        let retired = try db.all("SELECT id FROM zone WHERE database = ? AND state = 1", databaseID) { $0.integer(0) }
        for id in retired { sum.bytes += try zone(id).bytes }
        try db.forEach(
            "SELECT id, \(RememberedOutcome.rowBytes) FROM idempotency WHERE database = ?", databaseID
        ) { row in
            if counted.contains(RowPlace(.idempotency, row: row.integer(0))) { sum.bytes += row.integer(1) }
            return true
        }
        return sum
    }

    private func indexBytes(_ index: Int64, zone: Int64) throws -> Int64 {
        var bytes: Int64 = 0
        try db.forEach("SELECT value, record FROM index_number WHERE field = ? AND zone = ?", index, zone) { row in
            let key = IndexKey.number(row.integer(0))
            let place = RowPlace(.indexNumber, field: index, zone: zone, key: key, row: row.integer(1))
            if counted.contains(place) { bytes += key.rowBytes }
            return true
        }
        try db.forEach("SELECT value, record FROM index_bytes WHERE field = ? AND zone = ?", index, zone) { row in
            let key = IndexKey.bytes(row.bytes(0))
            let place = RowPlace(.indexBytes, field: index, zone: zone, key: key, row: row.integer(1))
            if counted.contains(place) { bytes += key.rowBytes }
            return true
        }
        try db.forEach("SELECT record FROM index_missing WHERE field = ? AND zone = ?", index, zone) { row in
            let place = RowPlace(.indexMissing, field: index, zone: zone, row: row.integer(0))
            if counted.contains(place) { bytes += RowBytes.index }
            return true
        }
        return bytes
    }
}
