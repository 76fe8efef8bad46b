import GRDB
import RecordModel

/// Counts what quotas count from the stored rows alone.
struct Recount {
    private let counted: CountedRows
    /// The container environment's indexes, those that are being removed included.
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
        return (sum ?? .zero) + QuotaAmounts(bytes: rows, assets: try assetBytes(zone: id))
    }

    /// The sizes of the files that a zone's records name. Bodies are decoded only where some may name any.
    private func assetBytes(zone: Int64) throws -> Int64 {
        let hasAssets = try SQLStatement(cached: "SELECT EXISTS (SELECT 1 FROM asset)", in: db).first {
            $0.integer(0) != 0
        }
        guard hasAssets == true else { return 0 }
        var bytes: Int64 = 0
        try SQLStatement(cached: "SELECT body FROM record WHERE zone = ? AND deleted = 0", in: db)
            .forEach([.integer(zone)]) { row in
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
