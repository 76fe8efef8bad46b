import GRDB
import RecordModel
import Wire

/// What is left of a deleted record.
private struct Tombstone {
    var id: Int64
    var zone: Int64
    var sequence: Int64
    var nameBytes: Int64

    static let columns = "id, zone, sequence, length(CAST(name AS BLOB))"

    init(_ row: SQLRow) {
        id = row.integer(0)
        zone = row.integer(1)
        sequence = row.integer(2)
        nameBytes = row.integer(3)
    }
}

extension RecordTransaction {
    func firstRetiredZone() throws -> Int64? {
        try SQLStatement(cached: "SELECT id FROM zone WHERE state = 1 ORDER BY id LIMIT 1", in: db).first {
            $0.integer(0)
        }
    }

    /// Removes some rows of a retired zone. A record and its index rows go together, so that what is stored always
    /// equals what the records call for.
    func reclaim(_ zoneID: Int64, budget: Int) throws -> Int {
        let schemaID = try SQLStatement(
            cached: "SELECT d.schema FROM zone z JOIN database d ON d.id = z.database WHERE z.id = ?", in: db
        ).first(.integer(zoneID)) { $0.integer(0) }
        let schema = try schemaID.map { try self.schema(id: $0) } ?? .none
        let found = try SQLStatement(
            cached: "SELECT r.id FROM record r WHERE r.zone = ? ORDER BY r.sequence LIMIT ?", in: db
        ).all(.integer(zoneID), .integer(Int64(budget))) { $0.integer(0) }
        var taken = 0
        var bytes: Int64 = 0
        for id in found {
            if isPartFull && taken > 0 { break }
            taken += 1
            guard let row = try rows.row(id) else { continue }
            partBytes += row.body.count
            if !counted.isNone { bytes -= counted.size(of: row, []).bytes }
            if !row.isDeleted {
                let body = try decodeBody(row.body)
                if let type = schema.byID[row.typeID] {
                    bytes += try removeIndexRows(row, type: type, body: body, zoneID: zoneID)
                }
                try updateEdges(zoneID: zoneID, recordID: row.id, from: Edge.all(in: body), to: [], sequence: 0)
                try updateAssets(from: body.assets, to: [])
            }
            try deleteRow(row.id)
        }
        try count(bytes, zoneID: zoneID)
        if taken < found.count { return taken }
        var used = found.count
        if used < budget { used += try VersionTable(self).remove(ofZone: zoneID, budget: budget - used) }
        if used < budget { used += try dropRows(of: schema, zoneID: zoneID, budget: budget - used) }
        if used < budget { try finishRemoval(ofZone: zoneID) }
        return max(used, 1)
    }

    /// Removes what index rows an empty zone still has. Schemas that came since the zone was retired may have shown its
    /// records in ways that neither the last schema nor the bodies tell; the numbers of zones and records are given
    /// again, so nothing may be left.
    private func dropRows(of schema: InstalledSchema, zoneID: Int64, budget: Int) throws -> Int {
        var used = 0
        for index in schema.byID.values.flatMap(\.indexes).sorted(by: { $0.id < $1.id }) where used < budget {
            used += try dropRows(of: index.id, zones: zoneID...zoneID, budget: budget - used)
        }
        return used
    }

    /// A reset may have changed what is visible of the record since its rows were made: they go under either view.
    /// - Returns: the bytes by which what counts in the zone's quota grew.
    private func removeIndexRows(
        _ row: RecordRow, type: InstalledType, body: Fields, zoneID: Int64
    ) throws -> Int64 {
        let visible = type.visible(body)
        var growth: Int64 = 0
        for fields in visible == body ? [body] : [visible, body] {
            let before = try indexedRecord(row, fields: fields)
            growth += try updateIndexes(type, zoneID: zoneID, recordID: row.id, from: before, to: nil)
        }
        for index in type.indexes { growth -= try removeIndexRow(index.id, zoneID: zoneID, nil, row.id) }
        return growth
    }

    private func deleteRow(_ id: Int64) throws {
        try SQLStatement(cached: "DELETE FROM record WHERE id = ?", in: db).run(.integer(id))
        try db.checkOneRow("the removal of record \(id)")
    }

    /// Removes the row of an empty zone. The latest row of a name stays, as a tombstone.
    private func finishRemoval(ofZone zoneID: Int64) throws {
        let found = try SQLStatement(cached: "SELECT bytes, database FROM zone WHERE id = ?", in: db)
            .first(.integer(zoneID)) { (bytes: $0.integer(0), databaseID: $0.integer(1)) }
        guard let found else { return }
        try Invariant.check(found.bytes == 0, "zone \(zoneID) is empty, and counts \(found.bytes) bytes")
        try SQLStatement(
            cached: """
                DELETE FROM zone WHERE id = ? AND EXISTS (SELECT 1 FROM zone later WHERE later.database = zone.database
                    AND later.name = zone.name AND later.incarnation > zone.incarnation)
                """, in: db
        ).run(.integer(zoneID))
        try SQLStatement(cached: "UPDATE zone SET state = 2, tombstones = 0 WHERE id = ?", in: db)
            .run(.integer(zoneID))
        try forgetZones(of: found.databaseID)
    }

    /// Forgets the older half of a database's deleted zones where they are too many. Zones that take their names get
    /// greater incarnations all the same, and tokens of the database end, as they may be from before the deletions.
    private func forgetZones(of databaseID: Int64) throws {
        guard level >= .countedRows else { return }
        let count = try SQLStatement(cached: "SELECT count(*) FROM zone WHERE database = ? AND state = 2", in: db)
            .first(.integer(databaseID)) { $0.integer(0) }
        guard let count, count > Limits.deletedZonesMax else { return }
        let gone = try SQLStatement(
            cached: "SELECT id, incarnation FROM zone WHERE database = ? AND state = 2 ORDER BY id LIMIT ?", in: db
        ).all(.integer(databaseID), .integer(count - Int64(Limits.deletedZonesMax / 2))) {
            (id: $0.integer(0), incarnation: $0.integer(1))
        }
        for zone in gone {
            try SQLStatement(cached: "DELETE FROM zone WHERE id = ?", in: db).run(.integer(zone.id))
            try db.checkOneRow("the tombstone \(zone.id) of a zone of database \(databaseID)")
        }
        let last = gone.reduce(0) { max($0, $1.incarnation) }
        try SQLStatement(cached: "UPDATE database SET incarnation = 1 + max(incarnation, ?) WHERE id = ?", in: db)
            .run(.integer(last), .integer(databaseID))
        try db.checkOneRow("an incarnation of database \(databaseID) above \(last)")
    }

    /// Removes tombstones that are too old or too many, oldest first in each zone, and raises the zones' floors.
    func purgeTombstones(_ retention: Retention, budget: Int) throws -> Int {
        let old = try SQLStatement(
            cached: """
                SELECT \(Tombstone.columns) FROM record WHERE deleted = 1 AND modified_at < ?
                ORDER BY modified_at, zone, sequence LIMIT ?
                """, in: db
        ).all(.integer(retention.cutoff(time)), .integer(Int64(budget))) { Tombstone($0) }
        for (zoneID, tombstones) in Dictionary(grouping: old, by: \.zone).sorted(by: { $0.key < $1.key }) {
            try purge(tombstones, zoneID: zoneID)
        }
        var used = old.count
        try finish()
        while used < budget, let (zoneID, count) = try crowdedZone(retention) {
            let excess = Int64(min(budget - used, Int(count - retention.countMax)))
            let first = try SQLStatement(
                cached: """
                    SELECT \(Tombstone.columns) FROM record WHERE zone = ? AND deleted = 1 ORDER BY sequence LIMIT ?
                    """, in: db
            ).all(.integer(zoneID), .integer(excess)) { Tombstone($0) }
            try purge(first, zoneID: zoneID)
            try finish()
            used += max(first.count, 1)
        }
        return used
    }

    private func crowdedZone(_ retention: Retention) throws -> (id: Int64, tombstones: Int64)? {
        try SQLStatement(
            cached: """
                SELECT id, tombstones FROM zone WHERE tombstones > 0 AND tombstones > ? AND state = 0
                ORDER BY tombstones DESC, id LIMIT 1
                """, in: db
        ).first(.integer(retention.countMax)) { ($0.integer(0), $0.integer(1)) }
    }

    private func purge(_ tombstones: [Tombstone], zoneID: Int64) throws {
        var bytes: Int64 = 0
        for tombstone in tombstones {
            try deleteRow(tombstone.id)
            if counted.containsRecord(tombstone.id) { bytes -= RowBytes.record + tombstone.nameBytes }
        }
        try count(bytes, zoneID: zoneID)
        // A retired zone has no feed.
        guard let zone = try openZone(id: zoneID), let last = tombstones.map(\.sequence).max() else { return }
        try Invariant.check(
            last <= zone.row.sequence, "zone \(zoneID) is at \(zone.row.sequence), and a tombstone at \(last)")
        try Invariant.check(
            zone.row.tombstones >= tombstones.count,
            "zone \(zoneID) counts \(zone.row.tombstones) tombstones, and \(tombstones.count) were removed")
        zone.row.floor = max(zone.row.floor, last)
        zone.row.tombstones -= Int64(tombstones.count)
        zone.isChanged = true
    }

    /// Removes a part of a purged container; repeated until it returns true. Maintenance removes records and index
    /// rows, as those of retired zones.
    ///
    /// Whatever is made later has greater incarnations: no token, tag or cursor of the old life fits it. The rows of
    /// the schemas stay, as if no schema had ever been installed: caches depend on their numbers and revisions, which
    /// are never reused.
    /// - Parameter rowsMax: rows of zones and databases that one part removes.
    /// - Returns: whether everything is gone.
    package func removeContainer(_ container: String, rowsMax: Int = 500) throws -> Bool {
        try forgetRows()
        var budget = rowsMax
        try removeSubscriptions(of: container, budget: &budget)
        guard budget > 0 else { return false }
        for environment in Environment.allCases {
            guard let schema = try rows.schema(container: container, environment: environment) else { continue }
            guard try remove(schemaID: schema.id, budget: &budget) else { return false }
        }
        return true
    }

    private func remove(schemaID: Int64, budget: inout Int) throws -> Bool {
        try raiseIncarnations(aboveThoseOf: schemaID)
        if try exists(
            """
            SELECT EXISTS (SELECT 1 FROM zone z JOIN database d ON d.id = z.database WHERE d.schema = ?1 AND z.state = 0)
                OR EXISTS (SELECT 1 FROM idempotency i JOIN database d ON d.id = i.database WHERE d.schema = ?1)
            """, schemaID)
        {
            try retireAll(schemaID: schemaID)
        }
        let isWaiting = try exists(
            """
            SELECT EXISTS (SELECT 1 FROM zone z JOIN database d ON d.id = z.database WHERE d.schema = ?1 AND z.state = 1)
                OR EXISTS (SELECT 1 FROM job WHERE kind IN (2, 4) AND subject = ?1)
                OR EXISTS (SELECT 1 FROM job j JOIN field_index f ON f.id = j.subject JOIN record_type t ON t.id = f.type
                    WHERE j.kind = 1 AND t.schema = ?1)
            """, schemaID)
        if isWaiting { return false }
        guard try removeDatabases(of: schemaID, budget: &budget) else { return false }
        for sql in [
            "DELETE FROM stray WHERE type IN (SELECT id FROM record_type WHERE schema = ?)",
            "DELETE FROM field_index WHERE type IN (SELECT id FROM record_type WHERE schema = ?)",
            "DELETE FROM record_type WHERE schema = ?",
        ] {
            try SQLStatement(cached: sql, in: db).run(.integer(schemaID))
        }
        try SQLStatement(
            cached: "UPDATE schema SET version = 0, generation = 0, revision = revision + 1, body = ?2 "
                + "WHERE id = ?1 AND version > 0",
            in: db
        ).run(.integer(schemaID), .blob(Schema().encoded()))
        return true
    }

    private func raiseIncarnations(aboveThoseOf schemaID: Int64) throws {
        let greatest = try SQLStatement(
            cached: """
                SELECT max(coalesce((SELECT max(incarnation) FROM database WHERE schema = ?1), 0), coalesce((
                    SELECT max(z.incarnation) FROM zone z JOIN database d ON d.id = z.database WHERE d.schema = ?1), 0))
                """, in: db
        ).first(.integer(schemaID)) { $0.integer(0) }
        guard let greatest, greatest >= incarnationFloor else { return }
        incarnationFloor = greatest + 1
        try SQLStatement(cached: "UPDATE record_state SET incarnation_floor = ?", in: db).run(
            .integer(incarnationFloor))
        try db.checkOneRow("a floor of incarnations at \(incarnationFloor)")
    }

    /// - Returns: whether no database is left.
    private func removeDatabases(of schemaID: Int64, budget: inout Int) throws -> Bool {
        while let database = try firstID("SELECT id FROM database WHERE schema = ? ORDER BY id LIMIT 1", schemaID) {
            while let zone = try firstID("SELECT id FROM zone WHERE database = ? ORDER BY id LIMIT 1", database) {
                guard budget > 0 else { return false }
                budget -= 1
                try SQLStatement(cached: "DELETE FROM zone WHERE id = ?", in: db).run(.integer(zone))
                try db.checkOneRow("the removal of zone \(zone)")
            }
            guard budget > 0 else { return false }
            budget -= 1
            for sql in [
                "DELETE FROM ledger_share WHERE database = ?", "DELETE FROM ledger WHERE database = ?",
                "DELETE FROM database WHERE id = ?",
            ] {
                try SQLStatement(cached: sql, in: db).run(.integer(database))
            }
            try db.checkOneRow("the removal of database \(database)")
        }
        return true
    }

    private func firstID(_ sql: String, _ owner: Int64) throws -> Int64? {
        try SQLStatement(cached: sql, in: db).first(.integer(owner)) { $0.integer(0) }
    }

    private func exists(_ sql: String, _ schemaID: Int64) throws -> Bool {
        try SQLStatement(cached: sql, in: db).first(.integer(schemaID)) { $0.integer(0) != 0 } ?? false
    }
}
