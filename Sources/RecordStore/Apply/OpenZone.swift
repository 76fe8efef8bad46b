import RecordModel

/// One database of a container, as far as the tables have it; shared by its open zones.
final class OpenDatabase {
    /// Nil where the shard knows nothing of the container's environment.
    var schema: SchemaRow?
    /// Nil where nothing was written to the database.
    var row: DatabaseRow?
    /// Whether `row` is to be written back.
    var isChanged = false
    /// Whether there is a row of what its assets count for.
    var hasAssetRow: Bool
    /// Those who are told of its changes; nil until that is asked for the first time.
    var watchers: (revision: Int, found: WatchersOfDatabase)?

    init(schema: SchemaRow?, row: DatabaseRow?) {
        self.schema = schema
        self.row = row
        hasAssetRow = row?.hasAssets ?? false
    }

    var version: UInt64 { schema?.version ?? 0 }
}

/// A live zone, with what is written back only by the end of the transaction.
final class OpenZone {
    let key: ZoneKey
    let database: OpenDatabase
    var row: ZoneRow
    /// Whether `row` is to be written back.
    var isChanged = false
    /// The command of this transaction that last moved the zone in its database's feed.
    var lastCommand = 0
    /// Whether records of the zone refer to others with an action; nil until that is asked for the first time.
    var hasEdges: Bool?
    /// Whether there is a row of what its assets count for.
    var hasAssetRow: Bool

    init(key: ZoneKey, database: OpenDatabase, row: ZoneRow) {
        self.key = key
        self.database = database
        self.row = row
        hasAssetRow = row.used.assets != 0
    }

    /// What holds of the zone whenever it is written.
    func check() throws(InvariantViolation) {
        try row.check()
        guard let database = database.row else {
            throw InvariantViolation("zone \(row.id) is written before its database")
        }
        try Invariant.check(
            row.used.fits(in: database.used),
            "zone \(row.id) has \(row.used) of the \(database.used) of its database \(database.id)")
        try Invariant.check(
            row.changedAt <= database.sequence,
            "zone \(row.id) changed at \(row.changedAt), and its database is at \(database.sequence)")
    }

    /// Counts what the zone's records grew by.
    func count(_ growth: QuotaAmounts) {
        row.used = row.used + growth
        isChanged = true
        if let used = database.row?.used { database.row?.used = used + growth }
        database.isChanged = true
    }
}

/// A request whose operations are being judged and written.
final class Batch {
    let command: ModifyRecords
    let database: OpenDatabase
    let schema: InstalledSchema
    /// Nil for a default zone that nothing was written to yet.
    var zone: OpenZone?
    /// The caller's number; nil if it never wrote to this shard.
    var callerID: Int64?
    /// Bytes of records in the items' outcomes beyond tags and stamps; at most `answerBytesMax`.
    var answerBytes = 0
    /// How far the request's records may grow; nil: as far as they will.
    var growth: GrowthLimit?
    /// Keeps earlier versions of what the request changes; nil where there are to be none.
    var versions: VersionKeeper?
    /// Earlier versions that went to make room.
    var yieldedVersions = 0
    /// Records that the deletions found to go along, themselves included; at most about `Limits.cascadeMax`.
    var cascaded = 0

    /// Rows that the operations so far write and remove.
    private var changedRows = 0

    /// What outcomes may carry of records: they are sent, and remembered for repetitions.
    static let answerBytesMax = 4 * 1_048_576

    /// Counts some bytes; false, and nothing counted, where the outcomes would carry too much.
    func takeAnswerBytes(_ count: Int) -> Bool {
        guard count <= Self.answerBytesMax - answerBytes else { return false }
        answerBytes += count
        return true
    }

    /// Counts rows that an operation changes: those of records and indexes, and those of files.
    /// - Returns: why it may not, and nothing is counted; the first may change any number.
    func takeRows(_ count: Int, files: Int) -> ServiceError? {
        guard changedRows == 0 || count + files <= Limits.rowsPerRequestMax - changedRows else {
            return files == 0 ? WrittenRows.tooMany : WrittenRows.tooManyWithFiles
        }
        changedRows += count + files
        return nil
    }

    init(
        command: ModifyRecords, database: OpenDatabase, schema: InstalledSchema, zone: OpenZone?, callerID: Int64?
    ) {
        self.command = command
        self.database = database
        self.schema = schema
        self.zone = zone
        self.callerID = callerID
    }
}
