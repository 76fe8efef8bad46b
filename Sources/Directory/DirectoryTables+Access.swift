import Foundation
import GRDB
import RecordModel
import Wire

// Roles, limits, providers and the cluster's settings: one function a command. Each throws `ServiceError` to refuse,
// before it writes anything, or the database's own error.
extension DirectoryTables {
    static func addRoleMember(_ member: RoleMember, in db: Database) throws -> [DirectoryChange] {
        try requireContainer(member.container, in: db)
        try requireAccount(member.accountID, in: db)
        if member.role.hasPrefix("_") {
            throw ServiceError(
                .badRequest,
                "the role '\(member.role)' is a system role: who has it follows from who asks, it has no members")
        }
        let body = try Data.fetchOne(
            db, sql: "SELECT body FROM schema WHERE container = ? AND environment = ?",
            arguments: [member.container, member.environment.rawValue])
        guard let body, try Schema(decoding: [UInt8](body)).roles.contains(where: { Bytewise($0) == member.$role })
        else {
            throw ServiceError(
                .notFound,
                "the schema of '\(member.container)' (\(member.environment.rawValue)) has no role '\(member.role)': add "
                    + "`CREATE ROLE \(member.role);` to the schema and import it")
        }
        try db.execute(
            sql: "INSERT OR IGNORE INTO role_member (container, environment, role, account) VALUES (?, ?, ?, ?)",
            arguments: arguments(member))
        return db.changesCount == 0 ? [] : [.roleMember(member)]
    }

    static func removeRoleMember(_ member: RoleMember, in db: Database) throws -> [DirectoryChange] {
        try requireContainer(member.container, in: db)
        try db.execute(
            sql: "DELETE FROM role_member WHERE container = ? AND environment = ? AND role = ? AND account = ?",
            arguments: arguments(member))
        guard db.changesCount > 0 else {
            throw ServiceError(
                .notFound,
                "the user has no role '\(member.role)' in '\(member.container)' (\(member.environment.rawValue)): "
                    + "`zonekeeper role list` shows who has which")
        }
        return [.roleMemberRemoved(member)]
    }

    static func removeRoles(of accountID: String, in db: Database) throws -> [DirectoryChange] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT container, environment, role FROM role_member WHERE account = ?
                ORDER BY container, environment, role
                """, arguments: [accountID])
        try db.execute(sql: "DELETE FROM role_member WHERE account = ?", arguments: [accountID])
        return try rows.map { row in
            guard let environment = Environment(rawValue: row[1]) else { throw WireError.invalidValue(field: 2) }
            return .roleMemberRemoved(
                RoleMember(container: row[0], environment: environment, role: row[2], accountID: accountID))
        }
    }

    private static func arguments(_ member: RoleMember) -> StatementArguments {
        [member.container, member.environment.rawValue, member.role, member.accountID]
    }

    static func setLimits(
        of container: String?, _ changes: [LimitChange], in db: Database
    ) throws -> [DirectoryChange] {
        for change in changes {
            guard let value = change.value, !change.limit.range.contains(value) else { continue }
            let range = change.limit.range
            throw ServiceError(
                .badRequest,
                "\(change.limit.rawValue): \(value) is outside \(range.lowerBound) to \(range.upperBound) "
                    + change.limit.unit.rawValue)
        }
        guard let container else {
            var settings = try settings(in: db)
            guard settings.limits.apply(changes) else { return [] }
            try write(settings, in: db)
            return [.limits(container: nil, settings.limits)]
        }
        try requireContainer(container, in: db)
        let body = try Data.fetchOne(db, sql: "SELECT body FROM limits WHERE container = ?", arguments: [container])
        var overrides = try body.map { try LimitOverrides(decoding: [UInt8]($0)) } ?? LimitOverrides()
        guard overrides.apply(changes) else { return [] }
        // A row that has no values left stays: its epoch never begins anew.
        try write(overrides, of: container, in: db)
        return [.limits(container: container, overrides)]
    }

    static func write(_ overrides: LimitOverrides, of container: String, in db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO limits (container, body) VALUES (?, ?)",
            arguments: [container, Data(overrides.encoded())])
    }

    static func setProvider(_ provider: IdentityProvider, in db: Database) throws -> [DirectoryChange] {
        guard !provider.name.isEmpty, !provider.issuer.isEmpty, !provider.clientID.isEmpty else {
            throw ServiceError(.badRequest, "an identity provider needs a name, an issuer and a client id")
        }
        let form = Data(provider.encoded())
        let old = try Data.fetchOne(db, sql: "SELECT body FROM provider WHERE name = ?", arguments: [provider.name])
        if old == form { return [] }
        try db.execute(
            sql: "INSERT OR REPLACE INTO provider (name, body) VALUES (?, ?)", arguments: [provider.name, form])
        return [.provider(provider)]
    }

    static func removeProvider(_ name: String, in db: Database) throws -> [DirectoryChange] {
        try db.execute(sql: "DELETE FROM provider WHERE name = ?", arguments: [name])
        guard db.changesCount > 0 else {
            throw ServiceError(
                .notFound, "no identity provider '\(name)': `zonekeeper provider list` shows those that exist")
        }
        return [.providerRemoved(name: name)]
    }

    static func setSignUp(isOpen: Bool, in db: Database) throws -> [DirectoryChange] {
        var settings = try settings(in: db)
        if settings.isSignUpOpen == isOpen { return [] }
        settings.isSignUpOpen = isOpen
        try write(settings, in: db)
        return [.signUp(isOpen: isOpen)]
    }

    static func makeSecret(key: [UInt8], time: Int64, in db: Database) throws -> [DirectoryChange] {
        var settings = try settings(in: db)
        if settings.secret != nil { return [] }
        // Without a container nothing was ever given in clear.
        let isNew = try Int.fetchOne(db, sql: "SELECT 1 FROM container LIMIT 1") == nil
        let secret = ClusterSecret(key: key, clearUntil: isNew ? 0 : time + ClusterSecret.clearMilliseconds)
        guard secret.isWhole else {
            throw ServiceError(.badRequest, "a secret of \(ClusterSecret.keyBytes) bytes is expected, not \(key.count)")
        }
        settings.secret = secret
        try write(settings, in: db)
        return [.secret(secret)]
    }

    static func settings(in db: Database) throws -> DirectorySettings {
        let body = try Data.fetchOne(db, sql: "SELECT body FROM settings")
        return try body.map { try DirectorySettings(decoding: [UInt8]($0)) } ?? DirectorySettings()
    }

    static func write(_ settings: DirectorySettings, in db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO settings (id, body) VALUES (1, ?)", arguments: [Data(settings.encoded())])
    }
}

/// What is set for the whole cluster.
struct DirectorySettings: Hashable, Sendable, WireMessage {
    var isSignUpOpen = false
    var limits = LimitOverrides()
    var secret: ClusterSecret?
    /// Containers that were deleted and are not purged yet, in the order in which they were deleted.
    var deletions: [ContainerDeletion] = []
    /// Sorted by name.
    var administrators: [Administrator] = []

    init() {}

    static var blank: Self { DirectorySettings() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &isSignUpOpen)
        try wire.field(2, &limits)
        try wire.field(3, &secret)
        try wire.field(4, &deletions)
        try wire.field(5, &administrators)
    }
}
