import Foundation
package import GRDB
import RecordModel
import Wire

extension DirectoryTables {
    /// Everything but accounts, lock-outs and sessions, as a start reads it. An index of the sessions is walked for how
    /// many users containers have.
    /// - Throws: `WireError` for a row that no command wrote: the database is damaged.
    package static func snapshot(of db: Database) throws -> DirectorySnapshot {
        var snapshot = DirectorySnapshot()
        try readContainers(of: db, into: &snapshot)
        try readAccess(of: db, into: &snapshot)
        for row in try Row.fetchAll(db, sql: "SELECT container, body FROM limits") {
            snapshot.take(try .limits(container: row.decode(atIndex: 0), row.message(at: 1)))
        }
        let settings = try SettingsRow(db: db).settings
        snapshot.take(.limits(container: nil, settings.limits))
        snapshot.take(.signUp(isOpen: settings.isSignUpOpen))
        for deletion in settings.deletions { snapshot.take(.containerDeleted(deletion)) }
        if let secret = settings.secret { snapshot.take(.secret(secret)) }
        snapshot.take(.administrators(settings.administrators))
        for details in settings.containerDetails { snapshot.take(.containerDetails(details)) }
        for log in AuditLog.allCases { snapshot.take(.audit(log, try AuditRows(of: log, in: db).bounds)) }
        return snapshot
    }

    private static func readContainers(of db: Database, into snapshot: inout DirectorySnapshot) throws {
        if let map = try MapRow(db: db).installed { snapshot.take(.map(map)) }
        for row in try Row.fetchAll(db, sql: "SELECT name, created FROM container") {
            snapshot.take(
                try .container(
                    name: row.decode(atIndex: 0), created: row.decode(atIndex: 1),
                    VersionedSchema(version: 0, schema: Schema())))
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, environment, version, generation, body FROM schema") {
            let environment = try row.environment(at: 1)
            let schema = try VersionedSchema(
                version: row.decode(atIndex: 2), schema: row.message(at: 4), generation: row.decode(atIndex: 3))
            snapshot.take(.schema(SchemaKey(container: try row.decode(atIndex: 0), environment: environment), schema))
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, body FROM container_key ORDER BY container, number") {
            snapshot.take(try .containerKey(container: row.decode(atIndex: 0), row.message(at: 1)))
        }
    }

    private static func readAccess(of db: Database, into snapshot: inout DirectorySnapshot) throws {
        try read("token", "WHERE account IS NULL", of: db, into: &snapshot) { .token($0) }
        let totals = SessionTotals(db: db)
        for (container, count) in try totals.userCounts {
            snapshot.take(.userCount(container: container, by: count))
        }
        snapshot.take(try totals.firstExpiry)
        try read("server_key", of: db, into: &snapshot) { .serverKey($0) }
        try read("provider", of: db, into: &snapshot) { .provider($0) }
        try read("webhook", of: db, into: &snapshot) { .webhook($0) }
        for member in try RoleRows(db: db).members() { snapshot.take(.roleMember(member)) }
    }

    private static func read<Value: WireDecodable>(
        _ table: String, _ condition: String = "", of db: Database, into snapshot: inout DirectorySnapshot,
        _ change: (Value) -> DirectoryChange
    ) throws {
        let bodies = try Data.fetchCursor(db, sql: "SELECT body FROM \(table) \(condition)")
        while let body = try bodies.next() { snapshot.take(change(try Value(decoding: [UInt8](body)))) }
    }
}

extension ClusterMap {
    /// The cluster's map as the database of a node that does not run has it; nil where it has none yet. Nothing is
    /// written.
    /// - Throws: where the file is no directory's database, or cannot be read.
    package static func ofStopped(_ path: String) throws -> ClusterMap? {
        var configuration = Configuration()
        configuration.readonly = true
        let database = try DatabaseQueue(path: path, configuration: configuration)
        return try database.read { try MapRow(db: $0).installed }
    }
}
