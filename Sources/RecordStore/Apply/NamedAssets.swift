package import GRDB
package import RecordModel
import Wire

/// The tables of what records name.
package enum AssetTables {
    /// What records name, and what that counts for. The tables are empty, and so make no difference between replicas,
    /// until `FeatureLevel.assets`. A count of nothing has no row, so that rows do not depend on how commands were
    /// grouped; but a file that nothing names any more is remembered for a while (`Retention.assetGrace`).
    static let creation = """
        CREATE TABLE asset (
            sha256 BLOB NOT NULL, size INTEGER NOT NULL, named INTEGER NOT NULL, released_at INTEGER NOT NULL,
            PRIMARY KEY (sha256, size)) WITHOUT ROWID;
        CREATE INDEX asset_released ON asset (released_at) WHERE named = 0;
        CREATE TABLE asset_zone (zone INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
        CREATE TABLE asset_database (
            database INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, received INTEGER NOT NULL, returned INTEGER NOT NULL);
        CREATE TABLE asset_ledger (database INTEGER PRIMARY KEY, cap INTEGER NOT NULL);
        CREATE TABLE asset_share (
            database INTEGER NOT NULL, shard INTEGER NOT NULL, granted INTEGER NOT NULL, returned INTEGER NOT NULL,
            PRIMARY KEY (database, shard)) WITHOUT ROWID;
        """

    /// Removes what is counted of, and allotted to, a database that is removed or made: numbers of databases are used
    /// again.
    static func forget(database id: Int64, in db: Database) throws {
        for table in ["asset_database", "asset_ledger", "asset_share"] {
            try db.run("DELETE FROM \(table) WHERE database = ?", id)
        }
    }

    /// Whether a file must be kept: a record names it, or did so a while ago.
    /// - Throws: `DatabaseError` on an I/O error.
    package static func keeps(_ sha256: [UInt8], in db: Database) throws -> Bool {
        try db.first("SELECT 1 FROM asset WHERE sha256 = ? LIMIT 1", sha256) { _ in
            true
        } ?? false
    }

    /// Files that records name, by their hashes: those after one, in order.
    /// - Throws: `DatabaseError` on an I/O error.
    package static func named(
        after last: AssetReference?, limit: Int, in db: Database
    ) throws -> [AssetReference] {
        try db.all(
            "SELECT sha256, size FROM asset WHERE (sha256, size) > (?, ?) AND named > 0 ORDER BY sha256, size LIMIT ?",
            last?.sha256 ?? [], last.map { Int64($0.size) } ?? -1, limit
        ) { try AssetReference($0) }
    }
}

/// What records name, in a transaction.
struct NamedAssets: TransactionPart {
    let transaction: RecordTransaction

    /// Counts what a record names from now on in place of what it named. What it goes on naming changes no row.
    func update(from old: [AssetReference], to new: [AssetReference]) throws {
        for (asset, change) in Self.changes(from: old, to: new) {
            if change > 0 {
                try db.run(
                    """
                    INSERT INTO asset VALUES (?, ?, ?, 0)
                    ON CONFLICT (sha256, size) DO UPDATE SET named = named + excluded.named, released_at = 0
                    """, asset.sha256, Int64(asset.size), change)
                if transaction.namedAssets.count < RecordTransaction.namedAssetsMax {
                    transaction.namedAssets.append(asset)
                }
            } else {
                try db.run(
                    """
                    UPDATE asset SET named = named - ?1, released_at = CASE named WHEN ?1 THEN ?2 ELSE 0 END
                    WHERE sha256 = ?3 AND size = ?4 AND named >= ?1
                    """, -change, transaction.time, asset.sha256, Int64(asset.size))
                try Invariant.check(
                    db.changesCount == 1, "asset \(asset) is given up \(-change) times, and less counts as naming it")
            }
        }
    }

    /// How many rows that changes, as far as requests are held to it.
    func changedRows(from old: [AssetReference], to new: [AssetReference]) -> Int {
        transaction.level >= .boundedFiles ? Self.changes(from: old, to: new).count : 0
    }

    /// How often more, or less, each file is named; only those of which that changes.
    private static func changes(
        from old: [AssetReference], to new: [AssetReference]
    ) -> [(asset: AssetReference, by: Int64)] {
        if old == new { return [] }
        var changes: [AssetReference: Int64] = [:]
        for asset in new { changes[asset, default: 0] += 1 }
        for asset in old { changes[asset, default: 0] -= 1 }
        return (new + old).compactMap { asset in
            guard let change = changes.removeValue(forKey: asset), change != 0 else { return nil }
            return (asset, change)
        }
    }

    /// Forgets files that nothing names since a while, those first that were given up first.
    func purge(_ retention: Retention, budget: Int) throws -> Int {
        let old = try db.all(
            """
            SELECT sha256, size FROM asset WHERE named = 0 AND released_at <= ?
            ORDER BY released_at, sha256, size LIMIT ?
            """, retention.assetCutoff(transaction.time), budget
        ) { ($0.bytes(0), $0.integer(1)) }
        for (sha256, size) in old {
            try db.run("DELETE FROM asset WHERE sha256 = ? AND size = ? AND named = 0", sha256, size)
        }
        return old.count
    }

    /// Writes what a zone's assets count for.
    func write(of zone: OpenZone) throws {
        let bytes = zone.row.used.assets
        if bytes != 0 {
            try db.run("INSERT OR REPLACE INTO asset_zone VALUES (?, ?)", zone.row.id, bytes)
        } else if zone.hasAssetRow {
            try db.run("DELETE FROM asset_zone WHERE zone = ?", zone.row.id)
        }
        zone.hasAssetRow = bytes != 0
    }

    /// Writes what a database's assets count for, and may.
    func write(of database: OpenDatabase) throws {
        guard let row = database.row else { return }
        if row.hasAssets {
            try db.run(
                "INSERT OR REPLACE INTO asset_database VALUES (?, ?, ?, ?)", row.id, row.used.assets,
                row.received.assets, row.returned.assets)
        } else if database.hasAssetRow {
            try db.run("DELETE FROM asset_database WHERE database = ?", row.id)
        }
        database.hasAssetRow = row.hasAssets
    }
}

extension DatabaseRow {
    /// Whether something is counted of its assets.
    var hasAssets: Bool { used.assets != 0 || received.assets != 0 || returned.assets != 0 }
}

extension AssetReference {
    /// A row's hash and size.
    fileprivate init(_ row: SQLRow) throws(WireError) {
        let (sha256, size) = (row.bytes(0), UInt64(exactly: row.integer(1)))
        guard sha256.count == Self.hashBytes, let size, size <= Self.sizeMax else { throw .invalidValue(field: 1) }
        self.init(sha256: sha256, size: size)
    }
}
