import Foundation
import GRDB
import RecordModel
import Wire

// Accounts and their tokens: one function a command. Each throws `ServiceError` to refuse, before it writes anything, or the
// database's own error.
extension DirectoryTables {
    static func createAccount(_ account: Account, in db: Database) throws -> DirectoryChange? {
        // Text that looks the same must be the same: names are keys in memory, where Unicode's equivalence counts, and on disk,
        // where bytes do.
        guard account.name.utf8.elementsEqual(account.name.precomposedStringWithCanonicalMapping.utf8) else {
            throw ServiceError(
                .badRequest,
                "the name '\(account.name)' is not in Unicode's composed form (NFC): write it with composed letters")
        }
        if try Int.fetchOne(
            db, sql: "SELECT 1 FROM account WHERE name = ? OR id = ?", arguments: [account.name, account.id]) != nil
        {
            throw ServiceError(.exists, "user '\(account.name)' exists already")
        }
        let email = try comparableEmail(of: account, in: db)
        try db.execute(
            sql: "INSERT INTO account (id, name, email, body) VALUES (?, ?, ?, ?)",
            arguments: [account.id, account.name, email, Data(account.encoded())])
        return .account(account)
    }

    static func updateAccount(
        _ name: String, _ changes: AccountChanges, in db: Database
    ) throws -> DirectoryChange? {
        let old = try account(named: name, in: db)
        var account = old
        changes.apply(to: &account)
        if account == old { return nil }
        let email = try comparableEmail(of: account, in: db)
        try db.execute(
            sql: "UPDATE account SET email = ?, body = ? WHERE id = ?",
            arguments: [email, Data(account.encoded()), account.id])
        return .account(account)
    }

    static func deleteAccount(named name: String, in db: Database) throws -> DirectoryChange? {
        let account = try account(named: name, in: db)
        try db.execute(sql: "DELETE FROM token WHERE account = ?", arguments: [account.id])
        try db.execute(sql: "DELETE FROM account WHERE id = ?", arguments: [account.id])
        return .accountRemoved(account)
    }

    static func createToken(_ token: Token, in db: Database) throws -> DirectoryChange? {
        var accountID: String?
        switch token.kind {
        case .api(let container, _): try requireContainer(container, in: db)
        case .session(let container, let id, _):
            try requireContainer(container, in: db)
            guard try Int.fetchOne(db, sql: "SELECT 1 FROM account WHERE id = ?", arguments: [id]) != nil else {
                throw ServiceError(.notFound, "the session's user does not exist any more")
            }
            accountID = id
        }
        if try Int.fetchOne(
            db, sql: "SELECT 1 FROM token WHERE id = ? OR secret_hash = ?",
            arguments: [token.id, Data(token.secretHash)]) != nil
        {
            throw ServiceError(.exists, "a token with this id or secret exists already")
        }
        try db.execute(
            sql: "INSERT INTO token (id, account, secret_hash, body) VALUES (?, ?, ?, ?)",
            arguments: [token.id, accountID, Data(token.secretHash), Data(token.encoded())])
        return .token(token)
    }

    static func revokeToken(_ id: String, in db: Database) throws -> DirectoryChange? {
        guard let body = try Data.fetchOne(db, sql: "SELECT body FROM token WHERE id = ?", arguments: [id]) else {
            throw ServiceError(.notFound, "no token '\(id)': `zonekeeper token list` shows those that exist")
        }
        try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
        return .tokenRemoved(try Token(decoding: [UInt8](body)))
    }

    private static func account(named name: String, in db: Database) throws -> Account {
        guard let body = try Data.fetchOne(db, sql: "SELECT body FROM account WHERE name = ?", arguments: [name]) else {
            throw ServiceError(.notFound, "no user '\(name)': `zonekeeper user list` shows those that exist")
        }
        return try Account(decoding: [UInt8](body))
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
}
