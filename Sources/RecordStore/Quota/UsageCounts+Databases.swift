package import GRDB
package import RecordModel

extension UsageCounts {
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
