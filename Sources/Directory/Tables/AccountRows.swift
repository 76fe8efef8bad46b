import Foundation
import GRDB
import RecordModel
import Wire

/// The rows of accounts and of lock-outs. What a command changes throws `ServiceError` to refuse, before anything is
/// written, or the database's own error; so do the other rows of the directory.
struct AccountRows {
    let db: Database

    func create(_ account: Account) throws -> [DirectoryChange] {
        // Text that looks the same must be the same: names are compared by their bytes.
        guard account.$name == Bytewise(Account.comparable(name: account.name)) else {
            throw ServiceError(
                .badRequest,
                "the name '\(account.name)' is not in Unicode's composed form (NFC): write it with composed letters")
        }
        let known = try Data.fetchOne(db, sql: "SELECT body FROM account WHERE id = ?", arguments: [account.id])
        if known == account.body { return [] }
        if try db.has("SELECT 1 FROM account WHERE name = ? OR id = ?", [account.name, account.id]) {
            throw ServiceError(.exists, "user '\(account.name)' exists already")
        }
        try db.run(
            "INSERT INTO account (id, name, email, identity, body) VALUES (?, ?, ?, ?, ?)",
            [account.id, account.name, comparableEmail(of: account), uniqueIdentity(of: account), account.body])
        return [.accountAdded(id: account.id)]
    }

    func update(_ name: String, _ changes: AccountChanges) throws -> [DirectoryChange] {
        let old = try account(named: name)
        var account = old
        changes.apply(to: &account)
        // By bytes: another spelling of an address is another address.
        if account.encoded() == old.encoded() { return [] }
        try write(account)
        return [.accountChanged(id: account.id)]
    }

    private func write(_ account: Account) throws {
        try db.run(
            "UPDATE account SET email = ?, identity = ?, body = ? WHERE id = ?",
            [comparableEmail(of: account), uniqueIdentity(of: account), account.body, account.id])
        try db.checkOneRow("account \(account.id)")
    }

    func delete(named name: String) throws -> [DirectoryChange] {
        let id = try account(named: name).id
        var changes = try TokenRows(db: db).endSessions(of: id) + ServerKeyRows(db: db).removeAll(of: id)
        changes += try RoleRows(db: db).removeAll(of: id) + clearLockout(of: id)
        try db.run("DELETE FROM account WHERE id = ?", [id])
        try db.checkOneRow("the end of account \(id)")
        return changes + [.accountChanged(id: id)]
    }

    func setPassword(
        _ password: PasswordHash?, ofAccount name: String, endsSessions: Bool
    ) throws -> [DirectoryChange] {
        var account = try account(named: name)
        var changes = try clearLockout(of: account.id)
        if account.password != password {
            account.password = password
            try write(account)
            changes.append(.accountChanged(id: account.id))
        }
        if endsSessions { changes += try TokenRows(db: db).endSessions(of: account.id) }
        return changes
    }

    func noteSignInFailure(_ accountID: String, time: Int64) throws -> [DirectoryChange] {
        try require(accountID)
        return try countFailure(of: accountID, time: time)
    }

    /// - Parameter key: an account's id, or an administrator's `lockoutKey`.
    func countFailure(of key: String, time: Int64) throws -> [DirectoryChange] {
        let old = try AccountReader(db).lockout(of: key) ?? Lockout(failures: 0, lockedUntil: 0)
        try db.run(
            "INSERT OR REPLACE INTO lockout (account, body) VALUES (?, ?)", [key, old.counting(failureAt: time).body])
        return [.accountChanged(id: key)]
    }

    /// - Parameter key: as for a failure.
    func clearLockout(of key: String) throws -> [DirectoryChange] {
        try db.run("DELETE FROM lockout WHERE account = ?", [key])
        return db.changesCount == 0 ? [] : [.accountChanged(id: key)]
    }

    func unlock(_ name: String) throws -> [DirectoryChange] { try clearLockout(of: account(named: name).id) }

    func require(_ id: String) throws {
        guard try db.has("SELECT 1 FROM account WHERE id = ?", [id]) else { throw Self.unknownID }
    }

    static var unknownID: ServiceError {
        ServiceError(.notFound, "the user does not exist any more: `zonekeeper user list` shows those that do")
    }

    private func account(named name: String) throws -> Account {
        if let account: Account = try db.message("SELECT body FROM account WHERE name = ?", [name]) { return account }
        throw ServiceError(.notFound, "no user '\(name)': `zonekeeper user list` shows those that exist")
    }

    /// The account's address in the form in which it is unique.
    private func comparableEmail(of account: Account) throws -> String? {
        guard let email = account.email.map({ Account.comparable(email: $0) }) else { return nil }
        if try db.has("SELECT 1 FROM account WHERE email = ? AND id <> ?", [email, account.id]) {
            throw ServiceError(.exists, "another user has the address '\(email)' already")
        }
        return email
    }

    /// The account's name at an issuer in the form in which it is unique.
    private func uniqueIdentity(of account: Account) throws -> Data? {
        guard let identity = account.identity else { return nil }
        if try db.has("SELECT 1 FROM account WHERE identity = ? AND id <> ?", [identity.body, account.id]) {
            throw ServiceError(
                .exists,
                "another user has this identity at '\(identity.issuer)' already: take it from that user, or delete that user"
            )
        }
        return identity.body
    }
}

/// The rows of who has which custom role.
struct RoleRows {
    let db: Database

    func add(_ member: RoleMember) throws -> [DirectoryChange] {
        try ContainerRows(db: db).require(member.container)
        try AccountRows(db: db).require(member.accountID)
        if member.role.hasPrefix("_") {
            throw ServiceError(
                .badRequest,
                "the role '\(member.role)' is a system role: who has it follows from who asks, it has no members")
        }
        let key = SchemaKey(container: member.container, environment: member.environment)
        guard let schema = try SchemaRow(key: key, db: db).body,
            schema.roles.contains(where: { Bytewise($0) == member.$role })
        else {
            throw ServiceError(
                .notFound,
                "the schema of '\(member.container)' (\(member.environment.rawValue)) has no role '\(member.role)': add "
                    + "`CREATE ROLE \(member.role);` to the schema and import it")
        }
        try db.run(
            "INSERT OR IGNORE INTO role_member (container, environment, role, account) VALUES (?, ?, ?, ?)",
            arguments(member))
        return db.changesCount == 0 ? [] : [.roleMember(member)]
    }

    func remove(_ member: RoleMember) throws -> [DirectoryChange] {
        try ContainerRows(db: db).require(member.container)
        try db.run(
            "DELETE FROM role_member WHERE container = ? AND environment = ? AND role = ? AND account = ?",
            arguments(member))
        guard db.changesCount > 0 else {
            throw ServiceError(
                .notFound,
                "the user has no role '\(member.role)' in '\(member.container)' (\(member.environment.rawValue)): "
                    + "`zonekeeper role list` shows who has which")
        }
        return [.roleMemberRemoved(member)]
    }

    private func arguments(_ member: RoleMember) -> StatementArguments {
        [member.container, member.environment.rawValue, member.role, member.accountID]
    }

    func removeAll(of accountID: String) throws -> [DirectoryChange] {
        try removeAll("account", accountID, order: "container, environment, role")
    }

    func removeAll(ofContainer name: String) throws -> [DirectoryChange] {
        try removeAll("container", name, order: "environment, role, account")
    }

    private func removeAll(_ column: String, _ value: String, order: String) throws -> [DirectoryChange] {
        let members = try members("WHERE \(column) = ? ORDER BY \(order)", [value])
        try db.run("DELETE FROM role_member WHERE \(column) = ?", [value])
        return members.map { .roleMemberRemoved($0) }
    }

    func members(_ condition: String = "", _ arguments: StatementArguments = []) throws -> [RoleMember] {
        try Row.fetchAll(
            db, sql: "SELECT container, environment, role, account FROM role_member \(condition)", arguments: arguments
        ).map { row in
            let environment = try row.environment(at: 1)
            return try RoleMember(
                container: row.decode(atIndex: 0), environment: environment, role: row.decode(atIndex: 2),
                accountID: row.decode(atIndex: 3))
        }
    }
}

/// The rows of servers' public keys.
struct ServerKeyRows {
    let db: Database

    func key(_ id: String) throws -> ServerKey? { try db.message("SELECT body FROM server_key WHERE id = ?", [id]) }

    func create(_ key: ServerKey, at level: FeatureLevel) throws -> [DirectoryChange] {
        if level >= .boundedTokens { try requireRoom(for: key) }
        try ContainerRows(db: db).require(key.container)
        try AccountRows(db: db).require(key.accountID)
        guard key.publicKey.count == ServerKey.publicKeyBytes, key.publicKey.first == 4 else {
            throw ServiceError(
                .badRequest,
                "the public key is not an uncompressed point of 65 bytes: make the key with `openssl ecparam -name prime256v1`"
            )
        }
        if let known = try self.key(key.id) {
            if known == key { return [] }
            throw ServiceError(.exists, "a server key with this id exists already")
        }
        try db.run(
            "INSERT INTO server_key (id, account, body) VALUES (?, ?, ?)", [key.id, key.accountID, key.body])
        return [.serverKey(key)]
    }

    /// - Throws: `BAD_REQUEST` where the container has as many other keys as it may.
    private func requireRoom(for key: ServerKey) throws {
        let named: [ServerKey] = try db.messages(
            "SELECT body FROM server_key WHERE instr(body, ?) > 0", [Data(key.container.utf8)])
        let others = named.filter { $0.id != key.id && $0.container == key.container }
        if others.count >= ServerKey.containerMax {
            throw ContainerRows.isFull(
                key.container, "\(others.count) server keys", of: "server", list: "zonekeeper key list")
        }
    }

    func change(_ id: String, _ change: (inout ServerKey) -> Void) throws -> [DirectoryChange] {
        guard let old = try key(id) else { throw unknown(id) }
        var key = old
        change(&key)
        if key == old { return [] }
        try db.run("UPDATE server_key SET body = ? WHERE id = ?", [key.body, id])
        try db.checkOneRow("server key \(id)")
        return [.serverKey(key)]
    }

    func revoke(_ id: String) throws -> [DirectoryChange] {
        try db.run("DELETE FROM server_key WHERE id = ?", [id])
        guard db.changesCount > 0 else { throw unknown(id) }
        return [.serverKeyRemoved(id: id)]
    }

    func removeAll(of accountID: String) throws -> [DirectoryChange] {
        let ids = try String.fetchAll(
            db, sql: "SELECT id FROM server_key WHERE account = ? ORDER BY id", arguments: [accountID])
        try db.run("DELETE FROM server_key WHERE account = ?", [accountID])
        try Invariant.check(
            db.changesCount == ids.count,
            "account \(accountID) has \(ids.count) server keys, and \(db.changesCount) were removed")
        return ids.map { .serverKeyRemoved(id: $0) }
    }

    private func unknown(_ id: String) -> ServiceError {
        ServiceError(.notFound, "no server key '\(AuditText.id(id))': `zonekeeper key list` shows those that exist")
    }
}

/// What snapshots know of sessions: how many users containers have, which are accounts with a session there, of either
/// kind, and when the first session expires. It is read at the start, and kept by what apply says of each change.
struct SessionTotals {
    let db: Database

    /// Whether the account has a session of either kind in the container.
    private func hasSession(_ accountID: String, in container: String) throws -> Bool {
        if try hasSignedIn(accountID, in: container) { return true }
        let bodies = try Data.fetchCursor(
            db, sql: "SELECT body FROM token WHERE account = ? AND sign_in IS NULL", arguments: [accountID])
        while let body = try bodies.next() {
            if try Token(decoding: [UInt8](body)).kind.container == container { return true }
        }
        return false
    }

    private func hasSignedIn(_ accountID: String, in container: String) throws -> Bool {
        try db.has("SELECT 1 FROM token WHERE account = ? AND sign_in = ? LIMIT 1", [accountID, container])
    }

    /// What a session that is about to be written changes of its container's count of users.
    func changes(byAdding token: Token) throws -> [DirectoryChange] {
        guard let accountID = token.kind.accountID, try !hasSession(accountID, in: token.kind.container)
        else { return [] }
        return [.userCount(container: token.kind.container, by: 1)]
    }

    /// That tokens were removed, and what that changes of the totals.
    func changes(byRemoving tokens: [Token]) throws -> [DirectoryChange] {
        if tokens.isEmpty { return [] }
        var changes = tokens.map { DirectoryChange.tokenRemoved($0) }
        var seen: Set<[String]> = []
        for token in tokens {
            guard let accountID = token.kind.accountID, seen.insert([accountID, token.kind.container]).inserted,
                try !hasSession(accountID, in: token.kind.container)
            else { continue }
            changes.append(.userCount(container: token.kind.container, by: -1))
        }
        return try changes + [firstExpiry]
    }

    /// Uses the index, so that expired sessions are found without a scan.
    var firstExpiry: DirectoryChange {
        get throws {
            .firstExpiry(try Int64.fetchOne(db, sql: "SELECT MIN(expires) FROM token WHERE expires IS NOT NULL"))
        }
    }

    /// How many accounts have a session in each container: a walk over an index, and over the sessions that
    /// administrators made.
    var userCounts: [String: Int] {
        get throws {
            var counts: [String: Int] = [:]
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT sign_in, COUNT(*) FROM (
                        SELECT DISTINCT account, sign_in FROM token WHERE account IS NOT NULL AND sign_in IS NOT NULL)
                    GROUP BY sign_in
                    """)
            while let row = try rows.next() { try counts[row.decode(atIndex: 0)] = row.decode(atIndex: 1) }
            var seen: Set<[String]> = []
            let bodies = try Data.fetchCursor(
                db, sql: "SELECT body FROM token WHERE account IS NOT NULL AND sign_in IS NULL")
            while let body = try bodies.next() {
                let kind = try Token(decoding: [UInt8](body)).kind
                guard let accountID = kind.accountID, seen.insert([accountID, kind.container]).inserted else {
                    continue
                }
                if try !hasSignedIn(accountID, in: kind.container) { counts[kind.container, default: 0] += 1 }
            }
            return counts
        }
    }
}
