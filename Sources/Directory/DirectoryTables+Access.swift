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
        let schema: Schema? = try db.message(
            "SELECT body FROM schema WHERE container = ? AND environment = ?",
            [member.container, member.environment.rawValue])
        guard let schema, schema.roles.contains(where: { Bytewise($0) == member.$role })
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
            let environment = try row.environment(at: 1)
            return .roleMemberRemoved(
                try RoleMember(
                    container: row.decode(atIndex: 0), environment: environment, role: row.decode(atIndex: 2),
                    accountID: accountID))
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
        var overrides = try db.message("SELECT body FROM limits WHERE container = ?", [container]) ?? LimitOverrides()
        guard overrides.apply(changes) else { return [] }
        // A row without values stays, so that its epoch does not restart.
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
        try db.message("SELECT body FROM settings") ?? DirectorySettings()
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
    /// Sorted by name; none is empty.
    var containerDetails: [ContainerDetails] = []

    init() {}

    static var blank: Self { DirectorySettings() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &isSignUpOpen)
        try wire.field(2, &limits)
        try wire.field(3, &secret)
        try wire.field(4, &deletions)
        try wire.field(5, &administrators)
        try wire.field(6, &containerDetails)
    }
}

// Tokens and server keys: one function a command. Each throws `ServiceError` to refuse, before it writes anything, or
// the database's own error.
extension DirectoryTables {
    static func createToken(_ token: Token, in db: Database) throws -> [DirectoryChange] {
        switch token.kind {
        case .administrator(let name):
            if let own = try administratorToken(name, in: db) {
                if own == token { return [] }
                throw ServiceError(
                    .exists,
                    "there is an administrator '\(AuditText.id(name))' already: see `zonekeeper administrator list`")
            }
            try requireRoom(in: db)
        case .console, .consoleLink, .acting:
            throw ServiceError(.badRequest, "this kind of token is not made, but begun")
        case .api, .session, .signIn: try requireContainer(token.kind.container, in: db)
        }
        if let accountID = token.kind.accountID { try requireAccount(accountID, in: db) }
        if case .signIn = token.kind, token.secretHash != Token.hash(ofSession: token.id) {
            throw ServiceError(.badRequest, "a session begun by sign-in has no secret, this one has")
        }
        return try insert(token, in: db)
    }

    /// Writes a token that may be; one that is there already changes nothing.
    static func insert(_ token: Token, in db: Database) throws -> [DirectoryChange] {
        let known: Token? = try db.message(
            "SELECT body FROM token WHERE id = ? OR secret_hash = ?", [token.id, Data(token.secretHash)])
        if let known {
            if known == token { return [] }
            throw ServiceError(.exists, "a token with this id or secret exists already")
        }
        let isSession = token.kind.accountID != nil
        let users = try SessionTotals.changes(byAdding: token, in: db)
        var signIn: String?
        if case .signIn(let container, _, _) = token.kind { signIn = container }
        try db.execute(
            sql: """
                INSERT INTO token (id, account, sign_in, created, secret_hash, expires, body)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                token.id, token.kind.accountID, signIn, token.created, Data(token.secretHash), token.kind.expires,
                Data(token.encoded()),
            ])
        let expiry = token.kind.expires == nil ? [] : [try SessionTotals.firstExpiry(in: db)]
        return (isSession ? users : [.token(token)]) + expiry
    }

    /// The token of an administrator.
    static func administratorToken(_ name: String, in db: Database) throws -> Token? {
        try administratorTokens(in: db).first { $0.kind == .administrator(name: name) }
    }

    private static func administratorTokens(in db: Database) throws -> [Token] {
        let tokens: [Token] = try db.messages(
            "SELECT body FROM token WHERE account IS NULL AND expires IS NULL ORDER BY id")
        return tokens.filter { if case .administrator = $0.kind { true } else { false } }
    }

    /// - Throws: `BAD_REQUEST` where the cluster has as many administrators as it may.
    private static func requireRoom(in db: Database) throws {
        let count = try administratorTokens(in: db).count
        guard count < Token.administratorsMax else {
            throw ServiceError(.badRequest, "the cluster has \(count) administrators, and may have no more")
        }
    }

    static func revokeToken(_ id: String, in db: Database) throws -> [DirectoryChange] {
        guard let token: Token = try db.message("SELECT body FROM token WHERE id = ?", [id]) else {
            throw AdministrationRows.unknownToken(id)
        }
        try Invariant.check(token.id == id, "token \(id) is stored as \(token.id)")
        try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
        try db.checkOneRow("the end of token \(id)")
        var changes = try SessionTotals.changes(byRemoving: [token], in: db)
        if case .console(let name, _) = token.kind { changes += try AdministrationRows.endActing(of: name, in: id, db) }
        guard case .administrator(let name) = token.kind,
            try !settings(in: db).administrators.contains(where: { $0.name == name })
        else { return changes }
        // Nothing is left by which somebody of this name could have a role.
        return try changes + ConsoleTokens.end(of: name, in: db)
    }

    static func endSessions(of accountID: String, in db: Database) throws -> [DirectoryChange] {
        let tokens: [Token] = try db.messages("SELECT body FROM token WHERE account = ? ORDER BY id", [accountID])
        try db.execute(sql: "DELETE FROM token WHERE account = ?", arguments: [accountID])
        try Invariant.check(
            db.changesCount == tokens.count,
            "account \(accountID) has \(tokens.count) sessions, and \(db.changesCount) were ended")
        return try SessionTotals.changes(byRemoving: tokens, in: db)
    }

    static func createServerKey(_ key: ServerKey, in db: Database) throws -> [DirectoryChange] {
        try requireContainer(key.container, in: db)
        try requireAccount(key.accountID, in: db)
        guard key.publicKey.count == ServerKey.publicKeyBytes, key.publicKey.first == 4 else {
            throw ServiceError(
                .badRequest,
                "the public key is not an uncompressed point of 65 bytes: make the key with `openssl ecparam -name prime256v1`"
            )
        }
        if let known: ServerKey = try db.message("SELECT body FROM server_key WHERE id = ?", [key.id]) {
            if known == key { return [] }
            throw ServiceError(.exists, "a server key with this id exists already")
        }
        try db.execute(
            sql: "INSERT INTO server_key (id, account, body) VALUES (?, ?, ?)",
            arguments: [key.id, key.accountID, Data(key.encoded())])
        return [.serverKey(key)]
    }

    static func revokeServerKey(_ id: String, in db: Database) throws -> [DirectoryChange] {
        try db.execute(sql: "DELETE FROM server_key WHERE id = ?", arguments: [id])
        guard db.changesCount > 0 else { throw AdministrationRows.unknownKey(id) }
        return [.serverKeyRemoved(id: id)]
    }

    static func removeServerKeys(of accountID: String, in db: Database) throws -> [DirectoryChange] {
        let ids = try String.fetchAll(
            db, sql: "SELECT id FROM server_key WHERE account = ? ORDER BY id", arguments: [accountID])
        try db.execute(sql: "DELETE FROM server_key WHERE account = ?", arguments: [accountID])
        try Invariant.check(
            db.changesCount == ids.count,
            "account \(accountID) has \(ids.count) server keys, and \(db.changesCount) were removed")
        return ids.map { .serverKeyRemoved(id: $0) }
    }
}
