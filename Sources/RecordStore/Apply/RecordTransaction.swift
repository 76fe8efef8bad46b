import GRDB
import RecordModel

/// A run of commands inside one write transaction of a shard database.
///
/// What the tables say of zones, users and the shard's time is read once and kept here; zone rows are written by
/// `finish`. After an error is thrown the transaction must be rolled back and this value dropped.
package final class RecordTransaction {
    let tables: RecordTables
    let db: Database
    let rows: Rows
    let statements: WriteStatements
    var names: StampNames
    var userIDs: [String: Int64] = [:]
    var databases: [DatabaseKey: OpenDatabase] = [:]
    var zones: [ZoneKey: OpenZone] = [:]
    /// The greatest command time so far, in milliseconds.
    var time: Int64
    private var storedTime: Int64
    var incarnationFloor: Int64
    /// The zone whose rows are being reclaimed.
    var retiredZoneID: Int64?

    /// One database of a container, as far as the tables have it.
    struct OpenDatabase {
        var schemaID: Int64?
        var version: UInt64
        var id: Int64?
    }

    /// A live zone and the database it is in.
    struct OpenZone {
        var row: ZoneRow
        var isChanged = false
    }

    init(tables: RecordTables, db: Database) throws {
        self.tables = tables
        self.db = db
        rows = Rows(db: db)
        statements = try WriteStatements(db)
        names = StampNames(db)
        let state = try SQLStatement(cached: "SELECT time, incarnation_floor FROM record_state", in: db)
            .first { ($0.integer(0), $0.integer(1)) }
        (storedTime, incarnationFloor) = state ?? (0, 1)
        time = storedTime
        retiredZoneID = try Self.firstRetiredZone(in: db)
    }

    /// Applies one command.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row: both stop the replica.
    package func apply(_ command: RecordCommand) throws -> RecordOutcome {
        try reclaim()
        switch command {
        case .modifyRecords(let command):
            time = max(time, command.time)
            return try modifyRecords(command)
        case .modifyZone(let command):
            time = max(time, command.time)
            return try modifyZone(command)
        case .installSchema(let command):
            return try installSchema(command)
        }
    }

    /// Writes what was kept back; the caller commits afterwards.
    package func finish() throws {
        if time != storedTime {
            try SQLStatement(cached: "UPDATE record_state SET time = ?", in: db).run(.integer(time))
            storedTime = time
        }
        for (key, zone) in zones where zone.isChanged {
            try statements.updateZone.run(.integer(zone.row.sequence), .integer(zone.row.id))
            zones[key]?.isChanged = false
        }
    }
}

/// The statements of a save, prepared once a transaction.
struct WriteStatements {
    let insertRecord: SQLStatement
    let updateRecord: SQLStatement
    let updateZone: SQLStatement
    let insertNumber: SQLStatement
    let insertBytes: SQLStatement
    let insertMissing: SQLStatement
    let deleteNumber: SQLStatement
    let deleteBytes: SQLStatement
    let deleteMissing: SQLStatement

    init(_ db: Database) throws {
        func prepare(_ sql: String) throws -> SQLStatement { try SQLStatement(cached: sql, in: db) }
        insertRecord = try prepare("INSERT INTO record VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)")
        updateRecord = try prepare(
            """
            UPDATE record SET type = ?, sequence = ?, created_at = ?, created_by = ?, modified_at = ?, modified_by = ?,
                deleted = ?, body = ? WHERE id = ?
            """)
        updateZone = try prepare("UPDATE zone SET sequence = ? WHERE id = ?")
        insertNumber = try prepare("INSERT INTO index_number VALUES (?, ?, ?, ?)")
        insertBytes = try prepare("INSERT INTO index_bytes VALUES (?, ?, ?, ?)")
        insertMissing = try prepare("INSERT INTO index_missing VALUES (?, ?, ?)")
        deleteNumber = try prepare("DELETE FROM index_number WHERE field = ? AND zone = ? AND value = ? AND record = ?")
        deleteBytes = try prepare("DELETE FROM index_bytes WHERE field = ? AND zone = ? AND value = ? AND record = ?")
        deleteMissing = try prepare("DELETE FROM index_missing WHERE field = ? AND zone = ? AND record = ?")
    }
}
