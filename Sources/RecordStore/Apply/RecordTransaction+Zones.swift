import Authorization
import GRDB
import RecordModel

/// Rows of retired zones that one command reclaims.
private let reclaimedRowsMax: Int64 = 16

extension RecordTransaction {
    func modifyZone(_ command: ModifyZone) throws -> RecordOutcome {
        let key = command.zone
        guard key.database.scope == .private else {
            return .refused(ServiceError(.badRequest, "only private databases have zones of their own"))
        }
        guard command.caller.isOwner(of: key.database) else {
            return .refused(ServiceError(.accessDenied, "only its owner may use a private database"))
        }
        guard !key.isDefault else {
            return .refused(ServiceError(.badRequest, "the default zone can be neither created nor deleted"))
        }
        guard (1...Limits.nameLengthMax).contains(key.name.count) else {
            return .refused(
                ServiceError(
                    .badRequest,
                    "zoneName has \(key.name.count) characters, 1 to \(Limits.nameLengthMax) are allowed"))
        }
        let live = try openZone(key)
        switch command.kind {
        case .create: return .zone(.exists(try (live ?? makeZone(key)).described(as: key.name)))
        case .delete:
            guard let live else { return .refused(ZoneRules.notFound(key)) }
            try retire(live, key)
            return .zone(.deleted)
        }
    }

    private func retire(_ zone: ZoneRow, _ key: ZoneKey) throws {
        try SQLStatement(cached: "UPDATE zone SET state = ?, sequence = ? WHERE id = ?", in: db)
            .run(.integer(ZoneLife.retired), .integer(zone.sequence), .integer(zone.id))
        zones[key] = nil
        retiredZoneID = min(retiredZoneID ?? zone.id, zone.id)
    }

    static func firstRetiredZone(in db: Database) throws -> Int64? {
        try SQLStatement(cached: "SELECT id FROM zone WHERE state = 1 ORDER BY id LIMIT 1", in: db).first {
            $0.integer(0)
        }
    }

    /// Removes some rows of the first retired zone. A record and its index rows go together, so that what is stored
    /// always equals what the records call for.
    func reclaim() throws {
        guard let zoneID = retiredZoneID else { return }
        let schema = try schema(ofZone: zoneID)
        let found = try SQLStatement(
            cached: "SELECT \(RecordRow.columns) FROM record r WHERE r.zone = ? ORDER BY r.sequence LIMIT ?", in: db
        ).all(.integer(zoneID), .integer(reclaimedRowsMax)) { RecordRow($0) }
        for row in found {
            if !row.isDeleted, let type = schema?.byID[row.typeID] {
                let before = try indexedRecord(row, fields: try decodeBody(row.body))
                try updateIndexes(type, zoneID: zoneID, recordID: row.id, from: before, to: nil)
            }
            try SQLStatement(cached: "DELETE FROM record WHERE id = ?", in: db).run(.integer(row.id))
        }
        guard found.count < reclaimedRowsMax else { return }
        try bury(zoneID)
        retiredZoneID = try Self.firstRetiredZone(in: db)
    }

    /// Keeps the row of an empty zone only while it is the last of its name.
    private func bury(_ zoneID: Int64) throws {
        try SQLStatement(
            cached: """
                DELETE FROM zone WHERE id = ? AND EXISTS (SELECT 1 FROM zone later WHERE later.database = zone.database
                    AND later.name = zone.name AND later.incarnation > zone.incarnation)
                """, in: db
        ).run(.integer(zoneID))
        try SQLStatement(cached: "UPDATE zone SET state = ? WHERE id = ?", in: db)
            .run(.integer(ZoneLife.tombstone), .integer(zoneID))
    }

    private func schema(ofZone zoneID: Int64) throws -> InstalledSchema? {
        let found = try SQLStatement(
            cached: """
                SELECT s.id, s.version FROM zone z JOIN database d ON d.id = z.database JOIN schema s ON s.id = d.schema
                WHERE z.id = ?
                """, in: db
        ).first(.integer(zoneID)) { ($0.integer(0), UInt64(bitPattern: $0.integer(1))) }
        return try found.map { try tables.installedSchema(id: $0.0, version: $0.1, in: db) }
    }
}
