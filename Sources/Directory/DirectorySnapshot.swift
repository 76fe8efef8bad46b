package import RecordModel

/// What the directory says, in memory: a value that requests read without a lock. A copy costs one retain.
package struct DirectorySnapshot: Sendable {
    /// Unchecked: `contents` is changed by `take` alone, which makes sure before that nobody else holds the box.
    private final class Box: @unchecked Sendable {
        var contents: DirectoryContents

        init(_ contents: DirectoryContents) { self.contents = contents }
    }

    private var box: Box

    package init() { box = Box(DirectoryContents()) }

    /// Takes over what a command changed.
    package mutating func take(_ change: DirectoryChange) {
        if !isKnownUniquelyReferenced(&box) { box = Box(box.contents) }
        box.contents.take(change)
    }

    /// Nil until the cluster's first command was applied here.
    package var map: ClusterMap? { box.contents.map }
    /// Creation times, in milliseconds since 1970, by container name.
    package var containers: [String: Int64] { box.contents.containers }
    package var schemas: [SchemaKey: VersionedSchema] { box.contents.schemas }
    /// The data keys of containers that have any, ascending by number; the last one seals.
    package var containerKeys: [String: [ContainerKey]] { box.contents.containerKeys }

    /// Nil until the directory has made it: within moments in a new cluster, and in an older one once all of its nodes
    /// run a build that knows it.
    package var secret: ClusterSecret? { box.contents.secret }

    /// The container's data keys, ascending by number; empty until something was sealed.
    package func keys(of container: String) -> [ContainerKey] { box.contents.containerKeys[container] ?? [] }
}

// Accounts, and what they may sign in with.
extension DirectorySnapshot {
    /// For lists; requests look accounts up by `account(named:)`.
    package var accountsByName: PartitionedDictionary<Bytewise, Account> { box.contents.accounts.byName }

    /// The account of a name, however its letters are composed.
    package func account(named name: String) -> Account? { box.contents.accounts.account(named: name) }

    package func account(withID id: String) -> Account? { box.contents.accounts.account(withID: id) }

    /// The account with an address, however its letters are written.
    package func account(withEmail email: some StringProtocol) -> Account? {
        box.contents.accounts.account(withEmail: email)
    }

    /// The account that goes by a user record name in a container. The first look into a container hashes every
    /// account's id, once; later ones cost nothing of note.
    package func account(withUserRecordName name: String, in container: String) -> Account? {
        box.contents.accounts.account(withUserRecordName: name, in: container)
    }

    /// The account that is known to an issuer by this name.
    package func account(withIdentity identity: ExternalIdentity) -> Account? {
        box.contents.accounts.account(withIdentity: identity)
    }

    /// The account's failed sign-ins since the last one that succeeded; nil if there was none.
    package func lockout(of accountID: String) -> Lockout? { box.contents.lockouts[accountID] }

    /// Sorted by name.
    package var providers: [IdentityProvider] { box.contents.providers }

    /// Whether anybody may make an account; no, until somebody says so.
    package var isSignUpOpen: Bool { box.contents.isSignUpOpen }
}

// Tokens, keys and roles.
extension DirectorySnapshot {
    /// Every token; for lists, not for requests: it is put together at each look.
    package var tokensByHash: [[UInt8]: Token] { box.contents.tokens.byHash.joined }

    /// The token with a secret; a session begun by sign-in has none.
    package func token(withSecret secret: some StringProtocol) -> Token? {
        guard let token = box.contents.tokens.byHash[Token.hash(ofSecret: secret)] else { return nil }
        if case .signIn = token.kind { return nil }
        return token
    }

    /// The name of the administrator whose token has a secret; nil where no administrator has it.
    package func administrator(withSecret secret: some StringProtocol) -> String? {
        if case .administrator(let name)? = token(withSecret: secret)?.kind { name } else { nil }
    }

    package func token(withID id: String) -> Token? { box.contents.tokens.token(withID: id) }

    /// How many accounts have a session in the container, expired ones included until they are purged.
    package func userCount(of container: String) -> Int { box.contents.tokens.userCount(of: container) }

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

    package func auditBounds(of log: AuditLog) -> AuditBounds { box.contents.audit[log] ?? AuditBounds() }

    /// Whether there is enough for a `purge` to remove. Expired tokens are collected for a minute, so that many
    /// sessions that end one by one do not cost an entry of the log each.
    package func needsPurge(now: Int64, auditRecordsMax: UInt64 = AuditRetention.recordsMax) -> Bool {
        if let expiry = box.contents.tokens.firstExpiry, expiry < now &- 60_000 { return true }
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
