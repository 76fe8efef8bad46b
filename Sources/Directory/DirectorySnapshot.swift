package import RecordModel

/// What the directory says, in memory: a value that requests read without a lock. A copy costs one retain. Accounts,
/// lock-outs and sessions, of which there may be any number, are rows only (`AccountReader`, decision 0015).
package struct DirectorySnapshot: Sendable {
    /// Unchecked: `contents` is changed by `take` alone, which makes sure before that nobody else holds the box.
    private final class Box: @unchecked Sendable {
        var contents: DirectoryContents

        init(_ contents: DirectoryContents) { self.contents = contents }
    }

    private var box: Box
    /// Grows with each change on this node: two snapshots of one node with the same version say the same.
    package var version: UInt64 = 0

    package init() { box = Box(DirectoryContents()) }

    /// Takes over what a command changed.
    package mutating func take(_ change: DirectoryChange) {
        if !isKnownUniquelyReferenced(&box) { box = Box(box.contents) }
        box.contents.take(change)
    }

    /// Nil until the cluster's first command was applied here.
    package var map: ClusterMap? { box.contents.map }
    /// Creation times, in milliseconds since 1970, by container name; deleted ones are not among them.
    package var containers: [String: Int64] { box.contents.containers }
    /// By container and environment; those of a deleted container stay until it is removed.
    package var schemas: [SchemaKey: VersionedSchema] { box.contents.schemas }
    /// Version 0 and empty where none was imported.
    package func schema(_ key: SchemaKey) -> VersionedSchema {
        schemas[key] ?? VersionedSchema(version: 0, schema: Schema())
    }
    /// The data keys of containers that have any, ascending by number; the last one seals.
    package var containerKeys: [String: [ContainerKey]] { box.contents.containerKeys }

    /// Containers that were deleted and are not purged yet, by name.
    package var deletions: [String: ContainerDeletion] { box.contents.deletions }

    /// What is said of a container.
    package func details(of container: String) -> ContainerDetails {
        box.contents.containerDetails[container] ?? ContainerDetails(name: container)
    }

    /// Whether there is a container of the name, which was not deleted.
    package func hasContainer(_ name: String) -> Bool { containers[name] != nil }

    /// - Throws: `NOT_FOUND` where there is no such container, or it was deleted.
    package func requireContainer(_ name: String) throws(ServiceError) {
        if hasContainer(name) { return }
        throw deletions[name]?.refusal
            ?? ServiceError(
                .notFound,
                "no container '\(name)': `zonekeeper container list` shows those that there are, and `zonekeeper container "
                    + "create \(name)` makes it", detail: .unknownContainer)
    }

    /// Nil until the directory has made it: within moments in a new cluster, and in an older one once all of its nodes
    /// run a build that knows it.
    package var secret: ClusterSecret? { box.contents.secret }

    /// The container's data keys, ascending by number; empty until something was sealed.
    package func keys(of container: String) -> [ContainerKey] { box.contents.containerKeys[container] ?? [] }
}

// Webhooks.
extension DirectorySnapshot {
    /// Sorted by name.
    package func webhooks(of key: SchemaKey) -> [Webhook] { box.contents.webhooks.webhooks(of: key) }

    /// Those of containers that live, in no order.
    package var webhooks: [Webhook] {
        box.contents.webhooks.keys.filter { containers[$0.container] != nil }.flatMap { webhooks(of: $0) }
    }
}

// Who may sign in, and how.
extension DirectorySnapshot {
    /// Sorted by name.
    package var providers: [IdentityProvider] { box.contents.providers }

    /// Whether anybody may make an account; no, until somebody says so.
    package var isSignUpOpen: Bool { box.contents.isSignUpOpen }
}

// Tokens, keys and roles.
extension DirectorySnapshot {
    /// The token of an app or an administrator with a secret.
    package func token(withSecret secret: some StringProtocol) -> Token? {
        box.contents.tokens.byHash[Token.hash(ofSecret: secret)]
    }

    /// The name of the administrator whose token has a secret; nil where no administrator has it.
    package func administrator(withSecret secret: some StringProtocol) -> String? {
        if case .administrator(let name)? = token(withSecret: secret)?.kind { name } else { nil }
    }

    /// The role and password of an administrator; nil for one who has a token only, and for a name that nobody has.
    package func administrator(named name: String) -> Administrator? { box.contents.administrators[name] }

    /// Somebody who administers, by name: also who has a token only, with the role that it gives; nil for a name that
    /// nobody has.
    package func teamMember(named name: String) -> Administrator? {
        if let known = administrator(named: name) { return known }
        return administratorToken(of: name).map { Administrator(name: name, role: .admin, created: $0.created) }
    }

    /// The token of an administrator, who has one at most.
    package func administratorToken(of name: String) -> Token? {
        box.contents.tokens.byHash.values.first { $0.kind == .administrator(name: name) }
    }

    /// Those who administer, sorted by name: also who has a token only, with the role that it gives.
    package var team: [Administrator] {
        var team = box.contents.administrators
        for token in box.contents.tokens.byHash.values {
            guard case .administrator(let name) = token.kind, team[name] == nil else { continue }
            team[name] = Administrator(name: name, role: .admin, created: token.created)
        }
        return team.values.sorted { $0.name < $1.name }
    }

    /// The token of an app or an administrator.
    package func token(withID id: String) -> Token? { box.contents.tokens.token(withID: id) }

    /// The times as a user that last or were not purged yet, each with its token, in no order.
    package var acting: [(token: Token, session: ActingSession)] {
        box.contents.tokens.byHash.values.compactMap { token in
            if case .acting(let session) = token.kind { (token, session) } else { nil }
        }
    }

    /// How many accounts have a session in the container, expired ones included until they are purged.
    package func userCount(of container: String) -> Int { box.contents.userCounts[container] ?? 0 }

    /// The server-to-server key with an id; nil where it was never made, or was revoked.
    package func serverKey(id: String) -> ServerKey? { box.contents.serverKeys[id] }

    /// Sorted by time of creation, then id.
    package var serverKeys: [ServerKey] {
        box.contents.serverKeys.values.sorted { ($0.created, $0.id) < ($1.created, $1.id) }
    }

    /// The custom roles of an account, sorted. A role that the schema does not have any more grants nothing.
    package func roles(of accountID: String, container: String, environment: Environment) -> [String] {
        box.contents.roles.roles(of: accountID, SchemaKey(container: container, environment: environment))
    }

    /// Sorted by role, then account's id.
    package func members(container: String, environment: Environment) -> [RoleMember] {
        box.contents.roles.members(of: SchemaKey(container: container, environment: environment))
    }
}

// Limits, and what waits to be purged.
extension DirectorySnapshot {
    /// What a container is held to.
    package func limits(of container: String) -> ContainerLimits { box.contents.limits.limits(of: container) }

    /// Grows whenever a limit that holds for the container is changed, for itself or for the cluster.
    package func limitsEpoch(of container: String) -> UInt64 { box.contents.limits.epoch(of: container) }

    /// What was set for a container, or, where it is nil, for each that has no value of its own.
    package func overrides(of container: String?) -> [ContainerLimit: Int64] {
        box.contents.limits.overrides(of: container).values
    }

    /// A limit of a container, or of the cluster for nil, and where it was set.
    package func limit(_ limit: ContainerLimit, of container: String?) -> (value: Int64, source: LimitSource) {
        if let container, let value = overrides(of: container)[limit] { return (value, .container) }
        return overrides(of: nil)[limit].map { ($0, .cluster) } ?? (limit.standard, .default)
    }

    /// Which records an audit log has; both bounds are 0 before its first record.
    package func auditBounds(of log: AuditLog) -> AuditBounds { box.contents.audit[log] ?? AuditBounds() }

    /// Whether there is enough for a `purge` to remove. Expired tokens are collected for a minute, so that many
    /// sessions that end one by one do not cost an entry of the log each.
    package func needsPurge(now: Int64, auditRecordsMax: UInt64 = AuditRetention.recordsMax) -> Bool {
        if let expiry = box.contents.firstExpiry, expiry < now &- 60_000 { return true }
        return AuditLog.allCases.contains { log in
            let count = auditBounds(of: log).count
            return count > auditRecordsMax && count - auditRecordsMax >= UInt64(DirectoryTables.purgedMax)
        }
    }
}

extension DirectorySnapshot: Equatable {
    /// Whether both say the same.
    package static func == (left: Self, right: Self) -> Bool {
        left.box === right.box || left.box.contents == right.box.contents
    }
}
