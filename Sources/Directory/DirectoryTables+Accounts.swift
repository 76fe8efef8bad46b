import Foundation
import GRDB
import RecordModel
import Wire

// Accounts: one function a command. Each throws `ServiceError` to refuse, before it writes anything, or the
// database's own error.
extension DirectoryTables {
    static func createAccount(_ account: Account, in db: Database) throws -> [DirectoryChange] {
        // Text that looks the same must be the same: names are compared by their bytes.
        guard account.$name == Bytewise(Account.comparable(name: account.name)) else {
            throw ServiceError(
                .badRequest,
                "the name '\(account.name)' is not in Unicode's composed form (NFC): write it with composed letters")
        }
        let known = try Data.fetchOne(db, sql: "SELECT body FROM account WHERE id = ?", arguments: [account.id])
        if known == Data(account.encoded()) { return [] }
        if try Int.fetchOne(
            db, sql: "SELECT 1 FROM account WHERE name = ? OR id = ?", arguments: [account.name, account.id]) != nil
        {
            throw ServiceError(.exists, "user '\(account.name)' exists already")
        }
        let email = try comparableEmail(of: account, in: db)
        let identity = try uniqueIdentity(of: account, in: db)
        try db.execute(
            sql: "INSERT INTO account (id, name, email, identity, body) VALUES (?, ?, ?, ?, ?)",
            arguments: [account.id, account.name, email, identity, Data(account.encoded())])
        return [.accountAdded(id: account.id)]
    }

    static func updateAccount(
        _ name: String, _ changes: AccountChanges, in db: Database
    ) throws -> [DirectoryChange] {
        let old = try account(named: name, in: db)
        var account = old
        changes.apply(to: &account)
        // By bytes: another spelling of an address is another address.
        if account.encoded() == old.encoded() { return [] }
        try write(account, in: db)
        return [.accountChanged(id: account.id)]
    }

    private static func write(_ account: Account, in db: Database) throws {
        let email = try comparableEmail(of: account, in: db)
        let identity = try uniqueIdentity(of: account, in: db)
        try db.execute(
            sql: "UPDATE account SET email = ?, identity = ?, body = ? WHERE id = ?",
            arguments: [email, identity, Data(account.encoded()), account.id])
        try db.checkOneRow("account \(account.id)")
    }

    static func deleteAccount(named name: String, in db: Database) throws -> [DirectoryChange] {
        let account = try account(named: name, in: db)
        var changes = try endSessions(of: account.id, in: db) + removeServerKeys(of: account.id, in: db)
        changes += try removeRoles(of: account.id, in: db) + clearLockout(of: account.id, in: db)
        try db.execute(sql: "DELETE FROM account WHERE id = ?", arguments: [account.id])
        try db.checkOneRow("the end of account \(account.id)")
        return changes + [.accountChanged(id: account.id)]
    }

    static func setPassword(
        _ password: PasswordHash?, ofAccount name: String, endsSessions: Bool, in db: Database
    ) throws -> [DirectoryChange] {
        var account = try account(named: name, in: db)
        var changes = try clearLockout(of: account.id, in: db)
        if account.password != password {
            account.password = password
            try write(account, in: db)
            changes.append(.accountChanged(id: account.id))
        }
        if endsSessions { changes += try endSessions(of: account.id, in: db) }
        return changes
    }

    static func noteSignInFailure(_ accountID: String, time: Int64, in db: Database) throws -> [DirectoryChange] {
        try requireAccount(accountID, in: db)
        return try countFailure(of: accountID, time: time, in: db)
    }

    /// - Parameter key: an account's id, or an administrator's `lockoutKey`.
    static func countFailure(of key: String, time: Int64, in db: Database) throws -> [DirectoryChange] {
        let old = try AccountReader(db).lockout(of: key) ?? Lockout(failures: 0, lockedUntil: 0)
        let lockout = old.counting(failureAt: time)
        try db.execute(
            sql: "INSERT OR REPLACE INTO lockout (account, body) VALUES (?, ?)",
            arguments: [key, Data(lockout.encoded())])
        return [.accountChanged(id: key)]
    }

    static func clearLockout(of accountID: String, in db: Database) throws -> [DirectoryChange] {
        try db.execute(sql: "DELETE FROM lockout WHERE account = ?", arguments: [accountID])
        return db.changesCount == 0 ? [] : [.accountChanged(id: accountID)]
    }

    static func requireAccount(_ id: String, in db: Database) throws {
        guard try Int.fetchOne(db, sql: "SELECT 1 FROM account WHERE id = ?", arguments: [id]) != nil else {
            throw ServiceError(
                .notFound, "the user does not exist any more: `zonekeeper user list` shows those that do")
        }
    }

    static func account(named name: String, in db: Database) throws -> Account {
        if let account: Account = try db.message("SELECT body FROM account WHERE name = ?", [name]) { return account }
        throw ServiceError(.notFound, "no user '\(name)': `zonekeeper user list` shows those that exist")
    }

    /// The account's address in the form in which it is unique.
    private static func comparableEmail(of account: Account, in db: Database) throws -> String? {
        guard let email = account.email.map({ Account.comparable(email: $0) }) else { return nil }
        if try Int.fetchOne(
            db, sql: "SELECT 1 FROM account WHERE email = ? AND id <> ?", arguments: [email, account.id]) != nil
        {
            throw ServiceError(.exists, "another user has the address '\(email)' already")
        }
        return email
    }

    /// The account's name at an issuer in the form in which it is unique.
    private static func uniqueIdentity(of account: Account, in db: Database) throws -> Data? {
        guard let identity = account.identity else { return nil }
        let form = Data(identity.encoded())
        if try Int.fetchOne(
            db, sql: "SELECT 1 FROM account WHERE identity = ? AND id <> ?", arguments: [form, account.id]) != nil
        {
            throw ServiceError(
                .exists,
                "another user has this identity at '\(identity.issuer)' already: take it from that user, or delete that user"
            )
        }
        return form
    }
}

// Sessions that begin by signing in.
extension DirectoryTables {
    /// Begins a session where what it rests on still holds, and ends the oldest ones of the account in the container
    /// where there would be more than `Token.signInSessionsMax`.
    static func beginSession(
        _ token: Token, _ basis: SignInBasis, in db: Database
    ) throws -> [DirectoryChange] {
        guard case .signIn(let container, let accountID, _) = token.kind else {
            throw ServiceError(.badRequest, "signing in begins a session; this is a token of another kind")
        }
        try requireContainer(container, in: db)
        guard let account = try AccountReader(db).account(withID: accountID) else {
            throw ServiceError(
                .notFound, "the user does not exist any more: `zonekeeper user list` shows those that do")
        }
        try require(basis.proof, of: account, in: db)
        try requireAPIToken(basis.apiTokenID, for: container, in: db)
        let changes = try createToken(token, in: db)
        return try changes + endOldest(beside: token, of: accountID, in: container, in: db)
            + clearLockout(of: accountID, in: db)
    }

    private static func require(_ proof: SignInBasis.Proof, of account: Account, in db: Database) throws {
        switch proof {
        case .password(let fingerprint):
            guard let password = account.password, password.fingerprint == fingerprint else {
                throw ServiceError(
                    .authenticationFailed, "the password was changed meanwhile: sign in with the new one")
            }
        case .identity(let identity, let name):
            let provider: IdentityProvider? = try db.message("SELECT body FROM provider WHERE name = ?", [name])
            guard provider?.$issuer == identity.$issuer else {
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

    private static func requireAPIToken(_ id: String, for container: String, in db: Database) throws {
        let token: Token? = try db.message("SELECT body FROM token WHERE id = ?", [id])
        if case .api(let own, _, _, _)? = token?.kind, Bytewise(own) == Bytewise(container) { return }
        throw ServiceError(.authenticationFailed, "the app's API token was revoked meanwhile")
    }

    /// The session that begins is never the one that ends, whatever the clocks of the nodes say.
    private static func endOldest(
        beside token: Token, of accountID: String, in container: String, in db: Database
    ) throws -> [DirectoryChange] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, body FROM token WHERE account = ? AND sign_in = ? AND id <> ?
                ORDER BY created DESC, id DESC LIMIT -1 OFFSET ?
                """, arguments: [accountID, container, token.id, Token.signInSessionsMax - 1])
        let ended = try rows.map { row in
            let (id, body): (String, Data) = try (row.decode(atIndex: 0), row.decode(atIndex: 1))
            try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
            try db.checkOneRow("the end of session \(id)")
            return try Token(decoding: [UInt8](body))
        }
        return try SessionTotals.changes(byRemoving: ended, in: db)
    }
}
