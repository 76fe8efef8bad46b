import Foundation
import GRDB
import RecordModel
import Wire

/// What `AdministrationCommand` changes: one function a command. Each throws `ServiceError` to refuse, before it writes
/// anything, or the database's own error.
enum AdministrationRows {
    static func apply(
        _ command: AdministrationCommand, at level: FeatureLevel, in db: Database
    ) throws -> [DirectoryChange] {
        var needed = FeatureLevel.administration
        if case .unlock = command { needed = .unlocking }
        guard level >= needed else {
            throw ServiceError(.tryAgainLater, "this needs feature level \(needed)", retryAfterSeconds: 1)
        }
        return switch command {
        case .beginActing(let token): try beginActing(token, in: db)
        case .endActing(let token): try endActing(token, in: db)
        case .describeContainer(let details): try describe(details, in: db)
        case .changeToken(let id, let label, let origins): try changeToken(id, label, origins, in: db)
        case .changeKey(let id, let label): try changeKey(id, in: db) { $0.label = label }
        case .noteUses(let ids, let time): try noteUses(ids, time: time, in: db)
        case .unlock(let name):
            try DirectoryTables.clearLockout(of: DirectoryTables.account(named: name, in: db).id, in: db)
        }
    }

    // MARK: Acting as a user

    private static func beginActing(_ token: Token, in db: Database) throws -> [DirectoryChange] {
        guard case .acting(let session) = token.kind else {
            throw ServiceError(.badRequest, "this is a token of another kind than a time as a user")
        }
        if try DirectoryTables.token(token.id, in: db) == token { return [] }
        try DirectoryTables.requireContainer(session.container, in: db)
        try DirectoryTables.requireAccount(session.accountID, in: db)
        try DirectoryTables.requireAdministrator(session.administrator, in: db)
        if !session.consoleSession.isEmpty, try DirectoryTables.token(session.consoleSession, in: db) == nil {
            throw ServiceError(.authenticationFailed, "the session in the console ended meanwhile: sign in again")
        }
        let earlier = try ConsoleTokens.all(of: session.administrator, in: db).filter { other in
            guard case .acting(let old) = other.kind else { return false }
            return old.schemaKey == session.schemaKey && old.consoleSession == session.consoleSession
        }
        return try ConsoleTokens.remove(earlier, in: db) + DirectoryTables.insert(token, in: db)
    }

    private static func endActing(_ token: Token, in db: Database) throws -> [DirectoryChange] {
        guard case .acting? = try DirectoryTables.token(token.id, in: db)?.kind else { return [] }
        return try ConsoleTokens.remove([token], in: db)
    }

    /// Ends the times as a user that began in a session of the console.
    static func endActing(of name: String, in session: String, _ db: Database) throws -> [DirectoryChange] {
        try ConsoleTokens.remove(
            ConsoleTokens.all(of: name, in: db).filter { token in
                if case .acting(let acting) = token.kind { acting.consoleSession == session } else { false }
            }, in: db)
    }

    // MARK: Containers

    private static func describe(_ details: ContainerDetails, in db: Database) throws -> [DirectoryChange] {
        guard details.note.count <= ContainerDetails.noteLengthMax else {
            throw ServiceError(
                .badRequest, "note: at most \(ContainerDetails.noteLengthMax) characters are expected")
        }
        try DirectoryTables.requireContainer(details.name, in: db)
        var settings = try DirectoryTables.settings(in: db)
        let old = settings.containerDetails
        settings.containerDetails.removeAll { $0.name == details.name }
        if !details.isEmpty { settings.containerDetails.append(details) }
        settings.containerDetails.sort { $0.name.precedes($1.name) }
        if settings.containerDetails == old { return [] }
        try DirectoryTables.write(settings, in: db)
        return [.containerDetails(details)]
    }

    /// Forgets what was said of a container that is being removed.
    static func removeDetails(of name: String, in db: Database) throws {
        var settings = try DirectoryTables.settings(in: db)
        guard settings.containerDetails.contains(where: { $0.name == name }) else { return }
        settings.containerDetails.removeAll { $0.name == name }
        try DirectoryTables.write(settings, in: db)
    }

    // MARK: Tokens and keys

    static func unknownToken(_ id: String) -> ServiceError {
        ServiceError(.notFound, "no token '\(AuditText.id(id))': `zonekeeper token list` shows those that exist")
    }

    static func unknownKey(_ id: String) -> ServiceError {
        ServiceError(.notFound, "no server key '\(AuditText.id(id))': `zonekeeper key list` shows those that exist")
    }

    private static func changeToken(
        _ id: String, _ label: String?, _ origins: [String]?, in db: Database
    ) throws -> [DirectoryChange] {
        guard let old = try DirectoryTables.token(id, in: db) else { throw unknownToken(id) }
        guard case .api(let container, let environment, _, let callbackURL) = old.kind else {
            throw ServiceError(.badRequest, "the token '\(AuditText.id(id))' is not an app's: only these are changed")
        }
        var token = old
        if let label { token.label = label }
        if let origins {
            token.kind = .api(
                container: container, environment: environment, origins: origins, callbackURL: callbackURL)
        }
        if token == old { return [] }
        try write(token, in: db)
        return [.token(token)]
    }

    private static func write(_ token: Token, in db: Database) throws {
        try db.execute(
            sql: "UPDATE token SET body = ? WHERE id = ?", arguments: [Data(token.encoded()), token.id])
        try db.checkOneRow("token \(token.id)")
    }

    private static func changeKey(
        _ id: String, in db: Database, _ change: (inout ServerKey) -> Void
    ) throws -> [DirectoryChange] {
        guard let old: ServerKey = try db.message("SELECT body FROM server_key WHERE id = ?", [id]) else {
            throw unknownKey(id)
        }
        var key = old
        change(&key)
        if key == old { return [] }
        try db.execute(
            sql: "UPDATE server_key SET body = ? WHERE id = ?", arguments: [Data(key.encoded()), id])
        try db.checkOneRow("server key \(id)")
        return [.serverKey(key)]
    }

    /// Passes over what is not there any more, and what was used later.
    private static func noteUses(_ ids: [String], time: Int64, in db: Database) throws -> [DirectoryChange] {
        var changes: [DirectoryChange] = []
        for id in ids {
            if var token = try DirectoryTables.token(id, in: db), token.kind.filterKind == .api,
                token.lastUsed ?? 0 < time
            {
                token.lastUsed = time
                try write(token, in: db)
                changes.append(.token(token))
            }
            if let key: ServerKey = try db.message("SELECT body FROM server_key WHERE id = ?", [id]),
                key.lastUsed ?? 0 < time
            {
                changes += try changeKey(id, in: db) { $0.lastUsed = time }
            }
        }
        return changes
    }
}
