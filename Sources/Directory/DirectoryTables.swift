import Foundation
package import GRDB
import RecordModel
import Wire

/// The directory's state machine: rows in group 0's database, each with the value's binary form as its body. Apply is a pure
/// function of rows and command; only I/O errors are thrown.
package enum DirectoryTables {
    /// The names of the tables, for whoever hashes or copies them.
    package static let all = ["account", "container", "container_key", "map", "schema", "token"]

    package static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE map (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL) STRICT;
                CREATE TABLE container (name TEXT PRIMARY KEY, created INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE schema (
                    container TEXT NOT NULL, environment TEXT NOT NULL, version INTEGER NOT NULL,
                    generation INTEGER NOT NULL, body BLOB NOT NULL,
                    PRIMARY KEY (container, environment)) STRICT, WITHOUT ROWID;
                CREATE TABLE container_key (
                    container TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL,
                    PRIMARY KEY (container, number)) STRICT, WITHOUT ROWID;
                CREATE TABLE account (
                    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, email TEXT UNIQUE, body BLOB NOT NULL
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE token (
                    id TEXT PRIMARY KEY, account TEXT, secret_hash BLOB NOT NULL UNIQUE, body BLOB NOT NULL
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX token_account ON token (account);
                """)
    }

    /// Applies one command and says what changed for the snapshots in memory.
    package static func apply(
        _ command: DirectoryCommand, in db: Database
    ) throws -> (outcome: DirectoryOutcome, change: DirectoryChange?) {
        do throws(Refusal) {
            let (version, change) = try judged(command, in: db)
            return (.done(version: version), change)
        } catch {
            switch error {
            case .refused(let error): return (.refused(error), nil)
            case .failed(let error): throw error
            }
        }
    }

    /// Everything, as a start reads it.
    package static func snapshot(of db: Database) throws -> DirectorySnapshot {
        var snapshot = DirectorySnapshot()
        if let body = try Data.fetchOne(db, sql: "SELECT body FROM map") {
            snapshot.map = try ClusterMap(decoding: [UInt8](body))
        }
        for row in try Row.fetchAll(db, sql: "SELECT name, created FROM container") {
            snapshot.containers[row[0]] = row[1]
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, environment, version, generation, body FROM schema") {
            guard let environment = Environment(rawValue: row[1]) else { continue }
            let body: Data = row[4]
            snapshot.schemas[SchemaKey(container: row[0], environment: environment)] = VersionedSchema(
                version: UInt64(row[2] as Int64), schema: try Schema(decoding: [UInt8](body)),
                generation: UInt64(row[3] as Int64))
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, body FROM container_key ORDER BY container, number") {
            let body: Data = row[1]
            snapshot.take(.containerKey(container: row[0], try ContainerKey(decoding: [UInt8](body))))
        }
        for body in try Data.fetchAll(db, sql: "SELECT body FROM account") {
            snapshot.take(.account(try Account(decoding: [UInt8](body))))
        }
        for body in try Data.fetchAll(db, sql: "SELECT body FROM token") {
            snapshot.take(.token(try Token(decoding: [UInt8](body))))
        }
        return snapshot
    }

    /// Why a command changed nothing: a refusal that every replica gives alike, or this replica's failing disk.
    private enum Refusal: Error {
        case refused(ServiceError)
        case failed(any Error)
    }

    private static func judged(
        _ command: DirectoryCommand, in db: Database
    ) throws(Refusal) -> (version: UInt64, change: DirectoryChange?) {
        do {
            switch command {
            case .installMap(let map): return (0, try installMap(map, in: db))
            case .createContainer(let name, let time): return (0, try createContainer(name, time: time, in: db))
            case .setSchema(let key, let expectedVersion, let schema):
                return try setSchema(key, expectedVersion: expectedVersion, schema, in: db)
            case .resetDevelopment(let container, let expectedVersion):
                return try resetDevelopment(container, expectedVersion: expectedVersion, in: db)
            case .addContainerKey(let container, let key): return (0, try addContainerKey(key, to: container, in: db))
            case .updateAccount(let name, let changes): return (0, try updateAccount(name, changes, in: db))
            case .createAccount(let account): return (0, try createAccount(account, in: db))
            case .deleteAccount(let name): return (0, try deleteAccount(named: name, in: db))
            case .createToken(let token): return (0, try createToken(token, in: db))
            case .revokeToken(let id): return (0, try revokeToken(id, in: db))
            }
        } catch let error as ServiceError {
            throw .refused(error)
        } catch {
            throw .failed(error)
        }
    }
}
