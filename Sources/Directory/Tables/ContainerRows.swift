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

    /// Why a container gets no more of something that it has as many of as it may.
    /// - Parameters:
    ///   - what: how many of what it has.
    ///   - user: who uses them.
    ///   - list: the command that shows them.
    static func isFull(_ name: String, _ what: String, of user: String, list: String) -> ServiceError {
        ServiceError(
            .badRequest,
            "container '\(name)' has \(what), and may have no more: revoke those that no \(user) uses, which `\(list)` "
                + "shows")
    }

    // MARK: The end

    func end(_ name: String, _ step: ContainerEnd, at level: FeatureLevel) throws -> [DirectoryChange] {
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
            let rights = level >= .endedRights ? settings.endRights(to: name) : []
            try row.write(settings)
            return try rights + removeRows(of: name)
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
