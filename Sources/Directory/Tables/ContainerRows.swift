import Foundation
import GRDB
import RecordModel
import Wire

/// The rows of containers and of their data keys.
struct ContainerRows {
    let db: Database

    func create(_ name: String, time: Int64) throws -> [DirectoryChange] {
        try ContainerName.check(name)
        if try exists(name) {
            if let deletion = try deletion(of: name) {
                throw ServiceError(.exists, "the name is not free yet: \(deletion.refusal.reason)")
            }
            throw ServiceError(.exists, "container '\(name)' exists already")
        }
        try db.run("INSERT INTO container (name, created) VALUES (?, ?)", [name, time])
        let schema = VersionedSchema(version: 1, schema: Schema.initial)
        for environment in Environment.allCases {
            try SchemaRow(key: SchemaKey(container: name, environment: environment), db: db).write(schema)
        }
        return [.container(name: name, created: time, schema)]
    }

    func describe(_ details: ContainerDetails) throws -> [DirectoryChange] {
        guard details.note.count <= ContainerDetails.noteLengthMax else {
            throw ServiceError(
                .badRequest, "note: at most \(ContainerDetails.noteLengthMax) characters are expected")
        }
        try require(details.name)
        return try SettingsRow(db: db).change { settings in
            let old = settings.containerDetails
            settings.containerDetails.removeAll { $0.name == details.name }
            if !details.isEmpty { settings.containerDetails.append(details) }
            settings.containerDetails.sort { $0.name.precedes($1.name) }
            return settings.containerDetails == old ? [] : [.containerDetails(details)]
        }
    }

    func add(_ key: ContainerKey, to container: String) throws -> [DirectoryChange] {
        try require(container)
        let last = try Int64.fetchOne(
            db, sql: "SELECT MAX(number) FROM container_key WHERE container = ?", arguments: [container])
        guard key.number == UInt64(last ?? 0) + 1 else {
            throw ServiceError(
                .conflict,
                "the data keys of '\(container)' have changed meanwhile: the last one is number \(last ?? 0), the new one has "
                    + "number \(key.number); look at them and try again")
        }
        try db.run(
            "INSERT INTO container_key (container, number, body) VALUES (?, ?, ?)",
            [container, Int64(key.number), key.body])
        try db.checkOneRow("key \(key.number) of '\(container)'")
        return [.containerKey(container: container, key)]
    }

    private func exists(_ name: String) throws -> Bool {
        try db.has("SELECT 1 FROM container WHERE name = ?", [name])
    }

    private func deletion(of name: String) throws -> ContainerDeletion? {
        try SettingsRow(db: db).settings.deletions.first { $0.name == name }
    }

    /// - Throws: `NOT_FOUND` where it is not there, or was deleted.
    func require(_ name: String) throws {
        guard try exists(name) else {
            throw ServiceError(
                .notFound, "no container '\(name)': create it with `zonekeeper container create \(name)`",
                detail: .unknownContainer)
        }
        if let deletion = try deletion(of: name) { throw deletion.refusal }
    }

    // MARK: The end

    func end(_ name: String, _ step: ContainerEnd) throws -> [DirectoryChange] {
        if case .delete(let time) = step { return try delete(name, time: time) }
        let row = SettingsRow(db: db)
        var settings = try row.settings
        guard let place = settings.deletions.firstIndex(where: { $0.name == name }) else {
            throw ServiceError(
                .notFound, "container '\(name)' is not deleted: `zonekeeper container list` shows those that are")
        }
        let deletion = settings.deletions[place]
        switch step {
        case .delete: preconditionFailure("done above")
        case .restore(let time):
            guard !deletion.isPurging, time < deletion.restorableUntil else {
                throw ServiceError(
                    .conflict,
                    "container '\(name)' cannot be restored any more: its time was over on "
                        + "\(ContainerDeletion.date(deletion.restorableUntil))")
            }
            settings.deletions.remove(at: place)
            try row.write(settings)
            return [.containerRestored(name: name)]
        case .purge(let time):
            guard time >= deletion.restorableUntil else { throw deletion.refusal }
            if deletion.isPurging { return [] }
            settings.deletions[place].isPurging = true
            try row.write(settings)
            return [.containerDeleted(settings.deletions[place])]
        case .revoke(let ids):
            guard deletion.isPurging else { throw deletion.refusal }
            return try revoke(ids, of: name)
        case .remove:
            guard deletion.isPurging else { throw deletion.refusal }
            settings.deletions.remove(at: place)
            settings.containerDetails.removeAll { $0.name == name }
            try row.write(settings)
            return try removeRows(of: name)
        }
    }

    private func delete(_ name: String, time: Int64) throws -> [DirectoryChange] {
        try require(name)
        let created = try Int64.fetchOne(db, sql: "SELECT created FROM container WHERE name = ?", arguments: [name])
        let deletion = ContainerDeletion(name: name, created: created ?? 0, deleted: time)
        return try SettingsRow(db: db).change { settings in
            settings.deletions.append(deletion)
            return [.containerDeleted(deletion)]
        }
    }

    /// Those that belong to another container, or are gone already, are passed over.
    private func revoke(_ ids: [String], of container: String) throws -> [DirectoryChange] {
        let (tokens, keys) = (TokenRows(db: db), ServerKeyRows(db: db))
        var changes: [DirectoryChange] = []
        for id in ids {
            if let token = try tokens.token(id), token.belongs(to: container) { changes += try tokens.revoke(id) }
            if let key = try keys.key(id), key.container == container { changes += try keys.revoke(id) }
        }
        return changes
    }

    private func removeRows(of name: String) throws -> [DirectoryChange] {
        var changes = try WebhookRows(db: db).removeAll(of: name) + RoleRows(db: db).removeAll(ofContainer: name)
        for table in ["schema", "schema_history", "container_key"] {
            try db.run("DELETE FROM \(table) WHERE container = ?", [name])
        }
        try db.run("DELETE FROM container WHERE name = ?", [name])
        try db.checkOneRow("the removal of container '\(name)'")
        changes += try LimitRows(db: db).clear(name)
        return changes + [.containerRemoved(name: name)]
    }
}

extension Token {
    /// Whether it goes with a container.
    fileprivate func belongs(to container: String) -> Bool {
        if case .administrator = kind { false } else { kind.container == container }
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
        let generation = try generation(atVersion: expectedVersion)
        if let problem = SchemaRules.problem(sizeOf: schema) {
            throw ServiceError(
                .badRequest, "the schema of '\(key.container)' (\(key.environment.rawValue)) is not changed: \(problem)"
            )
        }
        let new = VersionedSchema(version: expectedVersion + 1, schema: schema, generation: generation)
        return try replace(by: new, after: body ?? Schema(), at: level)
    }

    /// Makes development what production is.
    static func reset(
        _ container: String, expectedVersion: UInt64, at level: FeatureLevel, in db: Database
    ) throws -> (version: UInt64, changes: [DirectoryChange]) {
        let development = SchemaRow(key: SchemaKey(container: container, environment: .development), db: db)
        let production = SchemaRow(key: SchemaKey(container: container, environment: .production), db: db)
        let generation = try development.generation(atVersion: expectedVersion)
        let new = try VersionedSchema(
            version: expectedVersion + 1, schema: production.body ?? Schema.initial, generation: generation + 1)
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
    private func generation(atVersion expected: UInt64) throws -> UInt64 {
        try ContainerRows(db: db).require(key.container)
        let (version, generation) = try stored
        guard version == expected else {
            throw ServiceError(
                .conflict,
                "the schema of '\(key.container)' (\(key.environment.rawValue)) has changed meanwhile: it is at version "
                    + "\(version), the change was made for version \(expected); look at it and try again")
        }
        return generation
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
