import RecordModel

/// All that a snapshot of the directory holds. Accounts, lock-outs and sessions are rows only.
struct DirectoryContents: Equatable, Sendable {
    var map: ClusterMap?
    var containers: [String: Int64] = [:]
    var deletions: [String: ContainerDeletion] = [:]
    /// By name; never empty ones.
    var containerDetails: [String: ContainerDetails] = [:]
    var schemas: [SchemaKey: VersionedSchema] = [:]
    var containerKeys: [String: [ContainerKey]] = [:]
    var tokens = TokenTable()
    /// Accounts with a session, by container; never 0.
    var userCounts: [String: Int] = [:]
    /// When the first session expires; nil if none does.
    var firstExpiry: Int64?
    var serverKeys: [String: ServerKey] = [:]
    var roles = RoleTable()
    var limits = LimitTable()
    /// Sorted by name.
    var providers: [IdentityProvider] = []
    var webhooks = WebhookTable()
    var isSignUpOpen = false
    var secret: ClusterSecret?
    /// By name.
    var administrators: [String: Administrator] = [:]
    var audit = Dictionary(uniqueKeysWithValues: AuditLog.allCases.map { ($0, AuditBounds()) })

    mutating func take(_ change: DirectoryChange) {
        switch change {
        case .map(let new): map = new
        case .container(let name, let created, let schema):
            containers[name] = created
            for environment in Environment.allCases {
                schemas[SchemaKey(container: name, environment: environment)] = schema
            }
        case .containerDeleted(let deletion):
            containers[deletion.name] = nil
            deletions[deletion.name] = deletion
        case .containerRestored(let name): containers[name] = deletions.removeValue(forKey: name)?.created
        case .containerRemoved(let name): forget(name)
        case .schema(let key, let schema): schemas[key] = schema
        case .containerKey(let container, let key): containerKeys[container, default: []].append(key)
        case .accountAdded, .accountChanged: break
        case .token(let token): tokens.take(token)
        case .tokenRemoved(let token): tokens.remove(token)
        case .userCount(let container, let difference): count(difference, in: container)
        case .firstExpiry(let time): firstExpiry = time
        case .serverKey(let key): serverKeys[key.id] = key
        case .serverKeyRemoved(let id): serverKeys[id] = nil
        case .roleMember(let member): roles.take(member)
        case .roleMemberRemoved(let member): roles.remove(member)
        case .limits(let container, let overrides): limits.take(overrides, of: container)
        case .provider(let provider): take(provider)
        case .providerRemoved(let name): providers.removeAll { $0.$name == Bytewise(name) }
        case .signUp(let isOpen): isSignUpOpen = isOpen
        case .webhook(let webhook): webhooks.take(webhook)
        case .webhookRemoved(let webhook): webhooks.remove(webhook)
        case .containerDetails(let details): containerDetails[details.name] = details.isEmpty ? nil : details
        case .secret(let new): secret = new
        case .administrators(let all): administrators = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })
        case .audit(let log, let bounds): audit[log] = bounds
        }
    }

    private mutating func forget(_ container: String) {
        deletions[container] = nil
        containerDetails[container] = nil
        containerKeys[container] = nil
        for environment in Environment.allCases {
            schemas[SchemaKey(container: container, environment: environment)] = nil
        }
    }

    private mutating func count(_ difference: Int, in container: String) {
        let count = (userCounts[container] ?? 0) + difference
        precondition(count >= 0, "container '\(container)' has \(count) users")
        userCounts[container] = count == 0 ? nil : count
    }

    private mutating func take(_ provider: IdentityProvider) {
        providers.removeAll { $0.$name == provider.$name }
        providers.append(provider)
        providers.sort { $0.$name < $1.$name }
    }
}

/// The tokens of apps and administrators, by hash and by id. Sessions are not among them.
struct TokenTable: Equatable, Sendable {
    private(set) var byHash: [[UInt8]: Token] = [:]
    private var hashesByID: [String: [UInt8]] = [:]

    func token(withID id: String) -> Token? { hashesByID[id].flatMap { byHash[$0] } }

    mutating func take(_ token: Token) {
        precondition(token.kind.accountID == nil, "a session is no token of the snapshot")
        byHash[token.secretHash] = token
        hashesByID[token.id] = token.secretHash
    }

    mutating func remove(_ token: Token) {
        guard hashesByID[token.id] != nil else { return }
        byHash[token.secretHash] = nil
        hashesByID[token.id] = nil
    }
}

/// Who has which custom roles.
struct RoleTable: Equatable, Sendable {
    /// By environment, then account's id; sorted, never empty.
    private var roles: [SchemaKey: [String: [String]]] = [:]

    func roles(of accountID: String, _ key: SchemaKey) -> [String] { roles[key]?[accountID] ?? [] }

    func members(of key: SchemaKey) -> [RoleMember] {
        (roles[key] ?? [:]).flatMap { accountID, roles in
            roles.map {
                RoleMember(container: key.container, environment: key.environment, role: $0, accountID: accountID)
            }
        }.sorted()
    }

    mutating func take(_ member: RoleMember) {
        let key = SchemaKey(container: member.container, environment: member.environment)
        var list = roles(of: member.accountID, key)
        if list.contains(where: { Bytewise($0) == member.$role }) { return }
        list.append(member.role)
        roles[key, default: [:]][member.accountID] = list.sorted()
    }

    mutating func remove(_ member: RoleMember) {
        let key = SchemaKey(container: member.container, environment: member.environment)
        let list = roles(of: member.accountID, key).filter { Bytewise($0) != member.$role }
        roles[key]?[member.accountID] = list.isEmpty ? nil : list
        if roles[key]?.isEmpty == true { roles[key] = nil }
    }
}

/// What was set, and what follows from it, made when it is set so that requests need only look it up.
struct LimitTable: Equatable, Sendable {
    private var cluster = LimitOverrides()
    private var containers: [String: LimitOverrides] = [:]
    /// Of containers without values of their own.
    private var standard = ContainerLimits()
    private var effective: [String: ContainerLimits] = [:]

    func limits(of container: String) -> ContainerLimits { effective[container] ?? standard }

    func epoch(of container: String) -> UInt64 { cluster.epoch + (containers[container]?.epoch ?? 0) }

    func overrides(of container: String?) -> LimitOverrides {
        guard let container else { return cluster }
        return containers[container] ?? LimitOverrides()
    }

    mutating func take(_ overrides: LimitOverrides, of container: String?) {
        if let container {
            containers[container] = overrides
            effective[container] = Self.limits([cluster, overrides])
        } else {
            cluster = overrides
            standard = Self.limits([cluster])
            effective = containers.mapValues { Self.limits([cluster, $0]) }
        }
    }

    /// Later ones count before earlier ones.
    private static func limits(_ overrides: [LimitOverrides]) -> ContainerLimits {
        var limits = ContainerLimits()
        for (limit, value) in overrides.flatMap(\.values) { limits[limit] = value }
        return limits
    }
}
