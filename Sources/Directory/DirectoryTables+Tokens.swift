import Foundation
import GRDB
import RecordModel
import Wire

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
        case .console, .consoleLink:
            throw ServiceError(.badRequest, "sessions of the console begin by signing in there")
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
        let known = try Data.fetchAll(
            db, sql: "SELECT body FROM token WHERE id = ? OR secret_hash = ?",
            arguments: [token.id, Data(token.secretHash)])
        if let body = known.first {
            if try Token(decoding: [UInt8](body)) == token { return [] }
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

    /// The token of an administrator; nil where there is none.
    static func administratorToken(_ name: String, in db: Database) throws -> Token? {
        try administratorTokens(in: db).first { $0.kind == .administrator(name: name) }
    }

    private static func administratorTokens(in db: Database) throws -> [Token] {
        try Data.fetchAll(
            db, sql: "SELECT body FROM token WHERE account IS NULL AND expires IS NULL ORDER BY id"
        ).map { try Token(decoding: [UInt8]($0)) }
            .filter { if case .administrator = $0.kind { true } else { false } }
    }

    /// - Throws: `BAD_REQUEST` where the cluster has as many administrators as it may.
    private static func requireRoom(in db: Database) throws {
        let count = try administratorTokens(in: db).count
        guard count < Token.administratorsMax else {
            throw ServiceError(.badRequest, "the cluster has \(count) administrators, and may have no more")
        }
    }

    static func revokeToken(_ id: String, in db: Database) throws -> [DirectoryChange] {
        guard let body = try Data.fetchOne(db, sql: "SELECT body FROM token WHERE id = ?", arguments: [id]) else {
            throw ServiceError(
                .notFound, "no token '\(AuditText.id(id))': `zonekeeper token list` shows those that exist")
        }
        let token = try Token(decoding: [UInt8](body))
        try Invariant.check(token.id == id, "token \(id) is stored as \(token.id)")
        try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
        try db.checkOneRow("the end of token \(id)")
        let changes = try SessionTotals.changes(byRemoving: [token], in: db)
        guard case .administrator(let name) = token.kind,
            try !settings(in: db).administrators.contains(where: { $0.name == name })
        else { return changes }
        // Nothing is left by which somebody of this name could have a role.
        return try changes + endConsole(of: name, in: db)
    }

    static func endSessions(of accountID: String, in db: Database) throws -> [DirectoryChange] {
        let bodies = try Data.fetchAll(
            db, sql: "SELECT body FROM token WHERE account = ? ORDER BY id", arguments: [accountID])
        try db.execute(sql: "DELETE FROM token WHERE account = ?", arguments: [accountID])
        try Invariant.check(
            db.changesCount == bodies.count,
            "account \(accountID) has \(bodies.count) sessions, and \(db.changesCount) were ended")
        return try SessionTotals.changes(byRemoving: try bodies.map { try Token(decoding: [UInt8]($0)) }, in: db)
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
        if let body = try Data.fetchOne(db, sql: "SELECT body FROM server_key WHERE id = ?", arguments: [key.id]) {
            if try ServerKey(decoding: [UInt8](body)) == key { return [] }
            throw ServiceError(.exists, "a server key with this id exists already")
        }
        try db.execute(
            sql: "INSERT INTO server_key (id, account, body) VALUES (?, ?, ?)",
            arguments: [key.id, key.accountID, Data(key.encoded())])
        return [.serverKey(key)]
    }

    static func revokeServerKey(_ id: String, in db: Database) throws -> [DirectoryChange] {
        try db.execute(sql: "DELETE FROM server_key WHERE id = ?", arguments: [id])
        guard db.changesCount > 0 else {
            throw ServiceError(
                .notFound, "no server key '\(AuditText.id(id))': `zonekeeper key list` shows those that exist")
        }
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
