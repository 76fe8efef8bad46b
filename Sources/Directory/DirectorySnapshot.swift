import RecordModel

/// What the directory says, in memory: an immutable value that requests read without a lock.
package struct DirectorySnapshot: Sendable {
    /// Nil until the cluster's first command was applied here.
    package var map: ClusterMap?
    /// Creation times, in milliseconds since 1970, by container name.
    package var containers: [String: Int64] = [:]
    package var schemas: [SchemaKey: VersionedSchema] = [:]
    /// The data keys of containers that have any, ascending by number; the last one seals.
    package private(set) var containerKeys: [String: [ContainerKey]] = [:]
    package private(set) var accountsByName: [String: Account] = [:]
    package private(set) var tokensByHash: [[UInt8]: Token] = [:]
    private var namesByID: [String: String] = [:]
    private var namesByEmail: [String: String] = [:]
    private var userNames = UserNames()

    package init() {}

    package func token(withSecret secret: some StringProtocol) -> Token? {
        tokensByHash[Token.hash(ofSecret: secret)]
    }

    package func account(withID id: String) -> Account? {
        namesByID[id].flatMap { accountsByName[$0] }
    }

    /// The account with an address, however its letters are written.
    package func account(withEmail email: some StringProtocol) -> Account? {
        namesByEmail[Account.comparable(email: email)].flatMap { accountsByName[$0] }
    }

    /// The account that goes by a user record name in a container. The first look into a container hashes every account's id,
    /// once; later ones cost nothing of note.
    package func account(withUserRecordName name: String, in container: String) -> Account? {
        userNames.accountID(of: name, in: container).flatMap { account(withID: $0) }
    }

    /// The container's data keys, ascending by number; empty until something was sealed.
    package func keys(of container: String) -> [ContainerKey] { containerKeys[container] ?? [] }

    /// Takes over what a command changed.
    package mutating func take(_ change: DirectoryChange) {
        switch change {
        case .map(let new): map = new
        case .container(let name, let created, let schema):
            containers[name] = created
            for environment in Environment.allCases {
                schemas[SchemaKey(container: name, environment: environment)] = schema
            }
        case .schema(let key, let schema): schemas[key] = schema
        case .containerKey(let container, let key): containerKeys[container, default: []].append(key)
        case .account(let account): take(account)
        case .accountRemoved(let account): remove(account)
        case .token(let token): tokensByHash[token.secretHash] = token
        case .tokenRemoved(let token): tokensByHash[token.secretHash] = nil
        }
    }

    /// A new account, or a known one's new values.
    private mutating func take(_ account: Account) {
        if let email = accountsByName[account.name]?.email { namesByEmail[Account.comparable(email: email)] = nil }
        accountsByName[account.name] = account
        if let email = account.email { namesByEmail[Account.comparable(email: email)] = account.name }
        if namesByID.updateValue(account.name, forKey: account.id) == nil { userNames.add(accountID: account.id) }
    }

    private mutating func remove(_ account: Account) {
        accountsByName[account.name] = nil
        namesByID[account.id] = nil
        if let email = account.email { namesByEmail[Account.comparable(email: email)] = nil }
        userNames.compact(ifAbove: 2 * namesByID.count + 1_024) { Array(namesByID.keys) }
        for (hash, token) in tokensByHash {
            if case .session(_, account.id, _) = token.kind { tokensByHash[hash] = nil }
        }
    }
}

/// One change of the directory, as the snapshots in memory take it over.
package enum DirectoryChange: Hashable, Sendable {
    case map(ClusterMap)
    /// A new container, with the schema of both its environments.
    case container(name: String, created: Int64, VersionedSchema)
    case schema(SchemaKey, VersionedSchema)
    case containerKey(container: String, ContainerKey)
    /// A new account, or new values of one.
    case account(Account)
    case accountRemoved(Account)
    case token(Token)
    case tokenRemoved(Token)
}
