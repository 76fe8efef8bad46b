import GRDB
import RecordModel

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
