import Foundation
package import GRDB
package import RaftCore
package import RecordModel
import Storage
import Wire

/// The one row of a group's database that says up to where the log is in it, written in the transaction of the changes.
///
/// It has checksums of its own: hashing finds what else is damaged, but by this row the log is cut and followers are
/// counted.
package enum AppliedRow {
    /// Makes the row, at position zero and the first feature level, and the table of state hashes. Runs in the
    /// transaction that makes the group's tables.
    /// - Parameter configuration: the members that the group begins with.
    package static func create(in db: Database, configuration: RaftCore.Configuration) throws {
        try db.execute(
            sql: """
                CREATE TABLE applied (
                    id INTEGER PRIMARY KEY CHECK (id = 1), log_index INTEGER NOT NULL, term INTEGER NOT NULL,
                    configuration BLOB NOT NULL, position_sum INTEGER NOT NULL DEFAULT 0,
                    configuration_sum INTEGER NOT NULL DEFAULT 0, feature_level INTEGER NOT NULL DEFAULT 0,
                    feature_level_sum INTEGER NOT NULL DEFAULT 0) STRICT;
                CREATE TABLE state_hash (log_index INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT;
                INSERT INTO applied (id, log_index, term, configuration) VALUES (1, 0, 0, x'');
                """)
        try setLevel(.first, in: db)
        try setPosition(.zero, in: db)
        try setConfiguration(configuration, in: db)
    }

    /// Whether the row is of the present format.
    package static func isCurrent(_ db: Database) throws -> Bool {
        try db.columns(in: "applied").contains { $0.name == "feature_level_sum" }
    }

    /// Brings the row of an earlier format to what `create` makes: it had no checksums at first, and then no feature
    /// level.
    package static func upgrade(_ db: Database) throws {
        if try !db.columns(in: "applied").contains(where: { $0.name == "position_sum" }) { try addSums(in: db) }
        guard try !isCurrent(db) else { return }
        try db.execute(
            sql: """
                ALTER TABLE applied ADD COLUMN feature_level INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE applied ADD COLUMN feature_level_sum INTEGER NOT NULL DEFAULT 0;
                """)
        try setLevel(.first, in: db)
    }

    private static func addSums(in db: Database) throws {
        try db.execute(
            sql: """
                ALTER TABLE applied ADD COLUMN position_sum INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE applied ADD COLUMN configuration_sum INTEGER NOT NULL DEFAULT 0;
                """)
        let row = try Row.fetchOne(db, sql: "SELECT log_index, term, configuration FROM applied")
        guard let row, let index = Int64.fromDatabaseValue(row[0]), let term = Int64.fromDatabaseValue(row[1]),
            let configuration = Data.fromDatabaseValue(row[2])
        else { throw damaged("is missing, or nothing that was ever written there") }
        try db.execute(
            sql: "UPDATE applied SET position_sum = ?, configuration_sum = ?",
            arguments: [sum([index, term]), sum([UInt8](configuration))])
    }

    /// Where the database stands.
    /// - Throws: `DatabaseError` that says what is damaged.
    package static func mark(of db: Database) throws -> SnapshotMark {
        let position = try position(of: db)
        let row = try Row.fetchOne(db, sql: "SELECT configuration, configuration_sum FROM applied")
        // A damaged page can hold anything in any column.
        guard let row, let data = Data.fromDatabaseValue(row[0]), Int64.fromDatabaseValue(row[1]) == sum([UInt8](data))
        else { throw damaged("has another checksum than its configuration") }
        return SnapshotMark(
            position: position, configuration: try RaftCore.Configuration(decoding: [UInt8](data)))
    }

    /// Up to where the log is in the database: what each transaction of apply begins with.
    /// - Throws: `DatabaseError` that says what is damaged.
    static func position(of db: Database) throws -> LogPosition {
        let statement = try db.cachedStatement(sql: "SELECT log_index, term, position_sum FROM applied")
        guard let row = try Row.fetchOne(statement) else { throw damaged("is missing") }
        // A damaged page can hold anything in any column.
        guard let index = Int64.fromDatabaseValue(row[0]), let term = Int64.fromDatabaseValue(row[1]),
            Int64.fromDatabaseValue(row[2]) == sum([index, term])
        else { throw damaged("has another checksum than its position") }
        return LogPosition(index: LogIndex(UInt64(bitPattern: index)), term: Term(UInt64(bitPattern: term)))
    }

    /// Moves the row to the last entry whose changes are in the open transaction.
    package static func setPosition(_ position: LogPosition, in db: Database) throws {
        let statement = try db.cachedStatement(sql: "UPDATE applied SET log_index = ?, term = ?, position_sum = ?")
        let (index, term) = (Int64(bitPattern: position.index.rawValue), Int64(bitPattern: position.term.rawValue))
        try statement.execute(arguments: [index, term, sum([index, term])])
    }

    /// The feature level at which the group's commands are applied.
    /// - Throws: `DatabaseError` that says what is damaged.
    package static func level(of db: Database) throws -> FeatureLevel {
        let statement = try db.cachedStatement(sql: "SELECT feature_level, feature_level_sum FROM applied")
        guard let row = try Row.fetchOne(statement) else { throw damaged("is missing") }
        guard let level = Int64.fromDatabaseValue(row[0]), Int64.fromDatabaseValue(row[1]) == sum([level]) else {
            throw damaged("has another checksum than its feature level")
        }
        return FeatureLevel(UInt64(bitPattern: level))
    }

    static func setLevel(_ level: FeatureLevel, in db: Database) throws {
        let number = Int64(bitPattern: level.rawValue)
        try db.execute(
            sql: "UPDATE applied SET feature_level = ?, feature_level_sum = ?", arguments: [number, sum([number])])
    }

    static func setConfiguration(_ configuration: RaftCore.Configuration, in db: Database) throws {
        let bytes = configuration.encoded()
        try db.execute(
            sql: "UPDATE applied SET configuration = ?, configuration_sum = ?", arguments: [Data(bytes), sum(bytes)])
    }

    private static func sum(_ numbers: [Int64]) -> Int64 {
        Int64(numbers.withUnsafeBytes { CRC32C.update(0, $0) })
    }

    private static func sum(_ bytes: [UInt8]) -> Int64 { Int64(CRC32C.of(bytes)) }

    private static func damaged(_ what: String) -> DatabaseError {
        DatabaseError(resultCode: .SQLITE_CORRUPT, message: "the row that says what was applied \(what)")
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
            let hash: Data = try row.decode(atIndex: 1)
            return (LogIndex(try row.decode(atIndex: 0)), [UInt8](hash))
        }
    }
}
