package import GRDB
package import RecordModel
package import Wire

/// How much of a zone the records of one type are: their names and values as they are stored, without index rows and
/// files.
package struct TypeUsage: Hashable, Sendable, WireMessage {
    /// The record type's.
    package var name: String
    /// Those that are not deleted.
    package var records: Int64
    /// Of these.
    package var bytes: Int64
    /// How many of them have a value of a field, by the field's name, where that is asked for.
    package var byField: [FieldUsage] = []

    package init(name: String, records: Int64, bytes: Int64) {
        self.name = name
        self.records = records
        self.bytes = bytes
    }

    package static var blank: Self { TypeUsage(name: "", records: 0, bytes: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &records)
        try wire.field(3, &bytes)
        try wire.field(4, &byField)
    }
}

/// How many records have a value of a field.
package struct FieldUsage: Hashable, Sendable, WireMessage {
    /// The field's.
    package var name: String
    /// Those that are not deleted.
    package var records: Int64

    package static var blank: Self { FieldUsage(name: "", records: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &records)
    }
}

/// Counts beside those that are kept.
package enum UsageCounts {
    /// What a request asks for.
    /// - Parameter level: the feature level in force: it says which rows count.
    /// - Throws: `DatabaseError` on an I/O error.
    package static func page(_ request: UsageRequest, level: FeatureLevel, in db: Database) throws -> UsagePage {
        request.detail == .sums ? try sums(request, in: db) : try databases(request, level: level, in: db)
    }

    /// A zone as a request asks for it.
    static func zone(
        _ zone: ZoneRow, _ name: String, _ recount: QuotaAmounts?, _ request: UsageRequest, in db: Database
    ) throws -> ZoneUsage {
        let types: [TypeUsage] =
            switch request.detail {
            case .types: try types(ofZone: zone.id, in: db)
            case .fields: try fields(ofZone: zone.id, request, in: db)
            default: []
            }
        return ZoneUsage(name: name, used: zone.used, recount: recount, types: types)
    }

    /// Counts a zone's records by type, which reads all of its rows.
    private static func types(ofZone id: Int64, in db: Database) throws -> [TypeUsage] {
        try db.all(
            """
            SELECT t.name, count(*),
                sum(\(RowBytes.record) + length(CAST(r.name AS BLOB)) + coalesce(length(r.body), 0))
            FROM record r JOIN record_type t ON t.id = r.type
            WHERE r.zone = ? AND r.deleted = 0 GROUP BY r.type ORDER BY t.name
            """, id
        ) { TypeUsage(name: $0.text(0), records: $0.integer(1), bytes: $0.integer(2)) }
    }

    /// The same, with their fields as reads see them.
    private static func fields(ofZone id: Int64, _ request: UsageRequest, in db: Database) throws -> [TypeUsage] {
        let row = try Rows(db: db).schema(container: request.container, environment: request.environment)
        guard let row, let schema = try InstalledSchema.load(schemaID: row.id, in: db) else { return [] }
        var counts: [Int64: [String: Int64]] = [:]
        try db.forEach("SELECT type, body FROM record WHERE zone = ? AND deleted = 0", id) { row in
            guard let type = schema.byID[row.integer(0)] else { return true }
            for field in type.visible(try decodeBody(row.bytes(1))).all {
                counts[type.id, default: [:]][field.name, default: 0] += 1
            }
            return true
        }
        return try types(ofZone: id, in: db).map { type in
            var type = type
            let fields = schema.byName[type.name].flatMap { counts[$0.id] } ?? [:]
            type.byField = fields.map { FieldUsage(name: $0.key, records: $0.value) }.sorted { $0.name < $1.name }
            return type
        }
    }

    /// What all databases of a container's environment come to on this shard, by scope: a row for each, without owner.
    static func sums(_ request: UsageRequest, in db: Database) throws -> UsagePage {
        var page = UsagePage(databases: [], hasMore: false)
        guard let schema = try Rows(db: db).schema(container: request.container, environment: request.environment)
        else { return page }
        page.databases = try db.all(
            """
            SELECT d.scope, sum(d.bytes), sum(d.records), coalesce(sum(a.bytes), 0) FROM database d
            LEFT JOIN asset_database a ON a.database = d.id WHERE d.schema = ? GROUP BY d.scope ORDER BY d.scope
            """, schema.id
        ) { row in
            (
                scope: Scope(column: row.integer(0)),
                used: QuotaAmounts(bytes: row.integer(1), records: row.integer(2), assets: row.integer(3))
            )
        }.compactMap { scope, used in
            scope.map { scope in
                let key = DatabaseKey(
                    container: request.container, environment: request.environment, scope: scope, owner: "")
                return DatabaseUsage(key: key, used: used, allotted: .zero, zones: [])
            }
        }
        return page
    }

    // MARK: Databases

    /// How much the databases of a container environment, or one of them, hold on this shard: a page, by scope, owner
    /// and zone.
    ///
    /// A page of `recount` is of one moment: where counters are right, each zone's recount equals them. With more zones
    /// or records than one page takes, a database goes on in the next; each part tells the whole database's counters.
    /// - Parameter level: the feature level in force: it says which rows count.
    /// - Throws: `DatabaseError` on an I/O error.
    package static func databases(
        _ request: UsageRequest, limits: UsageLimits = UsageLimits(),
        level: FeatureLevel = FeatureLevel.supported.upperBound, in db: Database
    ) throws -> UsagePage {
        var page = UsagePage(databases: [], hasMore: false)
        let recounts = request.detail == .recount ? try Recount(request, level: level, in: db) : nil
        var (zonesLeft, recordsLeft) = (limits.zones, limits.records)
        for (key, row) in try databases(for: request, limit: limits.databases, in: db) {
            // An empty page could not be continued.
            let isFull = zonesLeft == 0 || recordsLeft <= 0 || page.databases.count == limits.databases
            if isFull, !page.databases.isEmpty {
                page.hasMore = true
                break
            }
            var usage = DatabaseUsage(key: key, used: row.used, allotted: row.allotted, zones: [])
            if request.detail != .totals {
                let after = request.after.flatMap { $0.database.isSamePlace(as: key) ? $0.zone : nil }
                for (zone, name) in try liveZones(of: row, after: after ?? "", limit: zonesLeft + 1, in: db) {
                    guard zonesLeft > 0, recordsLeft > 0 else {
                        page.isLastCut = true
                        break
                    }
                    let recount = try recounts?.zone(zone.id)
                    usage.zones.append(try self.zone(zone, name, recount, request, in: db))
                    zonesLeft -= 1
                    recordsLeft -= usage.zones.last?.countedRecords ?? 0
                }
            }
            if let recounts {
                usage.others = try recounts.others(row.id)
                usage.unattributed = try unattributed(row, usage.others, in: db)
            }
            page.databases.append(usage)
            if page.isLastCut {
                page.hasMore = true
                break
            }
        }
        return page
    }

    /// The databases of a page, and the next one if there is one.
    private static func databases(
        for request: UsageRequest, limit: Int, in db: Database
    ) throws -> [(key: DatabaseKey, row: DatabaseRow)] {
        let rows = Rows(db: db)
        guard let schema = try rows.schema(container: request.container, environment: request.environment) else {
            return []
        }
        let after = request.after
        if let key = request.database {
            // The page before covered all of it.
            if let after, after.zone == nil { return [] }
            return try rows.database(key, schemaID: schema.id).map { [(key, $0)] } ?? []
        }
        return try db.all(
            """
            SELECT \(DatabaseRow.columns), d.scope, d.owner FROM database d
            WHERE d.schema = ? AND (d.scope, d.owner) \(after?.zone == nil ? ">" : ">=") (?, ?)
            ORDER BY d.scope, d.owner LIMIT ?
            """, schema.id, after?.database.scope.column ?? 0, after?.database.owner ?? "", limit + 1
        ) {
            (
                row: DatabaseRow($0), scope: Scope(column: $0.integer(DatabaseRow.columnCount)),
                owner: $0.text(DatabaseRow.columnCount + 1)
            )
        }.compactMap { row, scope, owner in
            scope.map { scope in
                let key = DatabaseKey(
                    container: request.container, environment: request.environment, scope: scope, owner: owner)
                return (key, row)
            }
        }
    }

    private static func liveZones(
        of database: DatabaseRow, after name: String, limit: Int, in db: Database
    ) throws -> [(row: ZoneRow, name: String)] {
        try db.all(
            """
            SELECT \(ZoneRow.columns), z.name FROM zone z WHERE z.database = ? AND z.state = 0 AND z.name > ?
            ORDER BY z.name LIMIT ?
            """, database.id, name, Int64(clamping: limit)
        ) { (row: ZoneRow($0), name: $0.text(ZoneRow.columnCount)) }
    }

    /// The excess of the database's counters over what its rows add up to; zero if they are right.
    private static func unattributed(
        _ database: DatabaseRow, _ others: QuotaAmounts, in db: Database
    ) throws -> QuotaAmounts {
        let zones = try db.first(
            """
            SELECT coalesce(sum(z.bytes), 0), coalesce(sum(z.records), 0), coalesce(sum(a.bytes), 0)
            FROM zone z LEFT JOIN asset_zone a ON a.zone = z.id WHERE z.database = ? AND z.state = 0
            """, database.id
        ) { QuotaAmounts(bytes: $0.integer(0), records: $0.integer(1), assets: $0.integer(2)) }
        return database.used - (zones ?? .zero) - others
    }

    /// How much one database holds on this shard; nothing where the shard does not know it.
    /// - Throws: `DatabaseError` on an I/O error.
    package static func database(
        _ key: DatabaseKey, recount: Bool = false, level: FeatureLevel = FeatureLevel.supported.upperBound,
        in db: Database
    ) throws -> DatabaseUsage {
        let rows = Rows(db: db)
        guard let schema = try rows.schema(key), let row = try rows.database(key, schemaID: schema.id) else {
            return DatabaseUsage(key: key, used: .zero, allotted: .zero, zones: [])
        }
        let recounts = recount ? try Recount(UsageRequest(of: key), level: level, in: db) : nil
        var usage = DatabaseUsage(
            key: key, used: row.used, allotted: row.allotted,
            zones: try liveZones(of: row, after: "", limit: .max, in: db).map { zone, name in
                ZoneUsage(name: name, used: zone.used, recount: try recounts?.zone(zone.id))
            })
        usage.others = try recounts?.others(row.id) ?? .zero
        return usage
    }
}

extension DatabaseKey {
    /// Whether another key is of the same scope and owner.
    fileprivate func isSamePlace(as other: DatabaseKey) -> Bool { scope == other.scope && owner == other.owner }
}
