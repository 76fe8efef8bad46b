import GRDB
import RecordModel

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
        var count = 0
        for id in found {
            if isPartFull && count > 0 { return count }
            count += 1
            guard let row = try row(id) else { continue }
            partBytes += row.body.count
            if !row.isDeleted {
                let body = try decodeBody(row.body)
                if let type = schema.byID[row.typeID] {
                    try removeIndexRows(row, type: type, body: body, zoneID: zoneID)
                }
                try updateEdges(zoneID: zoneID, recordID: row.id, from: Edge.all(in: body), to: [], sequence: 0)
                try updateAssets(from: body.assets, to: [])
            }
            try deleteRow(row.id)
        }
        var used = found.count
        if used < budget { used += try dropRows(of: schema, zoneID: zoneID, budget: budget - used) }
        if used < budget { try buryZone(zoneID) }
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
    private func removeIndexRows(_ row: RecordRow, type: InstalledType, body: Fields, zoneID: Int64) throws {
        let visible = type.visible(body)
        for fields in visible == body ? [body] : [visible, body] {
            let before = try indexedRecord(row, fields: fields)
            try updateIndexes(type, zoneID: zoneID, recordID: row.id, from: before, to: nil)
        }
        for index in type.indexes {
            try statements.deleteMissing.run(.integer(index.id), .integer(zoneID), .integer(row.id))
        }
    }

    private func deleteRow(_ id: Int64) throws {
        try SQLStatement(cached: "DELETE FROM record WHERE id = ?", in: db).run(.integer(id))
    }

    /// Keeps the row of an empty zone only while it is the last of its name.
    private func buryZone(_ zoneID: Int64) throws {
        try SQLStatement(
            cached: """
                DELETE FROM zone WHERE id = ? AND EXISTS (SELECT 1 FROM zone later WHERE later.database = zone.database
                    AND later.name = zone.name AND later.incarnation > zone.incarnation)
                """, in: db
        ).run(.integer(zoneID))
        try SQLStatement(cached: "UPDATE zone SET state = 2, tombstones = 0 WHERE id = ?", in: db)
            .run(.integer(zoneID))
    }

    /// Removes tombstones that are too old or too many, oldest first in each zone, and raises the zones' floors.
    func purgeTombstones(_ retention: Retention, budget: Int) throws -> Int {
        let old = try SQLStatement(
            cached: """
                SELECT id, zone, sequence FROM record WHERE deleted = 1 AND modified_at < ?
                ORDER BY modified_at, zone, sequence LIMIT ?
                """, in: db
        ).all(.integer(retention.cutoff(time)), .integer(Int64(budget))) {
            (id: $0.integer(0), zone: $0.integer(1), sequence: $0.integer(2))
        }
        for (zoneID, tombstones) in Dictionary(grouping: old, by: \.zone).sorted(by: { $0.key < $1.key }) {
            try purge(tombstones.map { ($0.id, $0.sequence) }, zoneID: zoneID)
        }
        var used = old.count
        try finish()
        while used < budget, let (zoneID, count) = try crowdedZone(retention) {
            let excess = Int64(min(budget - used, Int(count - retention.countMax)))
            let first = try SQLStatement(
                cached: "SELECT id, sequence FROM record WHERE zone = ? AND deleted = 1 ORDER BY sequence LIMIT ?",
                in: db
            ).all(.integer(zoneID), .integer(excess)) { ($0.integer(0), $0.integer(1)) }
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

    private func purge(_ tombstones: [(id: Int64, sequence: Int64)], zoneID: Int64) throws {
        for (id, _) in tombstones { try deleteRow(id) }
        // Nobody reads a retired zone's feed.
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
}
