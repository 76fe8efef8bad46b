import Foundation
import GRDB
import RecordModel
import Wire

// One function a command. Each throws `ServiceError` to refuse, before it writes anything, or the database's own error.
extension DirectoryTables {
    static func installMap(_ map: ClusterMap, in db: Database) throws -> [DirectoryChange] {
        if let installed = try installedMap(in: db) {
            if installed == map { return [] }
            guard map.epoch > installed.epoch else {
                throw ServiceError(
                    .conflict, "the cluster's map has epoch \(installed.epoch), the offered one \(map.epoch)")
            }
        }
        return try write(map, in: db)
    }

    static func changeMap(_ change: MapChange, in db: Database) throws -> [DirectoryChange] {
        guard let installed = try installedMap(in: db) else {
            throw ServiceError(.tryAgainLater, "the cluster is being made; try again in a moment", retryAfterSeconds: 1)
        }
        let map = try installed.changed(by: change)
        if map == installed { return [] }
        try Invariant.check(
            !map.nodes.isEmpty && map.shards.count == installed.shards.count,
            "the map would have \(map.nodes.count) nodes, and \(map.shards.count) shards in place of \(installed.shards.count)"
        )
        return try write(map, in: db)
    }

    static func installedMap(in db: Database) throws -> ClusterMap? {
        try db.message("SELECT body FROM map")
    }

    private static func write(_ map: ClusterMap, in db: Database) throws -> [DirectoryChange] {
        try db.execute(sql: "INSERT OR REPLACE INTO map (id, body) VALUES (1, ?)", arguments: [Data(map.encoded())])
        return [.map(map)]
    }

    static func createContainer(_ name: String, time: Int64, in db: Database) throws -> [DirectoryChange] {
        try ContainerName.check(name)
        if try containerExists(name, in: db) {
            if let deletion = try settings(in: db).deletions.first(where: { $0.name == name }) {
                throw ServiceError(.exists, "the name is not free yet: \(deletion.refusal.reason)")
            }
            throw ServiceError(.exists, "container '\(name)' exists already")
        }
        try db.execute(sql: "INSERT INTO container (name, created) VALUES (?, ?)", arguments: [name, time])
        let schema = VersionedSchema(version: 1, schema: Schema.initial)
        for environment in Environment.allCases {
            try SchemaRows.write(schema, of: SchemaKey(container: name, environment: environment), in: db)
        }
        return [.container(name: name, created: time, schema)]
    }

    static func setSchema(
        _ key: SchemaKey, expectedVersion: UInt64, _ schema: Schema, at level: FeatureLevel, in db: Database
    ) throws -> (version: UInt64, change: DirectoryChange) {
        let (version, generation) = try SchemaRows.installed(key, in: db)
        guard version == expectedVersion else {
            throw SchemaRows.changedMeanwhile(key, version: version, expectedVersion)
        }
        if let problem = SchemaRules.problem(sizeOf: schema) {
            throw ServiceError(
                .badRequest, "the schema of '\(key.container)' (\(key.environment.rawValue)) is not changed: \(problem)"
            )
        }
        var new = VersionedSchema(version: version + 1, schema: schema, generation: generation)
        if level >= .datedFields {
            new.schema = schema.dated(new.version, after: try SchemaRows.body(of: key, in: db) ?? Schema())
        }
        if level >= .administration { try SchemaHistory.keepPresent(key, in: db) }
        try SchemaRows.write(new, of: key, in: db)
        return (new.version, .schema(key, new))
    }

    static func resetDevelopment(
        _ container: String, expectedVersion: UInt64, at level: FeatureLevel, in db: Database
    ) throws -> (version: UInt64, change: DirectoryChange) {
        let key = SchemaKey(container: container, environment: .development)
        let (version, generation) = try SchemaRows.installed(key, in: db)
        guard version == expectedVersion else {
            throw SchemaRows.changedMeanwhile(key, version: version, expectedVersion)
        }
        let production = try SchemaRows.body(of: SchemaKey(container: container, environment: .production), in: db)
        var new = VersionedSchema(
            version: version + 1, schema: production ?? Schema.initial, generation: generation + 1)
        // Production's versions are others.
        if level >= .datedFields { new.schema = new.schema.dated(new.version, after: Schema()) }
        if level >= .administration { try SchemaHistory.keepPresent(key, in: db) }
        try SchemaRows.write(new, of: key, in: db)
        return (new.version, .schema(key, new))
    }

    static func addContainerKey(
        _ key: ContainerKey, to container: String, in db: Database
    ) throws -> [DirectoryChange] {
        try requireContainer(container, in: db)
        let last = try Int64.fetchOne(
            db, sql: "SELECT MAX(number) FROM container_key WHERE container = ?", arguments: [container])
        guard key.number == UInt64(last ?? 0) + 1 else {
            throw ServiceError(
                .conflict,
                "the data keys of '\(container)' have changed meanwhile: the last one is number \(last ?? 0), the new one has "
                    + "number \(key.number); look at them and try again")
        }
        try db.execute(
            sql: "INSERT INTO container_key (container, number, body) VALUES (?, ?, ?)",
            arguments: [container, Int64(key.number), Data(key.encoded())])
        try db.checkOneRow("key \(key.number) of '\(container)'")
        return [.containerKey(container: container, key)]
    }

    static func containerExists(_ name: String, in db: Database) throws -> Bool {
        try Int.fetchOne(db, sql: "SELECT 1 FROM container WHERE name = ?", arguments: [name]) != nil
    }

    /// - Throws: `NOT_FOUND` where it is not there, or was deleted.
    static func requireContainer(_ name: String, in db: Database) throws {
        guard try containerExists(name, in: db) else { throw unknownContainer(name) }
        if let deletion = try settings(in: db).deletions.first(where: { $0.name == name }) { throw deletion.refusal }
    }

    static func unknownContainer(_ name: String) -> ServiceError {
        ServiceError(
            .notFound, "no container '\(name)': create it with `zonekeeper container create \(name)`",
            detail: .unknownContainer)
    }
}

/// The rows of the schemas, one for each environment of a container.
private enum SchemaRows {
    static func body(of key: SchemaKey, in db: Database) throws -> Schema? {
        try db.message(
            "SELECT body FROM schema WHERE container = ? AND environment = ?",
            [key.container, key.environment.rawValue])
    }

    /// The version and generation of a schema; 0 before the first.
    static func installed(
        _ key: SchemaKey, in db: Database
    ) throws -> (version: UInt64, generation: UInt64) {
        try DirectoryTables.requireContainer(key.container, in: db)
        return try stored(key, in: db)
    }

    private static func stored(
        _ key: SchemaKey, in db: Database
    ) throws -> (version: UInt64, generation: UInt64) {
        let row = try Row.fetchOne(
            db, sql: "SELECT version, generation FROM schema WHERE container = ? AND environment = ?",
            arguments: [key.container, key.environment.rawValue])
        guard let row else { return (0, 0) }
        return try (row.decode(atIndex: 0), row.decode(atIndex: 1))
    }

    static func changedMeanwhile(_ key: SchemaKey, version: UInt64, _ expected: UInt64) -> ServiceError {
        ServiceError(
            .conflict,
            "the schema of '\(key.container)' (\(key.environment.rawValue)) has changed meanwhile: it is at version "
                + "\(version), the change was made for version \(expected); look at it and try again")
    }

    static func write(_ schema: VersionedSchema, of key: SchemaKey, in db: Database) throws {
        let (version, generation) = try stored(key, in: db)
        try Invariant.check(
            schema.version > version && schema.generation >= generation,
            "the schema of '\(key.container)' would go from version \(version) of \(generation) to \(schema.version) of \(schema.generation)"
        )
        try db.execute(
            sql: """
                INSERT OR REPLACE INTO schema (container, environment, version, generation, body)
                VALUES (?, ?, ?, ?, ?)
                """,
            arguments: [
                key.container, key.environment.rawValue, Int64(schema.version), Int64(schema.generation),
                Data(schema.schema.encoded()),
            ])
    }
}

extension Database {
    /// The message in the only column of a constant query's first row; nil without rows.
    func message<Message: WireDecodable>(_ sql: String, _ arguments: StatementArguments = []) throws -> Message? {
        try Data.fetchOne(cachedStatement(sql: sql), arguments: arguments).map { try Message(decoding: [UInt8]($0)) }
    }

    /// The messages in the only column of a constant query's rows.
    func messages<Message: WireDecodable>(_ sql: String, _ arguments: StatementArguments = []) throws -> [Message] {
        try Data.fetchAll(cachedStatement(sql: sql), arguments: arguments).map { try Message(decoding: [UInt8]($0)) }
    }

    /// Makes sure that the statement before changed the row that it was for, and no other.
    func checkOneRow(_ what: @autoclosure () -> String) throws(InvariantViolation) {
        try Invariant.check(changesCount == 1, "\(what()): \(changesCount) rows changed")
    }
}
