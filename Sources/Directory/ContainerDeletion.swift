import Foundation
import GRDB
package import RecordModel
package import Wire

/// A container that was deleted. Its name is taken, and everything of it is kept, until it is purged.
package struct ContainerDeletion: Hashable, Sendable {
    package var name: String
    /// When the container was created, in milliseconds since 1970.
    package var created: Int64
    /// When it was deleted, likewise.
    package var deleted: Int64
    /// Whether its data are being removed; then nothing brings it back.
    package var isPurging = false

    /// How long a deleted container can be restored, in milliseconds.
    package static let graceMilliseconds: Int64 = 7 * 86_400_000

    /// From when on it is purged, in milliseconds since 1970.
    package var restorableUntil: Int64 { deleted + Self.graceMilliseconds }

    /// What a request of the container is told.
    package var refusal: ServiceError {
        let restore =
            isPurging
            ? "its data are being removed"
            : "until \(Self.date(restorableUntil)) an administrator can bring it back with `zonekeeper container restore \(name)`"
        return ServiceError(
            .notFound, "no container '\(name)' any more: it was deleted on \(Self.date(deleted)), and \(restore)",
            detail: .unknownContainer)
    }

    /// What is said to who wants to make a container of the name.
    package var claim: ServiceError {
        let date = Self.date(restorableUntil)
        let free =
            isPurging
            ? "when what it had is removed"
            : "after \(date), and until then `zonekeeper container restore \(name)` brings it back"
        return ServiceError(.exists, "'\(name)' was deleted on \(Self.date(deleted)); its name is free \(free)")
    }

    /// As reasons say a time.
    static func date(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds / 1_000)).formatted(.iso8601)
    }
}

extension ContainerDeletion: WireMessage {
    package static var blank: Self { ContainerDeletion(name: "", created: 0, deleted: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &name)
        try wire.field(2, &created)
        try wire.field(3, &deleted)
        try wire.field(4, &isPurging, unless: false)
    }
}

/// What becomes of a container that is not wanted any more, in this order.
package enum ContainerEnd: Hashable, Sendable {
    /// Every request of it is refused from now on.
    case delete(time: Int64)
    /// It is as it was before `delete`.
    case restore(time: Int64)
    /// Its time is over: nothing brings it back, and its shards remove its rows.
    case purge(time: Int64)
    /// Removes some of its tokens and server keys, by their ids.
    case revoke(ids: [String])
    /// The last step, once nothing is left of it on any shard: its name is free.
    case remove

    var auditName: String {
        switch self {
        case .delete: "delete"
        case .restore: "restore"
        case .purge: "purge"
        case .revoke: "revoke-tokens"
        case .remove: "remove"
        }
    }
}

extension ContainerEnd: WireCodable {
    /// One field: 1 delete, 2 restore, 3 purge, each with its time, 4 an id to revoke (repeated), 5 remove.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .delete(let time): writer.field(1, signed: time)
        case .restore(let time): writer.field(2, signed: time)
        case .purge(let time): writer.field(3, signed: time)
        case .revoke(let ids): for id in ids { writer.field(4, id) }
        case .remove: writer.field(5, true)
        }
    }

    package init(from reader: inout WireReader) throws(WireError) {
        var end: ContainerEnd?
        var ids: [String] = []
        while let field = try reader.nextField() {
            switch field {
            case 1: end = .delete(time: try reader.signed())
            case 2: end = .restore(time: try reader.signed())
            case 3: end = .purge(time: try reader.signed())
            case 4: ids.append(try reader.string())
            case 5: end = try reader.bool() ? .remove : nil
            default: try reader.skip()
            }
        }
        self = end ?? .revoke(ids: ids)
    }
}

extension DirectoryTables {
    static func end(
        _ name: String, _ step: ContainerEnd, in db: Database
    ) throws -> [DirectoryChange] {
        var settings = try settings(in: db)
        let known = settings.deletions.firstIndex { $0.name == name }
        if case .delete(let time) = step { return try delete(name, time: time, &settings, in: db) }
        guard let known else {
            throw ServiceError(
                .notFound, "container '\(name)' is not deleted: `zonekeeper container list` shows those that are")
        }
        var deletion = settings.deletions[known]
        switch step {
        case .delete: preconditionFailure("done above")
        case .restore(let time):
            guard !deletion.isPurging, time < deletion.restorableUntil else {
                throw ServiceError(
                    .conflict,
                    "container '\(name)' cannot be restored any more: its time was over on "
                        + "\(ContainerDeletion.date(deletion.restorableUntil))")
            }
            settings.deletions.remove(at: known)
            try write(settings, in: db)
            return [.containerRestored(name: name)]
        case .purge(let time):
            guard time >= deletion.restorableUntil else { throw deletion.refusal }
            if deletion.isPurging { return [] }
            deletion.isPurging = true
            settings.deletions[known] = deletion
            try write(settings, in: db)
            return [.containerDeleted(deletion)]
        case .revoke(let ids):
            guard deletion.isPurging else { throw deletion.refusal }
            return try revoke(ids, of: name, in: db)
        case .remove:
            guard deletion.isPurging else { throw deletion.refusal }
            settings.deletions.remove(at: known)
            try write(settings, in: db)
            return try removeRows(of: name, in: db)
        }
    }

    private static func delete(
        _ name: String, time: Int64, _ settings: inout DirectorySettings, in db: Database
    ) throws -> [DirectoryChange] {
        try requireContainer(name, in: db)
        let created = try Int64.fetchOne(db, sql: "SELECT created FROM container WHERE name = ?", arguments: [name])
        let deletion = ContainerDeletion(name: name, created: created ?? 0, deleted: time)
        settings.deletions.append(deletion)
        try write(settings, in: db)
        return [.containerDeleted(deletion)]
    }

    /// Those that belong to another container, or are gone already, are passed over.
    private static func revoke(_ ids: [String], of container: String, in db: Database) throws -> [DirectoryChange] {
        var changes: [DirectoryChange] = []
        for id in ids {
            if let body = try Data.fetchOne(db, sql: "SELECT body FROM token WHERE id = ?", arguments: [id]),
                try Token(decoding: [UInt8](body)).belongs(to: container)
            {
                changes += try revokeToken(id, in: db)
            }
            if let body = try Data.fetchOne(db, sql: "SELECT body FROM server_key WHERE id = ?", arguments: [id]),
                try ServerKey(decoding: [UInt8](body)).container == container
            {
                changes += try revokeServerKey(id, in: db)
            }
        }
        return changes
    }

    private static func removeRows(of name: String, in db: Database) throws -> [DirectoryChange] {
        var changes = try WebhookRows.removeAll(of: name, in: db)
        for row in try Row.fetchAll(
            db,
            sql: """
                SELECT environment, role, account FROM role_member WHERE container = ?
                ORDER BY environment, role, account
                """, arguments: [name])
        {
            let environment = try row.environment(at: 0)
            changes.append(
                .roleMemberRemoved(
                    try RoleMember(
                        container: name, environment: environment, role: row.decode(atIndex: 1),
                        accountID: row.decode(atIndex: 2))))
        }
        try AdministrationRows.removeDetails(of: name, in: db)
        for table in ["role_member", "schema", "schema_history", "container_key"] {
            try db.execute(sql: "DELETE FROM \(table) WHERE container = ?", arguments: [name])
        }
        try db.execute(sql: "DELETE FROM container WHERE name = ?", arguments: [name])
        try db.checkOneRow("the removal of container '\(name)'")
        // Its epoch never starts over.
        if let body = try Data.fetchOne(db, sql: "SELECT body FROM limits WHERE container = ?", arguments: [name]) {
            var overrides = try LimitOverrides(decoding: [UInt8](body))
            if overrides.apply(overrides.values.keys.map { LimitChange($0, nil) }) {
                try write(overrides, of: name, in: db)
                changes.append(.limits(container: name, overrides))
            }
        }
        return changes + [.containerRemoved(name: name)]
    }
}

extension Token {
    /// Whether it goes with a container.
    package func belongs(to container: String) -> Bool {
        if case .administrator = kind { false } else { kind.container == container }
    }
}
