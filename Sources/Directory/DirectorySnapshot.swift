import RecordModel

/// What the directory says, in memory: an immutable value that requests read without a lock.
package struct DirectorySnapshot: Sendable {
    /// Nil until the cluster's first command was applied here.
    package var map: ClusterMap?
    /// Creation times, in milliseconds since 1970, by container name.
    package var containers: [String: Int64] = [:]
    package var schemas: [SchemaKey: VersionedSchema] = [:]
    package var accountsByName: [String: Account] = [:]
    package var tokensByHash: [[UInt8]: Token] = [:]

    package init() {}

    package func token(withSecret secret: some StringProtocol) -> Token? {
        tokensByHash[Token.hash(ofSecret: secret)]
    }

    /// Takes over what a command changed.
    package mutating func take(_ change: DirectoryChange) {
        switch change {
        case .map(let new): map = new
        case .container(let name, let created): containers[name] = created
        case .schema(let key, let schema): schemas[key] = schema
        case .account(let account): accountsByName[account.name] = account
        case .accountRemoved(let account):
            accountsByName[account.name] = nil
            for (hash, token) in tokensByHash {
                if case .session(_, account.id, _) = token.kind { tokensByHash[hash] = nil }
            }
        case .token(let token): tokensByHash[token.secretHash] = token
        case .tokenRemoved(let token): tokensByHash[token.secretHash] = nil
        }
    }
}

/// One change of the directory, as the snapshots in memory take it over.
package enum DirectoryChange: Hashable, Sendable {
    case map(ClusterMap)
    case container(name: String, created: Int64)
    case schema(SchemaKey, VersionedSchema)
    case account(Account)
    case accountRemoved(Account)
    case token(Token)
    case tokenRemoved(Token)
}
