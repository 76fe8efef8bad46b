import Foundation
import GRDB
package import RecordModel
import Wire

/// Whose schema.
package struct SchemaKey: Hashable, Sendable {
    /// The container's name, compared by its bytes.
    @Bytewise package var container: String
    /// The environment: development and production have schemas and versions of their own.
    package var environment: Environment

    package init(container: String, environment: Environment) {
        self.container = container
        self.environment = environment
    }

    /// Whose schema a database's records follow.
    package init(of database: DatabaseKey) {
        self.init(container: database.container, environment: database.environment)
    }
}

/// A schema and its version, which grows by one with every change.
package struct VersionedSchema: Hashable, Sendable {
    /// From 1; 0 where the directory has no schema for the key.
    package var version: UInt64
    /// All roles and record types of this version.
    package var schema: Schema
    /// How often the environment was reset, which only development can be: a shard that learns of a greater one empties
    /// the environment's databases.
    package var generation: UInt64

    package init(version: UInt64, schema: Schema, generation: UInt64 = 0) {
        self.version = version
        self.schema = schema
        self.generation = generation
    }
}

/// One version of a schema, as it was.
package struct SchemaRevision: Hashable, Sendable {
    /// Why a version came.
    package enum Cause: String, Hashable, Sendable, CaseIterable {
        /// An administrator changed it; in production that is a deploy or an import.
        case change
        /// Development was made what production is.
        case reset
        /// A save added to it. Of such versions in a row, the last one is kept.
        case growth
        /// It was there before histories were kept, or with the container.
        case earlier
    }

    /// From 1, one more with every change.
    package var version: UInt64
    /// Milliseconds since 1970; 0 where that is not known.
    package var time: Int64
    /// As the audit log names them; empty where that is not known.
    package var actor: String
    /// Why it came.
    package var cause: Cause
    /// The schema itself.
    package var schema: Schema
}

/// The earlier versions of schemas.
enum SchemaHistory {
    /// Versions of an environment that are kept, and bytes of them.
    static let versionsMax = 100
    static let bytesMax = 4_000_000

    /// Empty below `FeatureLevel.administration`.
    static let table = """
        CREATE TABLE IF NOT EXISTS schema_history (
            container TEXT NOT NULL, environment TEXT NOT NULL, version INTEGER NOT NULL, time INTEGER NOT NULL,
            actor TEXT NOT NULL, cause TEXT NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (container, environment, version)) STRICT, WITHOUT ROWID;
        """

    /// Keeps the version that is about to be replaced, where it is not kept yet.
    static func keepPresent(_ key: SchemaKey, in db: Database) throws {
        try db.run(
            """
            INSERT OR IGNORE INTO schema_history (container, environment, version, time, actor, cause, body)
            SELECT container, environment, version, 0, '', 'earlier', body FROM schema
            WHERE container = ? AND environment = ?
            """, [key.container, key.environment.rawValue])
    }

    /// Keeps the versions of schemas that a command made.
    static func keep(
        _ changes: [DirectoryChange], of command: DirectoryCommand, by origin: AuditOrigin?, in db: Database
    ) throws {
        for case .schema(let key, let schema) in changes {
            let cause: SchemaRevision.Cause =
                switch command {
                case .setSchema(_, _, _, let growth): growth == nil ? .change : .growth
                default: .reset
                }
            try add(schema, of: key, by: origin, cause, in: db)
        }
    }

    /// Keeps a version that has just come, and lets go of the oldest.
    private static func add(
        _ schema: VersionedSchema, of key: SchemaKey, by origin: AuditOrigin?, _ cause: SchemaRevision.Cause,
        in db: Database
    ) throws {
        let place: StatementArguments = [key.container, key.environment.rawValue]
        if cause == .growth {
            try db.run(
                "DELETE FROM schema_history WHERE container = ? AND environment = ? AND cause = 'growth' AND version = ?",
                place + [Int64(schema.version) - 1])
        }
        try db.run(
            """
            INSERT OR REPLACE INTO schema_history (container, environment, version, time, actor, cause, body)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            place + [
                Int64(schema.version), origin?.time ?? 0, origin?.actor ?? "", cause.rawValue, schema.schema.body,
            ])
        // The newest stays, however large it is.
        try db.run(
            """
            DELETE FROM schema_history WHERE container = ?1 AND environment = ?2 AND version < ?3 AND version IN (
                SELECT version FROM (
                    SELECT version, ROW_NUMBER() OVER newest AS place, SUM(LENGTH(body)) OVER newest AS bytes
                    FROM schema_history WHERE container = ?1 AND environment = ?2
                    WINDOW newest AS (ORDER BY version DESC))
                WHERE place > ?4 OR bytes > ?5)
            """, place + [Int64(schema.version), versionsMax, bytesMax])
    }
}

extension AccountReader {
    /// The versions of a schema that are kept, the newest first.
    /// - Parameter before: only versions below this one; nil: all.
    package func schemaHistory(
        of key: SchemaKey, before: UInt64? = nil, limit: Int
    ) throws -> [SchemaRevision] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT version, time, actor, cause, body FROM schema_history
                WHERE container = ? AND environment = ? AND version < ? ORDER BY version DESC LIMIT ?
                """,
            arguments: [
                key.container, key.environment.rawValue, Int64(clamping: before ?? UInt64(Int64.max)), limit,
            ])
        return try rows.map { row in
            guard let cause = try SchemaRevision.Cause(rawValue: row.decode(atIndex: 3)) else {
                throw WireError.invalidValue(field: 4)
            }
            return try SchemaRevision(
                version: row.decode(atIndex: 0), time: row.decode(atIndex: 1), actor: row.decode(atIndex: 2),
                cause: cause, schema: row.message(at: 4))
        }
    }
}

/// The row of one environment's schema.
struct SchemaRow {
    let key: SchemaKey
    let db: Database

    var body: Schema? {
        get throws {
            try db.message(
                "SELECT body FROM schema WHERE container = ? AND environment = ?",
                [key.container, key.environment.rawValue])
        }
    }

    func set(
        _ schema: Schema, expectedVersion: UInt64, at level: FeatureLevel
    ) throws -> (version: UInt64, changes: [DirectoryChange]) {
        let present = try present(atVersion: expectedVersion)
        if let problem = SchemaRules.problem(sizeOf: schema) {
            throw ServiceError(
                .badRequest, "the schema of '\(key.container)' (\(key.environment.rawValue)) is not changed: \(problem)"
            )
        }
        let new = VersionedSchema(version: present.version + 1, schema: schema, generation: present.generation)
        return try replace(by: new, after: body ?? Schema(), at: level)
    }

    /// Makes development what production is.
    static func reset(
        _ container: String, expectedVersion: UInt64, at level: FeatureLevel, in db: Database
    ) throws -> (version: UInt64, changes: [DirectoryChange]) {
        let development = SchemaRow(key: SchemaKey(container: container, environment: .development), db: db)
        let production = SchemaRow(key: SchemaKey(container: container, environment: .production), db: db)
        let present = try development.present(atVersion: expectedVersion)
        let new = try VersionedSchema(
            version: present.version + 1, schema: production.body ?? Schema.initial, generation: present.generation + 1)
        // Production's versions are others.
        return try development.replace(by: new, after: Schema(), at: level)
    }

    /// - Parameter old: what types and fields may have been there before.
    private func replace(
        by new: VersionedSchema, after old: Schema, at level: FeatureLevel
    ) throws -> (version: UInt64, changes: [DirectoryChange]) {
        var new = new
        if level >= .datedFields { new.schema = new.schema.dated(new.version, after: old) }
        if level >= .administration { try SchemaHistory.keepPresent(key, in: db) }
        try write(new)
        return (new.version, [.schema(key, new)])
    }

    /// - Throws: `CONFLICT` where the schema is at another version.
    private func present(atVersion expected: UInt64) throws -> (version: UInt64, generation: UInt64) {
        try ContainerRows(db: db).require(key.container)
        let present = try stored
        guard present.version == expected else {
            throw ServiceError(
                .conflict,
                "the schema of '\(key.container)' (\(key.environment.rawValue)) has changed meanwhile: it is at version "
                    + "\(present.version), the change was made for version \(expected); look at it and try again")
        }
        return present
    }

    /// The version and generation; 0 before the first.
    private var stored: (version: UInt64, generation: UInt64) {
        get throws {
            let row = try Row.fetchOne(
                db, sql: "SELECT version, generation FROM schema WHERE container = ? AND environment = ?",
                arguments: [key.container, key.environment.rawValue])
            guard let row else { return (0, 0) }
            return try (row.decode(atIndex: 0), row.decode(atIndex: 1))
        }
    }

    func write(_ schema: VersionedSchema) throws {
        let (version, generation) = try stored
        try Invariant.check(
            schema.version > version && schema.generation >= generation,
            "the schema of '\(key.container)' would go from version \(version) of \(generation) to \(schema.version) of \(schema.generation)"
        )
        try db.run(
            """
            INSERT OR REPLACE INTO schema (container, environment, version, generation, body)
            VALUES (?, ?, ?, ?, ?)
            """,
            [
                key.container, key.environment.rawValue, Int64(schema.version), Int64(schema.generation),
                schema.schema.body,
            ])
    }
}
