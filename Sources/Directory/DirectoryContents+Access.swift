import RecordModel

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
