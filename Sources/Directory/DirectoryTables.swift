import Foundation
package import GRDB
package import RecordModel
import Wire

/// The directory's state machine: rows in group 0's database, each with the value's binary form as its body. Apply is a
/// pure function of rows and command; only I/O errors are thrown.
package enum DirectoryTables {
    /// The names of the tables, for hashing them whole; all but the audit logs, which are long and have hashes
    /// of their own (`auditTip`).
    package static let all = [
        "account", "audit_base", "audit_failures", "container", "container_key", "limits", "lockout", "map", "provider",
        "role_member",
        "schema", "schema_history", "server_key", "settings", "token", "webhook",
    ]

    package static func create(in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE map (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL) STRICT;
                CREATE TABLE container (name TEXT PRIMARY KEY, created INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE schema (
                    container TEXT NOT NULL, environment TEXT NOT NULL, version INTEGER NOT NULL,
                    generation INTEGER NOT NULL, body BLOB NOT NULL,
                    PRIMARY KEY (container, environment)) STRICT, WITHOUT ROWID;
                CREATE TABLE container_key (
                    container TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL,
                    PRIMARY KEY (container, number)) STRICT, WITHOUT ROWID;
                CREATE TABLE account (
                    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, email TEXT UNIQUE, identity BLOB UNIQUE,
                    body BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE lockout (account TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE token (
                    id TEXT PRIMARY KEY, account TEXT, sign_in TEXT, created INTEGER NOT NULL,
                    secret_hash BLOB NOT NULL UNIQUE, expires INTEGER, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE INDEX token_account ON token (account, sign_in, created);
                CREATE INDEX token_expires ON token (expires) WHERE expires IS NOT NULL;
                CREATE INDEX token_created ON token (created, id);
                CREATE TABLE server_key (
                    id TEXT PRIMARY KEY, account TEXT NOT NULL, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE INDEX server_key_account ON server_key (account); \(WebhookRows.table) \(SchemaHistory.table)
                CREATE TABLE role_member (
                    container TEXT NOT NULL, environment TEXT NOT NULL, role TEXT NOT NULL, account TEXT NOT NULL,
                    PRIMARY KEY (container, environment, role, account)) STRICT, WITHOUT ROWID;
                CREATE INDEX role_member_account ON role_member (account);
                CREATE TABLE limits (container TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE provider (name TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID;
                CREATE TABLE settings (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL) STRICT;
                CREATE TABLE audit (
                    sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, hash BLOB NOT NULL) STRICT;
                CREATE TABLE audit_base (
                    id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
                CREATE TABLE audit_failures (id INTEGER PRIMARY KEY CHECK (id = 1), body BLOB NOT NULL) STRICT;
                """)
    }

    /// Makes the index by which lists of tokens are read, in databases from before it: SQLite keeps it, so builds that
    /// do not know of it do no harm. And the tables of webhooks and of schemas' histories, which have no row before
    /// every node knows them.
    package static func upgrade(in db: Database) throws {
        try db.execute(
            sql: "CREATE INDEX IF NOT EXISTS token_created ON token (created, id);" + WebhookRows.table
                + SchemaHistory.table)
    }

    /// Applies one entry, writes what the audit log shall tell of it, and says what changed for the snapshots in
    /// memory. A refused command changes nothing but the audit log.
    /// - Parameter level: the feature level in force.
    package static func apply(
        _ entry: DirectoryEntry, at level: FeatureLevel = FeatureLevel.supported.upperBound, in db: Database
    ) throws -> (outcome: DirectoryOutcome, changes: [DirectoryChange]) {
        var result: (outcome: DirectoryOutcome, changes: [DirectoryChange]) = (.done(version: 0), [])
        if let command = entry.command {
            result = try apply(command, at: level, in: db)
            if level >= .administration {
                try SchemaHistory.keep(result.changes, of: command, by: entry.origin, in: db)
            }
        }
        let events = AuditedEvents(entry, result.outcome)
        result.changes += try appendAudit(events.changes, to: .changes, in: db)
        result.changes += try appendAudit(events.requestsWithinBudget(in: db), to: .requests, in: db)
        return result
    }

    /// Applies one command without a word in the audit log.
    package static func apply(
        _ command: DirectoryCommand, at level: FeatureLevel = FeatureLevel.supported.upperBound, in db: Database
    ) throws -> (outcome: DirectoryOutcome, changes: [DirectoryChange]) {
        do {
            let (version, changes) = try judged(command, at: level, in: db)
            return (.done(version: version), changes)
        } catch let error as ServiceError {
            return (.refused(error), [])
        }
    }

    /// What a command changes. Throws `ServiceError` where it is refused, which every replica does alike, and whatever
    /// this replica's disk does wrong.
    private static func judged(
        _ command: DirectoryCommand, at level: FeatureLevel, in db: Database
    ) throws -> (version: UInt64, changes: [DirectoryChange]) {
        switch command {
        case .setSchema(let key, let expectedVersion, let schema, _):
            let (version, change) = try setSchema(key, expectedVersion: expectedVersion, schema, at: level, in: db)
            return (version, [change])
        case .resetDevelopment(let container, let expectedVersion):
            let (version, change) = try resetDevelopment(container, expectedVersion: expectedVersion, at: level, in: db)
            return (version, [change])
        case .webhook(let command): return (0, try WebhookRows.apply(command, at: level, in: db))
        case .administration(let command): return (0, try AdministrationRows.apply(command, at: level, in: db))
        default: return (0, try changes(of: command, in: db))
        }
    }

    private static func changes(of command: DirectoryCommand, in db: Database) throws -> [DirectoryChange] {
        switch command {
        case .installMap(let map): try installMap(map, in: db)
        case .changeMap(let change): try changeMap(change, in: db)
        case .createContainer(let name, let time): try createContainer(name, time: time, in: db)
        case .setSchema, .resetDevelopment, .webhook, .administration:
            preconditionFailure("a command that asks for the level")
        case .addContainerKey(let container, let key): try addContainerKey(key, to: container, in: db)
        case .updateAccount(let name, let changes): try updateAccount(name, changes, in: db)
        case .createAccount(let account): try createAccount(account, in: db)
        case .deleteAccount(let name): try deleteAccount(named: name, in: db)
        case .setPassword(let name, let password, let endsSessions):
            try setPassword(password, ofAccount: name, endsSessions: endsSessions, in: db)
        case .createToken(let token): try createToken(token, in: db)
        case .beginSession(let token, let basis): try beginSession(token, basis, in: db)
        case .revokeToken(let id): try revokeToken(id, in: db)
        case .noteSignInFailure(let accountID, let time): try noteSignInFailure(accountID, time: time, in: db)
        case .createServerKey(let key): try createServerKey(key, in: db)
        case .revokeServerKey(let id): try revokeServerKey(id, in: db)
        case .addRoleMember(let member): try addRoleMember(member, in: db)
        case .removeRoleMember(let member): try removeRoleMember(member, in: db)
        case .setLimits(let container, let changes): try setLimits(of: container, changes, in: db)
        case .setIdentityProvider(let provider): try setProvider(provider, in: db)
        case .removeIdentityProvider(let name): try removeProvider(name, in: db)
        case .setSignUp(let isOpen): try setSignUp(isOpen: isOpen, in: db)
        case .endContainer(let name, let step): try end(name, step, in: db)
        case .console(let command): try apply(command, in: db)
        case .makeSecret(let key, let time): try makeSecret(key: key, time: time, in: db)
        case .purge(let time, let auditRecordsMax): try purge(time: time, auditRecordsMax: auditRecordsMax, in: db)
        }
    }
}
