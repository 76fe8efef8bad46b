import RecordModel

/// All that a snapshot of the directory holds.
struct DirectoryContents: Equatable, Sendable {
    var map: ClusterMap?
    var containers: [String: Int64] = [:]
    var schemas: [SchemaKey: VersionedSchema] = [:]
    var containerKeys: [String: [ContainerKey]] = [:]
    var accounts = AccountTable()
    var lockouts = PartitionedDictionary<String, Lockout>()
    var tokens = TokenTable()
    var serverKeys: [String: ServerKey] = [:]
    var roles = RoleTable()
    var limits = LimitTable()
    /// Sorted by name.
    var providers: [IdentityProvider] = []
    var isSignUpOpen = false
    var secret: ClusterSecret?
    var audit = Dictionary(uniqueKeysWithValues: AuditLog.allCases.map { ($0, AuditBounds()) })

    mutating func take(_ change: DirectoryChange) {
        switch change {
        case .map(let new): map = new
        case .container(let name, let created, let schema):
            containers[name] = created
            for environment in Environment.allCases {
                schemas[SchemaKey(container: name, environment: environment)] = schema
            }
        case .schema(let key, let schema): schemas[key] = schema
        case .containerKey(let container, let key): containerKeys[container, default: []].append(key)
        case .account(let account): accounts.take(account)
        case .accountRemoved(let account): accounts.remove(account)
        case .lockout(let accountID, let lockout): lockouts[accountID] = lockout
        case .token(let token): tokens.take(token)
        case .tokenRemoved(let token): tokens.remove(token)
        case .firstExpiry(let time): tokens.firstExpiry = time
        case .serverKey(let key): serverKeys[key.id] = key
        case .serverKeyRemoved(let id): serverKeys[id] = nil
        case .roleMember(let member): roles.take(member)
        case .roleMemberRemoved(let member): roles.remove(member)
        case .limits(let container, let overrides): limits.take(overrides, of: container)
        case .provider(let provider): take(provider)
        case .providerRemoved(let name): providers.removeAll { $0.$name == Bytewise(name) }
        case .signUp(let isOpen): isSignUpOpen = isOpen
        case .secret(let new): secret = new
        case .audit(let log, let bounds): audit[log] = bounds
        }
    }

    private mutating func take(_ provider: IdentityProvider) {
        providers.removeAll { $0.$name == provider.$name }
        providers.append(provider)
        providers.sort { $0.$name < $1.$name }
    }
}

/// Accounts by everything they are looked up by.
struct AccountTable: Equatable, Sendable {
    private(set) var byName = PartitionedDictionary<Bytewise, Account>()
    private var namesByID = PartitionedDictionary<String, Bytewise>()
    private var namesByEmail = PartitionedDictionary<Bytewise, Bytewise>()
    private var namesByIdentity = PartitionedDictionary<ExternalIdentity, Bytewise>()
    private var userNames = UserNames()

    func account(named name: String) -> Account? { byName[Bytewise(Account.comparable(name: name))] }

    func account(withID id: String) -> Account? { namesByID[id].flatMap { byName[$0] } }

    func account(withEmail email: some StringProtocol) -> Account? {
        namesByEmail[Bytewise(Account.comparable(email: email))].flatMap { byName[$0] }
    }

    func account(withIdentity identity: ExternalIdentity) -> Account? {
        namesByIdentity[identity].flatMap { byName[$0] }
    }

    func account(withUserRecordName name: String, in container: String) -> Account? {
        userNames.accountID(of: name, in: container).flatMap { account(withID: $0) }
    }

    /// A new account, or a known one's new values.
    mutating func take(_ account: Account) {
        let name = account.$name
        if let old = byName[name] { forgetAddress(of: old) }
        byName[name] = account
        if let email = account.email { namesByEmail[Bytewise(Account.comparable(email: email))] = name }
        if let identity = account.identity { namesByIdentity[identity] = name }
        if namesByID[account.id] == nil { userNames.add(accountID: account.id) }
        namesByID[account.id] = name
    }

    mutating func remove(_ account: Account) {
        if let old = byName[account.$name] { forgetAddress(of: old) }
        byName[account.$name] = nil
        namesByID[account.id] = nil
        userNames.compact(ifAbove: 2 * namesByID.count + 1_024) { namesByID.keys }
    }

    private mutating func forgetAddress(of account: Account) {
        if let email = account.email { namesByEmail[Bytewise(Account.comparable(email: email))] = nil }
        if let identity = account.identity { namesByIdentity[identity] = nil }
    }

    /// `userNames` follows from the accounts, and from what was looked up.
    static func == (left: Self, right: Self) -> Bool {
        left.byName == right.byName && left.namesByID == right.namesByID && left.namesByEmail == right.namesByEmail
            && left.namesByIdentity == right.namesByIdentity
    }
}
