import Foundation
package import GRDB
package import RecordModel
import Wire

/// The directory's state machine: rows in group 0's database, each with the value's binary form as its body. Apply is a
/// pure function of rows and command; only I/O errors are thrown.
package enum DirectoryTables {
    /// The names of the tables, for hashing them whole; all but the audit logs, which are long and have hashes
    /// of their own (`AuditRows.tip`).
    package static let all = [
        "account", "audit_base", "audit_failures", "container", "container_key", "limits", "lockout", "map", "provider",
        "role_member",
        "schema", "schema_history", "server_key", "settings", "token", "webhook",
    ]

    /// Records and tokens that one `purge` removes at most, of each.
    static let purgedMax = 500

    /// Creates the tables and indexes in a new database; the tables of `AuditLog.requests` come with its first record.
    /// - Throws: `DatabaseError` where a table exists already, or on an I/O error.
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
        result.changes += try AuditRows(of: .changes, in: db).append(events.changes)
        result.changes += try AuditRows(of: .requests, in: db).append(
            events.requestsWithinBudget(at: level, in: db))
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
            try SchemaRow(key: key, db: db).set(schema, expectedVersion: expectedVersion, at: level)
        case .resetDevelopment(let container, let expectedVersion):
            try SchemaRow.reset(container, expectedVersion: expectedVersion, at: level, in: db)
        case .webhook(let command): (0, try WebhookRows(db: db).apply(command, at: level))
        case .administration(let command): (0, try apply(command, at: level, in: db))
        case .endContainer(let name, let step): (0, try ContainerRows(db: db).end(name, step, at: level))
        case .createToken(let token): (0, try TokenRows(db: db).create(token, at: level))
        case .createServerKey(let key): (0, try ServerKeyRows(db: db).create(key, at: level))
        default: (0, try changes(of: command, in: db))
        }
    }

    private static func changes(of command: DirectoryCommand, in db: Database) throws -> [DirectoryChange] {
        switch command {
        case .installMap(let map): try MapRow(db: db).install(map)
        case .changeMap(let change): try MapRow(db: db).change(change)
        case .createContainer(let name, let time): try ContainerRows(db: db).create(name, time: time)
        case .setSchema, .resetDevelopment, .webhook, .administration, .endContainer, .createToken, .createServerKey:
            preconditionFailure("a command that asks for the level")
        case .addContainerKey(let container, let key): try ContainerRows(db: db).add(key, to: container)
        case .updateAccount(let name, let changes): try AccountRows(db: db).update(name, changes)
        case .createAccount(let account): try AccountRows(db: db).create(account)
        case .deleteAccount(let name): try AccountRows(db: db).delete(named: name)
        case .setPassword(let name, let password, let endsSessions):
            try AccountRows(db: db).setPassword(password, ofAccount: name, endsSessions: endsSessions)
        case .beginSession(let token, let basis): try SignIns(db: db).begin(token, basis)
        case .revokeToken(let id): try TokenRows(db: db).revoke(id)
        case .noteSignInFailure(let accountID, let time):
            try AccountRows(db: db).noteSignInFailure(accountID, time: time)
        case .revokeServerKey(let id): try ServerKeyRows(db: db).revoke(id)
        case .addRoleMember(let member): try RoleRows(db: db).add(member)
        case .removeRoleMember(let member): try RoleRows(db: db).remove(member)
        case .setLimits(let container, let changes): try LimitRows(db: db).set(of: container, changes)
        case .setIdentityProvider(let provider): try ProviderRows(db: db).set(provider)
        case .removeIdentityProvider(let name): try ProviderRows(db: db).remove(name)
        case .setSignUp(let isOpen): try SettingsRow(db: db).setSignUp(isOpen: isOpen)
        case .console(let command): try apply(command, in: db)
        case .makeSecret(let key, let time): try SettingsRow(db: db).makeSecret(key: key, time: time)
        case .purge(let time, let auditRecordsMax): try purge(time: time, auditRecordsMax: auditRecordsMax, in: db)
        }
    }

    private static func apply(_ command: ConsoleCommand, in db: Database) throws -> [DirectoryChange] {
        let (administrators, tokens) = (Administrators(db: db), ConsoleTokens(db: db))
        return switch command {
        case .save(let administrator, let isNew): try administrators.save(administrator, isNew: isNew)
        case .remove(let name): try administrators.remove(name)
        case .setPassword(let name, let password, let session, let time):
            try administrators.setPassword(password, of: name, keeping: session, time: time)
        case .found(let administrator, let session): try administrators.found(administrator, session: session)
        case .makeLink(let token): try tokens.makeLink(token)
        case .beginSession(let token, let proof, let replaced):
            try tokens.beginSession(token, proof, replacing: replaced)
        case .noteFailure(let name, let time): try administrators.noteFailure(of: name, time: time)
        }
    }

    private static func apply(
        _ command: AdministrationCommand, at level: FeatureLevel, in db: Database
    ) throws -> [DirectoryChange] {
        guard level >= command.level else {
            throw ServiceError(.tryAgainLater, "this needs feature level \(command.level)", retryAfterSeconds: 1)
        }
        return switch command {
        case .beginActing(let token): try ConsoleTokens(db: db).beginActing(token)
        case .endActing(let token): try ConsoleTokens(db: db).endActing(token)
        case .describeContainer(let details): try ContainerRows(db: db).describe(details)
        case .changeToken(let id, let label, let origins):
            try TokenRows(db: db).change(id, label: label, origins: origins)
        case .changeKey(let id, let label): try ServerKeyRows(db: db).change(id) { $0.label = label }
        case .noteUses(let ids, let time): try TokenRows(db: db).noteUses(ids, time: time)
        case .unlock(let name): try AccountRows(db: db).unlock(name)
        case .makeToken(let token, let session): try ConsoleTokens(db: db).makeToken(token, in: session)
        case .changeAdministrator(let name, let role, let containers):
            try Administrators(db: db).change(name, role: role, containers: containers)
        }
    }

    private static func purge(time: Int64, auditRecordsMax: UInt64, in db: Database) throws -> [DirectoryChange] {
        try AuditLog.allCases.reduce(into: TokenRows(db: db).purge(time: time, countMax: purgedMax)) { changes, log in
            changes += try AuditRows(of: log, in: db).purge(recordsMax: auditRecordsMax, countMax: purgedMax)
        }
    }
}

extension Database {
    /// The message in the only column of a constant query's first row; nil without rows.
    func message<Message: WireDecodable>(_ sql: String, _ arguments: StatementArguments = []) throws -> Message? {
        try Data.fetchOne(cachedStatement(sql: sql), arguments: arguments).map { try Message(decoding: [UInt8]($0)) }
    }

    /// The messages in the only column of a constant query's rows.
    func messages<Message: WireDecodable>(_ sql: String, _ arguments: StatementArguments = []) throws -> [Message] {
        try Data.fetchAll(cachedStatement(sql: sql), arguments: arguments).map { try Message(decoding: [UInt8]($0)) }
    }

    /// Whether a constant query has a row.
    func has(_ sql: String, _ arguments: StatementArguments = []) throws -> Bool {
        try Row.fetchOne(cachedStatement(sql: sql), arguments: arguments) != nil
    }

    /// Runs a constant statement that gives no rows.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Makes sure that the statement before changed the row that it was for, and no other.
    func checkOneRow(_ what: @autoclosure () -> String) throws(InvariantViolation) {
        try Invariant.check(changesCount == 1, "\(what()): \(changesCount) rows changed")
    }
}

extension Row {
    /// A stored environment.
    func environment(at column: Int) throws -> Environment {
        guard let environment = Environment(rawValue: try decode(atIndex: column)) else {
            throw WireError.invalidValue(field: column + 1)
        }
        return environment
    }

    /// A stored message.
    func message<Message: WireDecodable>(at column: Int) throws -> Message {
        let body: Data = try decode(atIndex: column)
        return try Message(decoding: [UInt8](body))
    }
}

extension WireEncodable {
    /// The binary form, as a row has it.
    var body: Data { Data(encoded()) }
}

extension DirectoryTables {
    /// Everything but accounts, lock-outs and sessions, as a start reads it. An index of the sessions is walked for how
    /// many users containers have.
    /// - Throws: `WireError` for a row that no command wrote: the database is damaged.
    package static func snapshot(of db: Database) throws -> DirectorySnapshot {
        var snapshot = DirectorySnapshot()
        try readContainers(of: db, into: &snapshot)
        try readAccess(of: db, into: &snapshot)
        for row in try Row.fetchAll(db, sql: "SELECT container, body FROM limits") {
            snapshot.take(try .limits(container: row.decode(atIndex: 0), row.message(at: 1)))
        }
        let settings = try SettingsRow(db: db).settings
        snapshot.take(.limits(container: nil, settings.limits))
        snapshot.take(.signUp(isOpen: settings.isSignUpOpen))
        for deletion in settings.deletions { snapshot.take(.containerDeleted(deletion)) }
        if let secret = settings.secret { snapshot.take(.secret(secret)) }
        snapshot.take(.administrators(settings.administrators))
        for details in settings.containerDetails { snapshot.take(.containerDetails(details)) }
        for log in AuditLog.allCases { snapshot.take(.audit(log, try AuditRows(of: log, in: db).bounds)) }
        return snapshot
    }

    private static func readContainers(of db: Database, into snapshot: inout DirectorySnapshot) throws {
        if let map = try MapRow(db: db).installed { snapshot.take(.map(map)) }
        for row in try Row.fetchAll(db, sql: "SELECT name, created FROM container") {
            snapshot.take(
                try .container(
                    name: row.decode(atIndex: 0), created: row.decode(atIndex: 1),
                    VersionedSchema(version: 0, schema: Schema())))
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, environment, version, generation, body FROM schema") {
            let environment = try row.environment(at: 1)
            let schema = try VersionedSchema(
                version: row.decode(atIndex: 2), schema: row.message(at: 4), generation: row.decode(atIndex: 3))
            snapshot.take(.schema(SchemaKey(container: try row.decode(atIndex: 0), environment: environment), schema))
        }
        for row in try Row.fetchAll(db, sql: "SELECT container, body FROM container_key ORDER BY container, number") {
            snapshot.take(try .containerKey(container: row.decode(atIndex: 0), row.message(at: 1)))
        }
    }

    private static func readAccess(of db: Database, into snapshot: inout DirectorySnapshot) throws {
        try read("token", "WHERE account IS NULL", of: db, into: &snapshot) { .token($0) }
        let totals = SessionTotals(db: db)
        for (container, count) in try totals.userCounts {
            snapshot.take(.userCount(container: container, by: count))
        }
        snapshot.take(try totals.firstExpiry)
        try read("server_key", of: db, into: &snapshot) { .serverKey($0) }
        try read("provider", of: db, into: &snapshot) { .provider($0) }
        try read("webhook", of: db, into: &snapshot) { .webhook($0) }
        for member in try RoleRows(db: db).members() { snapshot.take(.roleMember(member)) }
    }

    private static func read<Value: WireDecodable>(
        _ table: String, _ condition: String = "", of db: Database, into snapshot: inout DirectorySnapshot,
        _ change: (Value) -> DirectoryChange
    ) throws {
        let bodies = try Data.fetchCursor(db, sql: "SELECT body FROM \(table) \(condition)")
        while let body = try bodies.next() { snapshot.take(change(try Value(decoding: [UInt8](body)))) }
    }
}

extension ClusterMap {
    /// The cluster's map as a directory's database has it; nil where it has none yet.
    package static func installed(in db: Database) throws -> ClusterMap? { try MapRow(db: db).installed }
}
