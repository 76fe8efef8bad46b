import Foundation
package import GRDB
package import RaftCore
import Wire

/// The one row of a group's database that says up to where the log is in it, written in the transaction of the changes.
package enum AppliedState {
    package static func create(in db: Database, configuration: RaftCore.Configuration) throws {
        try db.execute(
            sql: """
                CREATE TABLE applied (
                    id INTEGER PRIMARY KEY CHECK (id = 1), log_index INTEGER NOT NULL, term INTEGER NOT NULL,
                    configuration BLOB NOT NULL) STRICT;
                CREATE TABLE state_hash (log_index INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT;
                """)
        try db.execute(
            sql: "INSERT INTO applied VALUES (1, 0, 0, ?)", arguments: [Data(configuration.encoded())])
    }

    /// Where the database stands.
    package static func mark(of db: Database) throws -> SnapshotMark {
        guard let row = try Row.fetchOne(db, sql: "SELECT log_index, term, configuration FROM applied") else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the row that says what was applied is missing")
        }
        let configuration: Data = row[2]
        return SnapshotMark(
            position: LogPosition(
                index: LogIndex(UInt64(row[0] as Int64)), term: Term(UInt64(row[1] as Int64))),
            configuration: try RaftCore.Configuration(decoding: [UInt8](configuration)))
    }

    /// Up to where the log is in the database: what each transaction of apply begins with.
    static func position(of db: Database) throws -> LogPosition {
        let statement = try db.cachedStatement(sql: "SELECT log_index, term FROM applied")
        guard let row = try Row.fetchOne(statement) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the row that says what was applied is missing")
        }
        return LogPosition(index: LogIndex(UInt64(row[0] as Int64)), term: Term(UInt64(row[1] as Int64)))
    }

    static func setPosition(_ position: LogPosition, in db: Database) throws {
        let statement = try db.cachedStatement(sql: "UPDATE applied SET log_index = ?, term = ?")
        try statement.execute(arguments: [Int64(position.index.rawValue), Int64(position.term.rawValue)])
    }

    static func setConfiguration(_ configuration: RaftCore.Configuration, in db: Database) throws {
        try db.execute(
            sql: "UPDATE applied SET configuration = ?", arguments: [Data(configuration.encoded())])
    }

    /// Keeps the hash of the state at an index, the last 16 of them.
    static func record(hash: [UInt8], at index: LogIndex, in db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO state_hash VALUES (?, ?)", arguments: [Int64(index.rawValue), Data(hash)])
        try db.execute(
            sql: """
                DELETE FROM state_hash WHERE log_index NOT IN
                    (SELECT log_index FROM state_hash ORDER BY log_index DESC LIMIT 16)
                """)
    }

    /// The recorded hashes, newest first.
    static func hashes(in db: Database) throws -> [(index: LogIndex, hash: [UInt8])] {
        try Row.fetchAll(db, sql: "SELECT log_index, hash FROM state_hash ORDER BY log_index DESC").map { row in
            let hash: Data = row[1]
            return (LogIndex(UInt64(row[0] as Int64)), [UInt8](hash))
        }
    }
}
