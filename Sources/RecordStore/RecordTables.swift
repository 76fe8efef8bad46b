package import GRDB
package import RecordModel
import Synchronization

/// The record tables of one shard database, and deterministic apply.
///
/// One value belongs to one open database file, and holds nothing but a cache of schemas that the tables also hold.
/// Apply runs inside the caller's transaction, which also records the applied index; reads (`RecordReads`,
/// `ChangeReads`) run on any connection, in a snapshot. Every decodable command has an outcome; only I/O errors and
/// corruption throw, and stop the replica.
package final class RecordTables: Sendable {
    /// Schemas by row, version and revision, whose content never changes.
    private let schemas = Mutex<[SchemaVersion: InstalledSchema]>([:])
    /// Schemas kept at once; beyond that each new one takes the place of another.
    private static let cachedSchemasMax = 256

    private struct SchemaVersion: Hashable {
        var schemaID: Int64
        var version: UInt64
        /// Grows with each change of the indexes' states.
        var revision: Int64
    }

    let watchers = WatcherCache()

    package init() {}

    /// Starts a run of commands inside the current write transaction; `finish` must be called before it ends.
    /// - Parameter level: the feature level in force for all of them.
    package func begin(
        in db: Database, level: FeatureLevel = FeatureLevel.supported.upperBound
    ) throws -> RecordTransaction {
        try RecordTransaction(tables: self, db: db, level: level)
    }

    /// Applies one command by itself inside the current write transaction.
    package func apply(_ command: RecordCommand, in db: Database) throws -> RecordOutcome {
        let transaction = try begin(in: db)
        let outcome = try transaction.apply(command)
        try transaction.finish()
        return outcome
    }

    /// The schema of a row that was read in the same snapshot.
    func installedSchema(_ row: SchemaRow, in db: Database) throws -> InstalledSchema {
        let key = SchemaVersion(schemaID: row.id, version: row.version, revision: row.revision)
        if let known = schemas.withLock({ $0[key] }) { return known }
        let loaded = try InstalledSchema.load(schemaID: row.id, in: db) ?? .none
        schemas.withLock { schemas in
            // Only the last one is asked for again.
            schemas = schemas.filter { known, _ in
                known.schemaID != row.id || (known.version, known.revision) > (row.version, row.revision)
            }
            if schemas.count >= Self.cachedSchemasMax { schemas.remove(at: schemas.startIndex) }
            schemas[key] = loaded
        }
        return loaded
    }
}

extension RecordTables {
    /// Gives every zone and database of a restored shard a new incarnation, so that tags, tokens and cursors of the
    /// lost future are recognised. What has an incarnation that is not below `value` keeps it. `value` must be above
    /// every incarnation that the lost future may have given.
    package static func startNewIncarnation(
        _ value: UInt64, level: FeatureLevel = FeatureLevel.supported.upperBound, in db: Database
    ) throws {
        // Leaves room above for zones that are recreated.
        let floor = Int64(min(value, 1 << 62))
        for sql in [
            "UPDATE record_state SET incarnation_floor = max(incarnation_floor, ?)",
            "UPDATE zone SET incarnation = ?1 WHERE state = 0 AND incarnation < ?1",
            "UPDATE database SET incarnation = ?1 WHERE incarnation < ?1",
        ] {
            try db.run(sql, floor)
        }
        guard level >= .notifications else { return }
        try Outbox(db: db, level: level).begin(incarnation: Int64(min(value, 1 << 62)))
    }

    /// The greatest incarnation of all zones and databases here, and of those that are to come.
    package static func newestIncarnation(in db: Database) throws -> UInt64 {
        // A backup of an earlier build lacks the table.
        let floors = try db.tableExists("schema_floor") ? "UNION ALL SELECT incarnation FROM schema_floor" : ""
        let newest = try db.first(
            """
            SELECT coalesce(max(incarnation), 0) FROM (
                SELECT incarnation_floor AS incarnation FROM record_state \(floors)
                UNION ALL SELECT incarnation FROM zone UNION ALL SELECT incarnation FROM database)
            """
        ) { $0.integer(0) }
        return UInt64(bitPattern: newest ?? 0)
    }

    /// Feeds all rows of all tables, as values in a fixed order, to a hash; replicas that applied the same commands
    /// feed the same bytes, whatever their pages look like.
    package static func stateHash(in db: Database, into hash: ([UInt8]) -> Void) throws {
        for table in allTables {
            hash(Array(table.name.utf8))
            try db.forEach("SELECT * FROM \(table.name) ORDER BY \(table.order)") { row in
                var bytes: [UInt8] = []
                for column in 0..<row.columnCount { row.appendValue(column, to: &bytes) }
                hash(bytes)
                return true
            }
        }
    }
}

extension SQLRow {
    /// A kind, a length for text and bytes, and the value.
    fileprivate func appendValue(_ column: Int32, to output: inout [UInt8]) {
        if isNull(column) {
            output.append(0)
        } else if isInteger(column) {
            output.append(1)
            withUnsafeBytes(of: integer(column).littleEndian) { output.append(contentsOf: $0) }
        } else {
            let value = bytes(column)
            output.append(2)
            withUnsafeBytes(of: UInt64(value.count).littleEndian) { output.append(contentsOf: $0) }
            output.append(contentsOf: value)
        }
    }
}
