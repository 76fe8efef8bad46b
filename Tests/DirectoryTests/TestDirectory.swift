import Directory
import GRDB
import RecordModel
import Testing
import Wire

/// The directory's tables in memory.
struct TestDirectory {
    let database: DatabaseQueue

    init() throws {
        database = try DatabaseQueue()
        try database.write { try DirectoryTables.create(in: $0) }
    }

    /// A directory with container `app`, whose development has the role `editor`, the users ada (a1) and bob (a2), both
    /// with `password(0)`, and an API token.
    static func populated() throws -> TestDirectory {
        let directory = try TestDirectory()
        for command in [
            DirectoryCommand.createContainer(name: "app", time: 1),
            .setSchema(
                SchemaKey(container: "app", environment: .development), expectedVersion: 1, Schema(roles: ["editor"])),
            .createAccount(Account(id: "a1", name: "ada", created: 1, password: password(0))),
            .createAccount(Account(id: "a2", name: "bob", created: 2, password: password(0))),
            .createToken(apiToken(of: "app")),
        ] {
            #expect(try directory.refusal(of: command) == nil)
        }
        return directory
    }

    /// Applies a command by way of its bytes, as the log carries it.
    @discardableResult
    func apply(_ command: DirectoryCommand) throws -> (outcome: DirectoryOutcome, changes: [DirectoryChange]) {
        try apply(DirectoryEntry(command))
    }

    @discardableResult
    func apply(
        _ entry: DirectoryEntry, at level: FeatureLevel = FeatureLevel.supported.upperBound
    ) throws -> (outcome: DirectoryOutcome, changes: [DirectoryChange]) {
        let decoded = try DirectoryEntry(decoding: entry.encoded())
        #expect(decoded == entry)
        let result = try database.write { try DirectoryTables.apply(decoded, at: level, in: $0) }
        #expect(try DirectoryOutcome(decoding: result.outcome.encoded()) == result.outcome)
        return result
    }

    /// The code with which a command is refused; nil if it was done.
    func refusal(of command: DirectoryCommand) throws -> String? {
        let (outcome, changes) = try apply(command)
        guard case .refused(let error) = outcome else { return nil }
        #expect(changes.isEmpty)
        return error.code.rawValue
    }

    /// Whether a command was done and changed nothing.
    func isIdle(_ command: DirectoryCommand) throws -> Bool {
        let (outcome, changes) = try apply(command)
        return outcome == .done(version: 0) && changes.isEmpty
    }

    /// Signs a user of `populated` in by the password of that account.
    @discardableResult
    func begin(_ session: Token) throws -> (outcome: DirectoryOutcome, changes: [DirectoryChange]) {
        try apply(.beginSession(session, Self.basis))
    }

    /// What the sessions of `populated` rest on.
    static let basis = SignInBasis(.password(fingerprint: password(0).fingerprint), apiTokenID: "api-app")

    static func password(_ byte: UInt8) -> PasswordHash {
        PasswordHash(salt: [byte, 1], logN: 15, r: 8, p: 1, hash: [byte, 2])
    }

    /// An API token of a container.
    static func apiToken(of container: String) -> Token {
        Token(
            id: "api-\(container)", secretHash: Token.hash(ofSecret: "api of \(container)"),
            kind: .api(container: container, environment: .production, origins: [], callbackURL: nil), label: "",
            created: 1)
    }

    /// Asks about accounts.
    func read<Value>(_ question: (AccountReader) throws -> Value) throws -> Value {
        try database.read { try question(AccountReader($0)) }
    }

    func account(named name: String) throws -> Account? { try read { try $0.account(named: name) } }

    func account(withEmail email: String) throws -> Account? { try read { try $0.account(withEmail: email) } }

    func account(withIdentity identity: ExternalIdentity) throws -> Account? {
        try read { try $0.account(withIdentity: identity) }
    }

    func accounts() throws -> [Account] { try read { try $0.accounts(after: "", limit: .max) } }

    func lockout(of accountID: String) throws -> Lockout? { try read { try $0.lockout(of: accountID) } }

    func token(withID id: String) throws -> Token? { try read { try $0.token(withID: id) } }

    func session(_ key: SessionKey) throws -> Session? { try read { try $0.session(key) } }

    /// Tokens of every kind, oldest first.
    func tokens() throws -> [Token] {
        try read { try $0.tokens(TokenFilter(), after: nil, limit: 10_000).tokens }
    }

    func snapshot() throws -> DirectorySnapshot { try database.read { try DirectoryTables.snapshot(of: $0) } }

    /// A page of the audit log, by way of its bytes.
    func audit(_ log: AuditLog = .changes, after: UInt64 = 0, limit: UInt64 = 1_000) throws -> AuditPage {
        let read = try DirectoryRead(decoding: DirectoryRead.audit(log, after: after, limit: limit).encoded())
        #expect(read == .audit(log, after: after, limit: limit))
        let page = try database.read { try AuditRows(of: log, in: $0).page(after: after, limit: limit) }
        #expect(try AuditPage(decoding: page.encoded()) == page)
        return page
    }

    /// What a search of an audit log finds, by way of its bytes.
    func find(_ search: AuditSearch) throws -> AuditFindings {
        #expect(try DirectoryRead(decoding: DirectoryRead.search(search).encoded()) == .search(search))
        let findings = try database.read { try search.findings(in: $0) }
        #expect(try AuditFindings(decoding: findings.encoded()) == findings)
        return findings
    }
}
