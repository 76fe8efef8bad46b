import GRDB
import RecordModel

/// Deleted zones whose records and index rows are still here, in a transaction.
struct RetiredZones: TransactionPart {
    let transaction: RecordTransaction

    /// The first one that is left.
    func first() throws -> Int64? {
        try db.first("SELECT id FROM zone WHERE state = 1 ORDER BY id LIMIT 1") { $0.integer(0) }
    }

    /// Removes some rows of a retired zone. A record and its index rows go together, so that what is stored always
    /// equals what the records call for.
    func reclaim(_ zoneID: Int64, budget: Int) throws -> Int {
        let schemaID = try db.first(
            "SELECT d.schema FROM zone z JOIN database d ON d.id = z.database WHERE z.id = ?", zoneID
        ) { $0.integer(0) }
        let schema = try schemaID.map { try transaction.schema(id: $0) } ?? .none
        let found = try db.all(
            "SELECT r.id FROM record r WHERE r.zone = ? ORDER BY r.sequence LIMIT ?", zoneID, budget
        ) { $0.integer(0) }
        var taken = 0
        var bytes: Int64 = 0
        for id in found {
            if transaction.isPartFull && taken > 0 { break }
            taken += 1
            guard let row = try transaction.rows.row(id) else { continue }
            transaction.partBytes += row.body.count
            if !transaction.counted.isNone { bytes -= transaction.counted.size(of: row, []).bytes }
            if !row.isDeleted {
                let body = try decodeBody(row.body)
                if let type = schema.byID[row.typeID] {
                    bytes += try removeIndexRows(row, type: type, body: body, zoneID: zoneID)
                }
                try EdgeTable(transaction).update(
                    zoneID: zoneID, recordID: row.id, from: Edge.all(in: body), to: [], sequence: 0)
                try NamedAssets(transaction).update(from: body.assets, to: [])
            }
            try transaction.rows.delete(row.id)
        }
        try transaction.count(bytes, zoneID: zoneID)
        if taken < found.count { return taken }
        var used = found.count
        if used < budget { used += try VersionTable(transaction).remove(ofZone: zoneID, budget: budget - used) }
        if used < budget { used += try dropRows(of: schema, zoneID: zoneID, budget: budget - used) }
        if used < budget { try finishRemoval(ofZone: zoneID) }
        return max(used, 1)
    }

    /// Removes what index rows an empty zone still has. Schemas that came since the zone was retired may have shown its
    /// records in ways that neither the last schema nor the bodies tell; the numbers of zones and records are given
    /// again, so nothing may be left.
    private func dropRows(of schema: InstalledSchema, zoneID: Int64, budget: Int) throws -> Int {
        let indexes = IndexJobs(transaction)
        var used = 0
        for index in schema.byID.values.flatMap(\.indexes).sorted(by: { $0.id < $1.id }) where used < budget {
            used += try indexes.drop(index.id, zones: zoneID...zoneID, budget: budget - used)
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
            let before = try transaction.indexedRecord(row, fields: fields)
            growth += try IndexTable(transaction).update(type, zoneID: zoneID, recordID: row.id, from: before, to: nil)
        }
        for index in type.indexes {
            growth -= try IndexTable(transaction).remove(index.id, zoneID: zoneID, nil, row.id)
        }
        return growth
    }

    /// Removes the row of an empty zone. The latest row of a name stays, as a tombstone.
    private func finishRemoval(ofZone zoneID: Int64) throws {
        let found = try db.first("SELECT bytes, database FROM zone WHERE id = ?", zoneID) {
            (bytes: $0.integer(0), databaseID: $0.integer(1))
        }
        guard let found else { return }
        try Invariant.check(found.bytes == 0, "zone \(zoneID) is empty, and counts \(found.bytes) bytes")
        try db.run(
            """
            DELETE FROM zone WHERE id = ? AND EXISTS (SELECT 1 FROM zone later WHERE later.database = zone.database
                AND later.name = zone.name AND later.incarnation > zone.incarnation)
            """, zoneID)
        try db.run("UPDATE zone SET state = 2, tombstones = 0 WHERE id = ?", zoneID)
        try forgetZones(of: found.databaseID)
    }

    /// Forgets the older half of a database's deleted zones where they are too many. Zones that take their names get
    /// greater incarnations all the same, and tokens of the database end, as they may be from before the deletions.
    private func forgetZones(of databaseID: Int64) throws {
        guard transaction.level >= .countedRows else { return }
        let count = try db.first("SELECT count(*) FROM zone WHERE database = ? AND state = 2", databaseID) {
            $0.integer(0)
        }
        guard let count, count > Limits.deletedZonesMax else { return }
        let gone = try db.all(
            "SELECT id, incarnation FROM zone WHERE database = ? AND state = 2 ORDER BY id LIMIT ?", databaseID,
            count - Int64(Limits.deletedZonesMax / 2)
        ) { (id: $0.integer(0), incarnation: $0.integer(1)) }
        for zone in gone {
            try db.run("DELETE FROM zone WHERE id = ?", zone.id)
            try db.checkOneRow("the tombstone \(zone.id) of a zone of database \(databaseID)")
        }
        let last = gone.reduce(0) { max($0, $1.incarnation) }
        try db.run("UPDATE database SET incarnation = 1 + max(incarnation, ?) WHERE id = ?", last, databaseID)
        try db.checkOneRow("an incarnation of database \(databaseID) above \(last)")
    }
}

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

/// What is left of deleted records, in a transaction.
struct TombstoneTable: TransactionPart {
    let transaction: RecordTransaction

    /// Removes tombstones that are too old or too many, oldest first in each zone, and raises the zones' floors.
    func purge(_ retention: Retention, budget: Int) throws -> Int {
        let old = try db.all(
            """
            SELECT \(Tombstone.columns) FROM record WHERE deleted = 1 AND modified_at < ?
            ORDER BY modified_at, zone, sequence LIMIT ?
            """, retention.cutoff(transaction.time), budget
        ) { Tombstone($0) }
        for (zoneID, tombstones) in Dictionary(grouping: old, by: \.zone).sorted(by: { $0.key < $1.key }) {
            try purge(tombstones, zoneID: zoneID)
        }
        var used = old.count
        try transaction.finish()
        while used < budget, let (zoneID, count) = try crowdedZone(retention) {
            let excess = Int64(min(budget - used, Int(count - retention.countMax)))
            let first = try db.all(
                "SELECT \(Tombstone.columns) FROM record WHERE zone = ? AND deleted = 1 ORDER BY sequence LIMIT ?",
                zoneID, excess
            ) { Tombstone($0) }
            try purge(first, zoneID: zoneID)
            try transaction.finish()
            used += max(first.count, 1)
        }
        return used
    }

    private func crowdedZone(_ retention: Retention) throws -> (id: Int64, tombstones: Int64)? {
        try db.first(
            """
            SELECT id, tombstones FROM zone WHERE tombstones > 0 AND tombstones > ? AND state = 0
            ORDER BY tombstones DESC, id LIMIT 1
            """, retention.countMax
        ) { ($0.integer(0), $0.integer(1)) }
    }

    private func purge(_ tombstones: [Tombstone], zoneID: Int64) throws {
        var bytes: Int64 = 0
        for tombstone in tombstones {
            try transaction.rows.delete(tombstone.id)
            if transaction.counted.containsRecord(tombstone.id) { bytes -= RowBytes.record + tombstone.nameBytes }
        }
        try transaction.count(bytes, zoneID: zoneID)
        // A retired zone has no feed.
        guard let zone = try transaction.openZone(id: zoneID), let last = tombstones.map(\.sequence).max() else {
            return
        }
        try Invariant.check(
            last <= zone.row.sequence, "zone \(zoneID) is at \(zone.row.sequence), and a tombstone at \(last)")
        try Invariant.check(
            zone.row.tombstones >= tombstones.count,
            "zone \(zoneID) counts \(zone.row.tombstones) tombstones, and \(tombstones.count) were removed")
        zone.row.floor = max(zone.row.floor, last)
        zone.row.tombstones -= Int64(tombstones.count)
        zone.isChanged = true
    }
}
