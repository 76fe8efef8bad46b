package import RecordModel
package import Wire

/// What one entry of the directory's log asks for.
package enum DirectoryCommand: Hashable, Sendable {
    /// The first command of a cluster; later ones are refused unless their epoch is greater.
    case installMap(ClusterMap)
    /// Both environments begin with `Schema.initial`, as version 1.
    case createContainer(name: String, time: Int64)
    /// Replaces a schema, provided that its version is still `expectedVersion`. `growth` is what a save adds to it, for
    /// the audit log; nil where an administrator changes it.
    case setSchema(SchemaKey, expectedVersion: UInt64, Schema, growth: String? = nil)
    /// Makes development's schema production's, in a new generation: every development record of the container goes.
    /// Provided that the version of development's schema is still `expectedVersion`.
    case resetDevelopment(container: String, expectedVersion: UInt64)
    /// Adds a data key, provided that its number follows the last one's; from then on values are sealed with it.
    case addContainerKey(container: String, ContainerKey)
    case createAccount(Account)
    case updateAccount(name: String, AccountChanges)
    /// Removes the account, its sessions, keys and roles; its records stay.
    case deleteAccount(name: String)
    /// Nil takes the password away. Ends a lock-out; sessions of both kinds, if they shall end.
    case setPassword(account: String, PasswordHash?, endsSessions: Bool)
    case createToken(Token)
    /// A session that begins with signing in, provided that what it rests on still holds; ends the lock-out of its
    /// account, and the oldest sessions where the account has more than `Token.signInSessionsMax` of them in the
    /// container.
    case beginSession(Token, SignInBasis)
    /// Works for sessions of both kinds, too.
    case revokeToken(id: String)
    /// That somebody could not sign in to an account; enough of them lock it (`Lockout`).
    case noteSignInFailure(accountID: String, time: Int64)
    case createServerKey(ServerKey)
    case revokeServerKey(id: String)
    /// The role must be one of the environment's schema.
    case addRoleMember(RoleMember)
    case removeRoleMember(RoleMember)
    /// Sets limits of a container, or, where it is nil, what holds for each that has none of its own.
    case setLimits(container: String?, [LimitChange])
    /// A new provider, or new values of the one of that name.
    case setIdentityProvider(IdentityProvider)
    /// Accounts that came from it stay.
    case removeIdentityProvider(name: String)
    /// Whether anybody may make an account.
    case setSignUp(isOpen: Bool)
    /// Changes who is in the cluster, or where replicas shall be.
    case changeMap(MapChange)
    /// Gives the cluster its secret, where it has none yet; made at `time`.
    case makeSecret(key: [UInt8], time: Int64)
    /// Changes who may use the console, or a session there.
    case console(ConsoleCommand)
    /// Changes a container's webhooks; from `FeatureLevel.webhooks` on.
    case webhook(WebhookCommand)
    /// Times as a user, notes on containers, and what is known of tokens; from `FeatureLevel.administration` on.
    case administration(AdministrationCommand)
    /// A step of a container's end.
    case endContainer(String, ContainerEnd)
    /// Removes tokens that have expired by `time` and the oldest records above `auditRecordsMax` of each audit log; at
    /// most 500 of each.
    case purge(time: Int64, auditRecordsMax: UInt64 = AuditRetention.recordsMax)
}

/// How long each audit log is.
package enum AuditRetention {
    /// Records that are kept.
    package static let recordsMax: UInt64 = 1_000_000
}

/// What became of a command.
package enum DirectoryOutcome: Hashable, Sendable {
    /// Done. `version` is the new version of a schema, 0 otherwise.
    case done(version: UInt64)
    case refused(ServiceError)
}

extension DirectoryOutcome: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .done(let version): writer.field(1, version)
        case .refused(let error): error.write(2, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .done(version: try reader.unsigned())
        case 2: self = .refused(try reader.message())
        default: return nil
        }
    }
}
