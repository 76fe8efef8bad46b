import Foundation
import GRDB
import RecordModel
import Wire

/// The row of one store: its counters, which are read once and written once a command.
struct StoreRow: Hashable {
    /// Nil until the store's first row was written.
    var id: Int64?
    var incarnation: UInt64
    /// Of the last change; 0 before the first.
    var sequence: UInt64 = 0
    /// Of the last tombstone that was removed: a token from before it may have missed a deletion.
    var floor: UInt64 = 0
    var usage = KeyValueUsage()
    var tombstones = 0
    /// The stamp of the last command.
    var modified: Int64 = .min

    /// The store's row, or the one it would begin with.
    static func find(_ key: StoreKey, in db: Database) throws -> StoreRow {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, incarnation, sequence, floor, keys, bytes, tombstones, modified FROM kv_store
                WHERE container = ? AND environment = ? AND user = ?
                """)
        let row = try Row.fetchOne(
            statement, arguments: [blob(key.container), key.environment.column, blob(key.user)])
        guard let row else { return StoreRow(id: nil, incarnation: try shardIncarnation(in: db)) }
        return StoreRow(
            id: row[0], incarnation: UInt64(bitPattern: row[1]), sequence: UInt64(bitPattern: row[2]),
            floor: UInt64(bitPattern: row[3]), usage: KeyValueUsage(keys: row[4], bytes: row[5]), tombstones: row[6],
            modified: row[7])
    }

    /// The incarnation that new stores are born with.
    static func shardIncarnation(in db: Database) throws -> UInt64 {
        let statement = try db.cachedStatement(sql: "SELECT incarnation FROM kv_shard WHERE id = 1")
        guard let value = try Int64.fetchOne(statement) else { throw KeyValueCorruption(message: "kv_shard is empty") }
        return UInt64(bitPattern: value)
    }

    /// Writes the row, giving it its id if it has none.
    mutating func save(_ key: StoreKey, in db: Database) throws -> Int64 {
        if let id {
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE kv_store SET sequence = ?, floor = ?, keys = ?, bytes = ?, tombstones = ?, modified = ?
                    WHERE id = ?
                    """)
            try statement.execute(
                arguments: [
                    Int64(bitPattern: sequence), Int64(bitPattern: floor), usage.keys, usage.bytes, tombstones,
                    modified,
                    id,
                ])
            return id
        }
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO kv_store
                    (container, environment, user, incarnation, sequence, floor, keys, bytes, tombstones, modified)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        try statement.execute(
            arguments: [
                blob(key.container), key.environment.column, blob(key.user), Int64(bitPattern: incarnation),
                Int64(bitPattern: sequence), Int64(bitPattern: floor), usage.keys, usage.bytes, tombstones, modified,
            ])
        id = db.lastInsertedRowID
        return db.lastInsertedRowID
    }
}

extension Environment {
    /// As the tables have it.
    var column: Int64 { self == .production ? 1 : 0 }
}

/// Text as a blob.
func blob(_ text: String) -> Data { Data(text.utf8) }

/// A blob as text.
func text(_ blob: Data) throws -> String {
    guard let text = String(validating: blob, as: UTF8.self) else {
        throw KeyValueCorruption(message: "a name or key is not UTF-8")
    }
    return text
}

/// A stored value.
func propertyValue(_ blob: Data) throws -> PropertyValue {
    do {
        return try PropertyValue(decoding: blob)
    } catch {
        throw KeyValueCorruption(message: "a stored value cannot be read: \(error)")
    }
}
