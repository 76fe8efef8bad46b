import RecordModel

/// Tokens of every kind, by hash and by id, and how many users each container has.
struct TokenTable: Equatable, Sendable {
    private(set) var byHash = PartitionedDictionary<[UInt8], Token>()
    private var hashesByID = PartitionedDictionary<String, [UInt8]>()
    /// By container, then account's id: the number of its sessions, never 0.
    private var sessions: [String: PartitionedDictionary<String, Int>] = [:]
    /// When the first token expires; nil if none does.
    var firstExpiry: Int64?

    func token(withID id: String) -> Token? { hashesByID[id].flatMap { byHash[$0] } }

    func userCount(of container: String) -> Int { sessions[container]?.count ?? 0 }

    mutating func take(_ token: Token) {
        byHash[token.secretHash] = token
        hashesByID[token.id] = token.secretHash
        if let accountID = token.kind.accountID { count(1, of: accountID, in: token.kind.container) }
        if let expires = token.kind.expires { firstExpiry = min(firstExpiry ?? .max, expires) }
    }

    mutating func remove(_ token: Token) {
        guard byHash[token.secretHash] != nil else { return }
        byHash[token.secretHash] = nil
        hashesByID[token.id] = nil
        if let accountID = token.kind.accountID { count(-1, of: accountID, in: token.kind.container) }
    }

    private mutating func count(_ difference: Int, of accountID: String, in container: String) {
        var counts = sessions.removeValue(forKey: container) ?? PartitionedDictionary()
        let count = (counts[accountID] ?? 0) + difference
        precondition(count >= 0, "a session of container '\(container)' was not counted")
        counts[accountID] = count == 0 ? nil : count
        if !counts.isEmpty { sessions[container] = counts }
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
