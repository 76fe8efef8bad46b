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
            let body: Data = try row.decode(atIndex: 1)
            snapshot.take(try .limits(container: row.decode(atIndex: 0), LimitOverrides(decoding: [UInt8](body))))
        }
        let settings = try settings(in: db)
        snapshot.take(.limits(container: nil, settings.limits))
        snapshot.take(.signUp(isOpen: settings.isSignUpOpen))
        for deletion in settings.deletions { snapshot.take(.containerDeleted(deletion)) }
        if let secret = settings.secret { snapshot.take(.secret(secret)) }
        snapshot.take(.administrators(settings.administrators))
        for details in settings.containerDetails { snapshot.take(.containerDetails(details)) }
        for log in AuditLog.allCases { snapshot.take(.audit(log, try auditBounds(of: log, in: db))) }
        return snapshot
    }

    private static func readContainers(of db: Database, into snapshot: inout DirectorySnapshot) throws {
        if let body = try Data.fetchOne(db, sql: "SELECT body FROM map") {
            snapshot.take(.map(try ClusterMap(decoding: [UInt8](body))))
        }
        for row in try Row.fetchAll(db, sql: "SELECT name, created FROM container") {
            snapshot.take(
                try .container(
                    name: row.decode(atIndex: 0), created: row.decode(atIndex: 1),
                    VersionedSchema(version: 0, schema: Schema())))
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, environment, version, generation, body FROM schema") {
            let environment = try row.environment(at: 1)
            let body: Data = try row.decode(atIndex: 4)
            let schema = try VersionedSchema(
                version: row.decode(atIndex: 2), schema: Schema(decoding: [UInt8](body)),
                generation: row.decode(atIndex: 3))
            snapshot.take(.schema(SchemaKey(container: try row.decode(atIndex: 0), environment: environment), schema))
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, body FROM container_key ORDER BY container, number") {
            let body: Data = try row.decode(atIndex: 1)
            snapshot.take(try .containerKey(container: row.decode(atIndex: 0), ContainerKey(decoding: [UInt8](body))))
        }
    }

    private static func readAccess(of db: Database, into snapshot: inout DirectorySnapshot) throws {
        try read("token", "WHERE account IS NULL", of: db, into: &snapshot) { .token($0) }
        for (container, count) in try SessionTotals.userCounts(in: db) {
            snapshot.take(.userCount(container: container, by: count))
        }
        snapshot.take(try SessionTotals.firstExpiry(in: db))
        try read("server_key", of: db, into: &snapshot) { .serverKey($0) }
        try read("provider", of: db, into: &snapshot) { .provider($0) }
        try read("webhook", of: db, into: &snapshot) { .webhook($0) }
        for row in try Row.fetchAll(db, sql: "SELECT container, environment, role, account FROM role_member") {
            let environment = try row.environment(at: 1)
            let member = try RoleMember(
                container: row.decode(atIndex: 0), environment: environment, role: row.decode(atIndex: 2),
                accountID: row.decode(atIndex: 3))
            snapshot.take(.roleMember(member))
        }
    }

    private static func read<Value: WireDecodable>(
        _ table: String, _ condition: String = "", of db: Database, into snapshot: inout DirectorySnapshot,
        _ change: (Value) -> DirectoryChange
    ) throws {
        let bodies = try Data.fetchCursor(db, sql: "SELECT body FROM \(table) \(condition)")
        while let body = try bodies.next() { snapshot.take(change(try Value(decoding: [UInt8](body)))) }
    }
}

extension Row {
    /// A stored environment.
    func environment(at column: Int) throws -> Environment {
        guard let environment = Environment(rawValue: try decode(atIndex: column)) else {
            throw WireError.invalidValue(field: column + 1)
        }
        return environment
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
        return try database.read { try DirectoryTables.installedMap(in: $0) }
    }
}
