import Directory
import KeyValueStore
import RecordModel
import Wire

/// A container that one client alone administers, with accounts, tokens and a team of its own: what the directory must
/// say of it.
struct Office: Sendable {
    let container: String
    /// That of all names and ids.
    let prefix: String
    var isMade = false
    /// Whether it is soon deleted and purged.
    var isShortLived = false
    /// When it was deleted, in milliseconds since 1970; nil where it was not.
    var deleted: Int64?
    /// Whether all that it has is being removed.
    var isPurged = false
    /// By id.
    var accounts: [String: Account] = [:]
    /// By the account's id; what failed since the last success.
    var failures: [String: UInt64] = [:]
    /// Of all kinds, by id.
    var tokens: [String: Token] = [:]
    var keys: [String: ServerKey] = [:]
    var members: Set<RoleMember> = []
    var schemas: [Environment: VersionedSchema] = [
        .development: VersionedSchema(version: 1, schema: .initial),
        .production: VersionedSchema(version: 1, schema: .initial),
    ]
    /// The versions that are kept, with the roles of each.
    var revisions: [Environment: [UInt64: [String]]] = [:]
    var limits: [ContainerLimit: Int64] = [:]
    /// How often a limit was changed.
    var limitChanges: UInt64 = 0
    var details: ContainerDetails
    /// By name.
    var team: [String: Administrator] = [:]
    var providers: [String: IdentityProvider] = [:]
    /// Secrets and ids of accounts, tokens and keys that there were at some time.
    var secrets: [String: String] = [:]
    var everyID: Set<String> = []
    /// The version of a key in a store of its own; nil where there is none.
    var keeper: ChangeTag?
    /// Where the feed of that store goes on.
    var keeperToken: String?
    /// Tokens that requests came with: nodes note when.
    var used: Set<String> = []
    /// Accounts whose failures nodes dated.
    var failedAtNodes: Set<String> = []

    init(client: Int, serial: Int) {
        container = "iCloud.office\(client)x\(serial)"
        prefix = "o\(client)x\(serial)-"
        details = ContainerDetails(name: container)
    }

    var store: StoreKey { StoreKey(container: container, environment: .development, user: "_keeper") }

    func account(named name: String) -> Account? { accounts.values.first { $0.name == name } }

    func key(_ environment: Environment) -> SchemaKey { SchemaKey(container: container, environment: environment) }

    func roles(of account: String, in environment: Environment) -> [String] {
        members.filter { $0.accountID == account && $0.environment == environment }.map(\.role).sorted()
    }

    /// How many accounts have a session.
    var userCount: Int { Set(tokens.values.compactMap(\.kind.accountID)).count }

    mutating func add(_ token: Token) {
        tokens[token.id] = token
        everyID.insert(token.id)
    }

    mutating func removeTokens(where isGone: (Token) -> Bool) { tokens = tokens.filter { !isGone($1) } }

    mutating func set(_ schema: Schema, in environment: Environment, isReset: Bool = false) {
        guard let old = schemas[environment] else { return }
        var new = VersionedSchema(version: old.version + 1, schema: schema, generation: old.generation)
        if isReset { new.generation += 1 }
        schemas[environment] = new
        revisions[environment, default: [:]][old.version] = old.schema.roles
        revisions[environment, default: [:]][new.version] = schema.roles
    }
}

/// Compares what a node says of an office with what it must say.
struct OfficeInspection {
    let office: Office
    /// The first thing that is wrong.
    private(set) var fault: String?

    init(_ office: Office) { self.office = office }

    private mutating func check<Value: Equatable>(_ what: String, _ seen: Value, _ wanted: Value) {
        if fault == nil, seen != wanted { fault = "\(what) is \(seen), and must be \(wanted)" }
    }

    private func compared(_ token: Token?) -> Token? {
        var token = token
        if let id = token?.id, office.used.contains(id) { token?.lastUsed = nil }
        return token
    }

    /// Looks at what every request of a node goes by.
    mutating func look(at directory: DirectorySnapshot, own limit: ContainerLimit) {
        let name = office.container
        check("that the container is there", directory.hasContainer(name), office.deleted == nil)
        check("its deletion", directory.deletions[name]?.deleted, office.deleted)
        check("its note", directory.details(of: name), office.details)
        check("how many users it has", directory.userCount(of: name), office.userCount)
        check("its limit's own value", directory.overrides(of: name), office.limits)
        check(
            "its limit", directory.limits(of: name)[limit],
            office.limits[limit] ?? directory.limit(limit, of: nil).value)
        check("a limit's source", directory.limit(limit, of: name).source == .container, office.limits[limit] != nil)
        for environment in Environment.allCases {
            guard let schema = office.schemas[environment] else { continue }
            let seen = directory.schema(office.key(environment))
            check("a schema's version", seen.version, schema.version)
            check("a schema's generation", seen.generation, schema.generation)
            check("a schema's roles", seen.schema.roles, schema.schema.roles)
            check("a schema's types", seen.schema.types.map(\.name), schema.schema.types.map(\.name))
            check(
                "who has roles", directory.members(container: name, environment: environment),
                office.members.filter { $0.environment == environment }.sorted())
            for account in office.accounts.keys.sorted() {
                check(
                    "the roles of \(account)",
                    directory.roles(of: account, container: name, environment: environment),
                    office.roles(of: account, in: environment))
            }
        }
        lookAtCredentials(in: directory)
    }

    private mutating func lookAtCredentials(in directory: DirectorySnapshot) {
        for id in office.everyID.sorted() {
            let token = office.tokens[id]
            let isHeld = token?.kind.accountID == nil
            check("token \(id)", compared(directory.token(withID: id)), isHeld ? compared(token) : nil)
            if let secret = office.secrets[id] {
                check("the token of a secret", directory.token(withSecret: secret)?.id, isHeld ? token?.id : nil)
            }
            check("key \(id)", directory.serverKey(id: id), office.keys[id])
        }
        check(
            "the keys", Set(directory.serverKeys.filter { $0.container == office.container }.map(\.id)),
            Set(office.keys.keys))
        let acting = directory.acting.map(\.token).filter { $0.kind.container == office.container }
        check(
            "times as a user", Set(acting.map(\.id)),
            Set(office.tokens.values.filter { $0.kind.filterKind == .acting }.map(\.id)))
        for name in (0..<3).map({ "\(office.prefix)boss\($0)" }) {
            let own = office.tokens.values.first { $0.kind == .administrator(name: name) }
            check("administrator \(name)", directory.administrator(named: name), office.team[name])
            check("the token of \(name)", directory.administratorToken(of: name)?.id, own?.id)
            check(
                "the role of \(name)", directory.teamMember(named: name)?.role,
                office.team[name]?.role ?? (own == nil ? nil : .admin))
        }
        let providers = directory.providers.filter { $0.name.hasPrefix(office.prefix) }
        check("providers", providers, office.providers.values.sorted { $0.name < $1.name })
    }

    /// Looks at what is in a node's tables alone.
    mutating func look(at rows: AccountReader, withLockouts: Bool, limit: Int) throws {
        try lookAtAccounts(in: rows, withLockouts: withLockouts)
        for id in office.everyID.sorted() {
            check("token \(id) in the table", compared(try rows.token(withID: id)), compared(office.tokens[id]))
        }
        for filter in [
            TokenFilter(container: office.container), TokenFilter(container: office.container, kinds: [.api]),
        ] {
            var (seen, position): ([String], TokenPosition?) = ([], nil)
            repeat {
                let page = try rows.tokens(filter, after: position, limit: limit)
                check("a page's length", page.tokens.count <= limit, true)
                seen += page.tokens.map(\.id)
                position = page.next
            } while position != nil
            let wanted = office.tokens.values.filter { token in
                token.kind.container == office.container && (filter.kinds?.contains(token.kind.filterKind) ?? true)
            }.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
            check("the list of tokens", seen, wanted.map(\.id))
        }
        for environment in Environment.allCases {
            let history = try rows.schemaHistory(of: office.key(environment), limit: 100)
            let wanted = (office.revisions[environment] ?? [:]).sorted { $0.key > $1.key }
            check("a schema's history", history.map(\.version), wanted.map(\.key))
            check("its roles", history.map(\.schema.roles), wanted.map(\.value))
        }
    }

    private mutating func lookAtAccounts(in rows: AccountReader, withLockouts: Bool) throws {
        for id in office.everyID.sorted() {
            let account = office.accounts[id]
            check("account \(id)", try rows.account(withID: id)?.encoded(), account?.encoded())
            if withLockouts {
                let lockout = try rows.lockout(of: id)
                check("the failed sign-ins of \(id)", lockout?.failures ?? 0, office.failures[id] ?? 0)
                let pause = lockout.map { $0.failures > 5 ? $0.lockedUntil - $0.lastFailure : 0 } ?? 0
                let failures = office.failures[id] ?? 0
                if !office.failedAtNodes.contains(id) {
                    check("the lock-out of \(id)", pause, failures > 5 ? min(1_000 << Int64(failures - 6), 900_000) : 0)
                }
            }
            guard let account else { continue }
            let key = TokenFilter(container: nil, kinds: nil, accountID: id)
            check(
                "the sessions of \(id)", Set(try rows.tokens(key, after: nil, limit: 100).tokens.map(\.id)),
                Set(office.tokens.values.filter { $0.kind.accountID == id }.map(\.id)))
            if let email = account.email {
                check("whose address it is", try rows.account(withEmail: email.uppercased())?.id, id)
            }
            if let identity = account.identity {
                check("whose identity it is", try rows.account(withIdentity: identity)?.id, id)
            }
        }
        for place in 0..<3 {
            let (name, email) = ("\(office.prefix)user\(place)", "mail\(place)@\(office.prefix)")
            check("user \(name)", try rows.account(named: name)?.id, office.account(named: name)?.id)
            let owner = office.accounts.values.first { $0.email?.lowercased() == email }
            check("the user of \(email)", try rows.account(withEmail: email)?.id, owner?.id)
        }
        let names = try rows.accounts(after: office.prefix, limit: office.accounts.count + 1).map(\.name)
            .filter { $0.hasPrefix(office.prefix) }
        check("the list of users", names, office.accounts.values.map(\.name).sorted())
    }
}
