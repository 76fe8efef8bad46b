import Foundation
import GRDB
import RecordModel
import Wire

/// The rows of tokens: of apps and administrators, of users' sessions, and of the console.
struct TokenRows {
    let db: Database

    func token(_ id: String) throws -> Token? { try AccountReader(db).token(withID: id) }

    func create(_ token: Token, at level: FeatureLevel) throws -> [DirectoryChange] {
        if case .api(let container, _, _, _) = token.kind, level >= .boundedTokens {
            try requireRoom(in: container, for: token)
        }
        return try create(token)
    }

    func create(_ token: Token) throws -> [DirectoryChange] {
        switch token.kind {
        case .administrator(let name):
            if let own = try ofAdministrator(name) {
                if own == token { return [] }
                throw ServiceError(
                    .exists,
                    "there is an administrator '\(AuditText.id(name))' already: see `zonekeeper administrator list`")
            }
            try requireRoom()
        case .console, .consoleLink, .acting:
            throw ServiceError(.badRequest, "this kind of token is not made, but begun")
        case .api, .session, .signIn: try ContainerRows(db: db).require(token.kind.container)
        }
        if let accountID = token.kind.accountID { try AccountRows(db: db).require(accountID) }
        if case .signIn = token.kind, token.secretHash != Token.hash(ofSession: token.id) {
            throw ServiceError(.badRequest, "a session begun by sign-in has no secret, this one has")
        }
        return try insert(token)
    }

    /// Writes a token that may be; one that is there already changes nothing.
    func insert(_ token: Token) throws -> [DirectoryChange] {
        let known: Token? = try db.message(
            "SELECT body FROM token WHERE id = ? OR secret_hash = ?", [token.id, Data(token.secretHash)])
        if let known {
            if known == token { return [] }
            throw ServiceError(.exists, "a token with this id or secret exists already")
        }
        let totals = SessionTotals(db: db)
        let isSession = token.kind.accountID != nil
        let users = try totals.changes(byAdding: token)
        var signIn: String?
        if case .signIn(let container, _, _) = token.kind { signIn = container }
        try db.run(
            """
            INSERT INTO token (id, account, sign_in, created, secret_hash, expires, body)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            [
                token.id, token.kind.accountID, signIn, token.created, Data(token.secretHash), token.kind.expires,
                token.body,
            ])
        let expiry = token.kind.expires == nil ? [] : [try totals.firstExpiry]
        return (isSession ? users : [.token(token)]) + expiry
    }

    /// The token of an administrator.
    func ofAdministrator(_ name: String) throws -> Token? {
        try ofAdministrators.first { $0.kind == .administrator(name: name) }
    }

    private var ofAdministrators: [Token] {
        get throws {
            let tokens: [Token] = try db.messages(
                "SELECT body FROM token WHERE account IS NULL AND expires IS NULL ORDER BY id")
            return tokens.filter { if case .administrator = $0.kind { true } else { false } }
        }
    }

    /// - Throws: `BAD_REQUEST` where the cluster has as many administrators as it may.
    private func requireRoom() throws {
        let count = try ofAdministrators.count
        guard count < Token.administratorsMax else {
            throw ServiceError(.badRequest, "the cluster has \(count) administrators, and may have no more")
        }
    }

    /// - Throws: `BAD_REQUEST` where a container has as many other API tokens as it may.
    private func requireRoom(in container: String, for token: Token) throws {
        let named: [Token] = try db.messages(
            "SELECT body FROM token WHERE account IS NULL AND expires IS NULL AND instr(body, ?) > 0",
            [Data(container.utf8)])
        let others = named.filter { $0.id != token.id && $0.kind.filterKind == .api && $0.kind.container == container }
        if others.count >= Token.apiTokensMax {
            throw ContainerRows.isFull(
                container, "\(others.count) API tokens", of: "app", list: "zonekeeper token list --kind api")
        }
    }

    /// Changes what people see of an app's token, and which pages may use it.
    func change(_ id: String, label: String?, origins: [String]?) throws -> [DirectoryChange] {
        guard let old = try token(id) else { throw unknown(id) }
        guard case .api(let container, let environment, _, let callbackURL) = old.kind else {
            throw ServiceError(.badRequest, "the token '\(AuditText.id(id))' is not an app's: only these are changed")
        }
        var token = old
        if let label { token.label = label }
        if let origins {
            token.kind = .api(
                container: container, environment: environment, origins: origins, callbackURL: callbackURL)
        }
        return token == old ? [] : try replace(token)
    }

    private func replace(_ token: Token) throws -> [DirectoryChange] {
        try db.run("UPDATE token SET body = ? WHERE id = ?", [token.body, token.id])
        try db.checkOneRow("token \(token.id)")
        return [.token(token)]
    }

    /// Notes the use of apps' tokens and servers' keys. Passes over what is not there any more, and what was used
    /// later.
    func noteUses(_ ids: [String], time: Int64) throws -> [DirectoryChange] {
        let keys = ServerKeyRows(db: db)
        var changes: [DirectoryChange] = []
        for id in ids {
            if var token = try token(id), token.kind.filterKind == .api, token.lastUsed ?? 0 < time {
                token.lastUsed = time
                changes += try replace(token)
            }
            if let key = try keys.key(id), key.lastUsed ?? 0 < time {
                changes += try keys.change(id) { $0.lastUsed = time }
            }
        }
        return changes
    }

    func revoke(_ id: String) throws -> [DirectoryChange] {
        guard let token = try token(id) else { throw unknown(id) }
        try Invariant.check(token.id == id, "token \(id) is stored as \(token.id)")
        let console = ConsoleTokens(db: db)
        var changes = try remove([token])
        if case .console(let name, _) = token.kind { changes += try console.endActing(of: name, in: id) }
        guard case .administrator(let name) = token.kind,
            try !SettingsRow(db: db).settings.administrators.contains(where: { $0.name == name })
        else { return changes }
        // Nothing is left by which somebody of this name could have a role.
        return try changes + console.end(of: name)
    }

    /// Removes tokens that are there.
    func remove(_ tokens: some Collection<Token>) throws -> [DirectoryChange] {
        for token in tokens {
            try db.run("DELETE FROM token WHERE id = ?", [token.id])
            try db.checkOneRow("the end of token \(token.id)")
        }
        return try SessionTotals(db: db).changes(byRemoving: Array(tokens))
    }

    func endSessions(of accountID: String) throws -> [DirectoryChange] {
        let tokens: [Token] = try db.messages("SELECT body FROM token WHERE account = ? ORDER BY id", [accountID])
        try db.run("DELETE FROM token WHERE account = ?", [accountID])
        try Invariant.check(
            db.changesCount == tokens.count,
            "account \(accountID) has \(tokens.count) sessions, and \(db.changesCount) were ended")
        return try SessionTotals(db: db).changes(byRemoving: tokens)
    }

    /// Removes what has expired.
    /// - Parameter countMax: tokens removed at most.
    func purge(time: Int64, countMax: Int) throws -> [DirectoryChange] {
        let expired: [Token] = try db.messages(
            "SELECT body FROM token WHERE expires <= ? ORDER BY expires, id LIMIT ?", [time, countMax])
        return try remove(expired)
    }

    private func unknown(_ id: String) -> ServiceError {
        ServiceError(.notFound, "no token '\(AuditText.id(id))': `zonekeeper token list` shows those that exist")
    }
}

/// Begins sessions by signing in.
struct SignIns {
    let db: Database

    /// Begins a session where what it rests on still holds, and ends the oldest ones of the account in the container
    /// where there would be more than `Token.signInSessionsMax`.
    func begin(_ token: Token, _ basis: SignInBasis) throws -> [DirectoryChange] {
        guard case .signIn(let container, let accountID, _) = token.kind else {
            throw ServiceError(.badRequest, "signing in begins a session; this is a token of another kind")
        }
        try ContainerRows(db: db).require(container)
        guard let account = try AccountReader(db).account(withID: accountID) else { throw AccountRows.unknownID }
        try require(basis.proof, of: account)
        try requireAPIToken(basis.apiTokenID, for: container)
        let changes = try TokenRows(db: db).create(token)
        return try changes + endOldest(beside: token, of: accountID, in: container)
            + AccountRows(db: db).clearLockout(of: accountID)
    }

    private func require(_ proof: SignInBasis.Proof, of account: Account) throws {
        switch proof {
        case .password(let fingerprint):
            guard let password = account.password, password.fingerprint == fingerprint else {
                throw ServiceError(
                    .authenticationFailed, "the password was changed meanwhile: sign in with the new one")
            }
        case .identity(let identity, let name):
            guard try ProviderRows(db: db).provider(name)?.$issuer == identity.$issuer else {
                throw ServiceError(
                    .authenticationFailed,
                    "the identity provider '\(name)' was removed or changed meanwhile: sign in again")
            }
            guard account.identity == identity else {
                throw ServiceError(
                    .authenticationFailed, "the identity was taken from the user meanwhile: sign in again")
            }
        }
    }

    private func requireAPIToken(_ id: String, for container: String) throws {
        if case .api(let own, _, _, _)? = try TokenRows(db: db).token(id)?.kind, Bytewise(own) == Bytewise(container) {
            return
        }
        throw ServiceError(.authenticationFailed, "the app's API token was revoked meanwhile")
    }

    /// The session that begins is never the one that ends, whatever the clocks of the nodes say.
    private func endOldest(
        beside token: Token, of accountID: String, in container: String
    ) throws -> [DirectoryChange] {
        let oldest: [Token] = try db.messages(
            """
            SELECT body FROM token WHERE account = ? AND sign_in = ? AND id <> ?
            ORDER BY created DESC, id DESC LIMIT -1 OFFSET ?
            """, [accountID, container, token.id, Token.signInSessionsMax - 1])
        return try TokenRows(db: db).remove(oldest)
    }
}
