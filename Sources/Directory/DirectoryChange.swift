/// One change of the directory, as the snapshots in memory take it over.
package enum DirectoryChange: Hashable, Sendable {
    case map(ClusterMap)
    /// A new container, with the schema of both its environments.
    case container(name: String, created: Int64, VersionedSchema)
    case schema(SchemaKey, VersionedSchema)
    case containerKey(container: String, ContainerKey)
    /// A new account, or new values of one.
    case account(Account)
    /// What belonged to it goes by changes of its own.
    case accountRemoved(Account)
    /// Nil: there is none any more.
    case lockout(accountID: String, Lockout?)
    case token(Token)
    case tokenRemoved(Token)
    /// When the first of all tokens expires, in milliseconds since 1970; nil: none does.
    case firstExpiry(Int64?)
    case serverKey(ServerKey)
    case serverKeyRemoved(id: String)
    case roleMember(RoleMember)
    case roleMemberRemoved(RoleMember)
    /// Nil: what holds for each container that has none of its own.
    case limits(container: String?, LimitOverrides)
    /// A new provider, or new values of one.
    case provider(IdentityProvider)
    case providerRemoved(name: String)
    case signUp(isOpen: Bool)
    case audit(AuditLog, AuditBounds)
}

/// Which records the audit log has.
package struct AuditBounds: Hashable, Sendable {
    /// The number of the last record past retention, 0 if all are there.
    package var purged: UInt64 = 0
    /// The number of the last record, `purged` if there is none.
    package var last: UInt64 = 0

    package init() {}

    package init(purged: UInt64, last: UInt64) {
        precondition(purged <= last, "purged to \(purged), last \(last)")
        self.purged = purged
        self.last = last
    }

    package var count: UInt64 { last - purged }
}
