import GRDB
import RecordModel

/// Earlier versions of records, in a transaction.
struct VersionTable: TransactionPart {
    let transaction: RecordTransaction

    /// Keeps a record as it was, under the sequence that it had. The oldest of its versions go where they are too many.
    /// - Parameter row: read before the change, with its body.
    func leave(
        of row: RecordRow, type: InstalledType, in zone: OpenZone, _ end: VersionEnd, _ keeper: VersionKeeper
    ) throws {
        guard let database = zone.database.row, let schema = zone.database.schema else { return }
        let stored = try decodeBody(row.body)
        let fields = type.scrubbed(stored)
        let body = fields == stored ? row.body : encodeBody(fields)
        let assets = fields.assets
        let size = QuotaAmounts(
            bytes: RowBytes.version + Int64(row.name.utf8.count + body.count), assets: assets.countedBytes)
        try db.run(
            "INSERT INTO record_version VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", schema.id,
            database.id, zone.row.id, row.name, row.typeID, row.sequence, row.createdAt, row.createdBy, row.modifiedAt,
            row.modifiedBy, transaction.stamp, end.by, end.isDeletion ? 1 : 0, transaction.time,
            keeper.quota?.epoch ?? 0, size.assets, body)
        keeper.left.append(db.lastInsertedRowID)
        zone.count(size)
        try NamedAssets(transaction).update(from: [], to: assets)
        let excess = try db.all(
            """
            SELECT \(VersionRow.columns) FROM record_version v WHERE v.zone = ? AND v.name = ?
            ORDER BY v.sequence DESC LIMIT -1 OFFSET ?
            """, zone.row.id, row.name, Int64(clamping: keeper.versionsMax)
        ) { VersionRow($0) }
        for version in excess { try remove(version) }
    }

    private func remove(_ version: VersionRow) throws {
        // A file may have no bytes, and is kept for its name all the same.
        let body = try db.first("SELECT body FROM record_version WHERE id = ?", version.id) { $0.bytes(0) }
        try NamedAssets(transaction).update(from: try decodeBody(body ?? []).assets, to: [])
        try db.run("DELETE FROM record_version WHERE id = ?", version.id)
        try db.checkOneRow("the removal of version \(version.id)")
        if let zone = try transaction.openZone(id: version.zone) {
            zone.count(.zero - version.size)
        } else {
            // Its files counted as given up when its zone was deleted.
            try transaction.count(-version.size.bytes, zoneID: version.zone)
        }
    }

    // MARK: Room

    /// Removes the oldest versions of a request's database where that makes room for what lacks it.
    func makeRoom(for lack: QuotaAmounts, _ batch: Batch) throws {
        guard lack != .zero, lack.records == 0, batch.versions != nil, let database = batch.database.row else { return }
        let (versions, freed) = try oldestVersions(
            of: database.id, room: lack, limit: VersionRow.yieldedMax - batch.yieldedVersions)
        batch.yieldedVersions += versions.count
        guard lack.fits(in: freed) else { return }
        for version in versions { try remove(version) }
        if let used = batch.growth?.used { batch.growth?.used = used - freed }
    }

    /// What the versions that a request left take beyond its database's room has the ledger asked for more. Where that
    /// has no more the oldest go.
    func settle(_ batch: Batch) throws {
        guard let versions = batch.versions else { return }
        let lack = versions.excess(of: batch.database)
        if lack == .zero { return }
        if batch.growth?.terms.isFinal == false {
            batch.growth?.ask(for: lack)
        } else {
            try settle(versions, in: batch.database)
        }
    }

    /// Has the oldest versions of a database go where those that were left take more than there is room for.
    func settle(_ keeper: VersionKeeper, in database: OpenDatabase) throws {
        let lack = keeper.excess(of: database)
        guard lack != .zero, let row = database.row else { return }
        let (versions, freed) = try oldestVersions(of: row.id, room: lack, limit: VersionRow.yieldedMax)
        for version in versions { try remove(version) }
        if lack.fits(in: freed) { return }
        // Many small ones are older than those that were left: these do not fit.
        for id in keeper.left {
            let version = try db.first("SELECT \(VersionRow.columns) FROM record_version v WHERE v.id = ?", id) {
                VersionRow($0)
            }
            if let version { try remove(version) }
        }
    }

    /// The oldest versions in a database's live zones whose removal makes some room.
    private func oldestVersions(
        of databaseID: Int64, room: QuotaAmounts, limit: Int
    ) throws -> (versions: [VersionRow], freed: QuotaAmounts) {
        var (versions, freed) = ([VersionRow](), QuotaAmounts.zero)
        try db.forEach(
            """
            SELECT \(VersionRow.columns) FROM record_version v JOIN zone z ON z.id = v.zone AND z.state = 0
            WHERE v.database = ? ORDER BY v.since, v.id LIMIT ?
            """, databaseID, Int64(max(limit, 0))
        ) { row in
            if room.fits(in: freed) { return false }
            let version = VersionRow(row)
            freed = freed + version.size
            versions.append(version)
            return true
        }
        return (versions, freed)
    }

    // MARK: Maintenance

    /// Removes versions that are older than their containers keep them, the oldest first.
    func purge(_ ages: [VersionAge], budget: Int) throws -> Int {
        var used = 0
        for age in ages {
            for environment in Environment.allCases where used < budget {
                guard let schema = try transaction.rows.schema(container: age.container, environment: environment)
                else { continue }
                let old = try db.all(
                    """
                    SELECT \(VersionRow.columns) FROM record_version v
                    WHERE v.schema = ? AND v.since <= ? AND v.epoch <= ? ORDER BY v.since, v.id LIMIT ?
                    """, schema.id, age.cutoff(transaction.time), age.epoch, Int64(budget - used)
                ) { VersionRow($0) }
                for version in old { try remove(version) }
                used += old.count
            }
        }
        return used
    }

    /// Removes versions of a retired zone.
    /// - Returns: how many; less than `budget` once all are gone.
    func remove(ofZone zoneID: Int64, budget: Int) throws -> Int {
        let found = try db.all(
            "SELECT \(VersionRow.columns) FROM record_version v WHERE v.zone = ? ORDER BY v.name, v.sequence LIMIT ?",
            zoneID, budget
        ) { VersionRow($0) }
        for version in found { try remove(version) }
        return found.count
    }

    func isEmpty() throws -> Bool {
        try db.first("SELECT NOT EXISTS (SELECT 1 FROM record_version)") { $0.integer(0) != 0 } ?? true
    }

    /// Cleans versions of what the schema lost, those of lost types go. Versions that are left meanwhile are clean.
    /// - Returns: the row to go on after, nil at the end, and how many rows that counts for.
    func scrub(
        _ job: Job, types: Set<Int64>, _ schema: InstalledSchema, budget: Int
    ) throws -> (next: Int64?, used: Int) {
        let ids = try db.all(
            "SELECT id, type FROM record_version WHERE id > ? ORDER BY id LIMIT ?", job.position,
            Int64(clamping: budget)
        ) { ($0.integer(0), $0.integer(1)) }
        for (place, (id, typeID)) in ids.enumerated() {
            if transaction.isPartFull && place > 0 { return (ids[place - 1].0, place) }
            if types.contains(typeID) { try scrub(id, as: schema.byID[typeID]) }
        }
        return (ids.count == budget ? ids.last?.0 : nil, ids.count)
    }

    private func scrub(_ id: Int64, as type: InstalledType?) throws {
        let found = try db.first("SELECT \(VersionRow.columns), v.body FROM record_version v WHERE v.id = ?", id) {
            (version: VersionRow($0), body: $0.bytes(4))
        }
        // What is in a retired zone goes with it.
        guard let (version, body) = found, let zone = try transaction.openZone(id: version.zone) else { return }
        transaction.partBytes += body.count
        guard let type else { return try remove(version) }
        let stored = try decodeBody(body)
        let fields = type.scrubbed(stored)
        if fields == stored { return }
        let (scrubbed, assets) = (encodeBody(fields), fields.assets)
        try db.run("UPDATE record_version SET body = ?, assets = ? WHERE id = ?", scrubbed, assets.countedBytes, id)
        try db.checkOneRow("the values of version \(id)")
        zone.count(
            QuotaAmounts(
                bytes: Int64(scrubbed.count - body.count), assets: assets.countedBytes - version.size.assets))
        try NamedAssets(transaction).update(from: stored.assets, to: assets)
    }
}

extension VersionTable {
    /// What records were before they were changed or deleted. Rows go by the record's name, as that outlives its
    /// tombstone. Empty, and so no difference between replicas, until `FeatureLevel.versions`.
    ///
    /// `replaced_at` is the stamp of the change, `since` the shard's time then: age is by the latter. `epoch` is the
    /// version of the container's limits by which the row was left: who knows a lower one does not remove it.
    static let creation = """
        CREATE TABLE record_version (
            id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, database INTEGER NOT NULL, zone INTEGER NOT NULL,
            name TEXT NOT NULL, type INTEGER NOT NULL, sequence INTEGER NOT NULL, created_at INTEGER NOT NULL,
            created_by INTEGER NOT NULL, modified_at INTEGER NOT NULL, modified_by INTEGER NOT NULL,
            replaced_at INTEGER NOT NULL, replaced_by INTEGER NOT NULL, deleted INTEGER NOT NULL,
            since INTEGER NOT NULL, epoch INTEGER NOT NULL, assets INTEGER NOT NULL, body BLOB NOT NULL);
        CREATE UNIQUE INDEX record_version_name ON record_version (zone, name, sequence);
        CREATE INDEX record_version_age ON record_version (schema, since);
        CREATE INDEX record_version_database ON record_version (database, since);
        """
}

/// What is needed of a row of `record_version` to remove it.
struct VersionRow {
    var id: Int64
    var zone: Int64
    /// What it counts for.
    var size: QuotaAmounts

    static let bytes = "\(RowBytes.version) + length(CAST(v.name AS BLOB)) + length(v.body)"
    /// The columns in the order that `init` reads them.
    static let columns = "v.id, v.zone, \(bytes), v.assets"

    init(_ row: SQLRow) {
        id = row.integer(0)
        zone = row.integer(1)
        size = QuotaAmounts(bytes: row.integer(2), assets: row.integer(3))
    }

    /// The most that go for the room that one command needs: enough for the largest record.
    static let yieldedMax = 10_000
}

/// How a version of a record ended.
struct VersionEnd {
    /// Who changed or deleted the record.
    var by: Int64
    var isDeletion: Bool
}

/// Keeps earlier versions of what one command, or a part of a cascade, changes.
final class VersionKeeper {
    /// How many of one record stay.
    let versionsMax: UInt64
    /// The terms under which the command's records may grow.
    let quota: QuotaTerms?
    /// What the database may hold on this shard; nil where nothing is limited.
    private let allotted: QuotaAmounts?
    /// The rows that were left, in order.
    var left: [Int64] = []

    /// Nil where none are kept, or the shard still comes to count its rows: versions count from the first.
    /// - Parameter database: as it is before the command.
    init?(_ versionsMax: UInt64, _ quota: QuotaTerms?, _ database: OpenDatabase, in transaction: RecordTransaction) {
        guard versionsMax > 0, transaction.level >= .versions, transaction.counted == .all else { return nil }
        self.versionsMax = versionsMax
        self.quota = quota
        allotted = quota.map { GrowthLimit($0, database: database.row).allotted }
    }

    /// What a database uses beyond its room in what versions take; nothing where none was left.
    func excess(of database: OpenDatabase) -> QuotaAmounts {
        guard let allotted, !left.isEmpty, let used = database.row?.used else { return .zero }
        return QuotaAmounts(bytes: max(used.bytes - allotted.bytes, 0), assets: max(used.assets - allotted.assets, 0))
    }
}
