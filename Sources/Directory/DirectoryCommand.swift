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

extension DirectoryCommand: WireUnion {
    /// A command of several values is a message of them, numbered in the order of the case.
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .installMap(let map): map.write(1, to: &writer)
        case .createContainer(let name, let time): writer.parts(2, name, time)
        case .setSchema(let key, let expectedVersion, let schema, let growth):
            writer.parts(3, key.container, key.environment, expectedVersion, schema, growth)
        case .createAccount(let account): account.write(4, to: &writer)
        case .deleteAccount(let name): writer.field(5, name)
        case .createToken(let token): token.write(6, to: &writer)
        case .revokeToken(let id): writer.field(7, id)
        case .updateAccount(let name, let changes): writer.parts(8, name, changes)
        case .resetDevelopment(let container, let expectedVersion): writer.parts(9, container, expectedVersion)
        case .addContainerKey(let container, let key): writer.parts(10, container, key)
        case .setPassword(let account, let password, let endsSessions):
            writer.parts(11, account, password, endsSessions)
        case .beginSession(let token, let basis): writer.parts(12, token, basis)
        case .noteSignInFailure(let accountID, let time): writer.parts(13, accountID, time)
        case .createServerKey(let key): key.write(14, to: &writer)
        case .revokeServerKey(let id): writer.field(15, id)
        case .addRoleMember(let member): member.write(16, to: &writer)
        case .removeRoleMember(let member): member.write(17, to: &writer)
        case .setLimits(let container, let changes): writer.parts(18, container, changes)
        case .setIdentityProvider(let provider): provider.write(19, to: &writer)
        case .removeIdentityProvider(let name): writer.field(20, name)
        case .setSignUp(let isOpen): writer.field(21, isOpen)
        case .purge(let time, let auditRecordsMax): writer.parts(22, time, auditRecordsMax)
        case .changeMap(let change): change.write(23, to: &writer)
        case .makeSecret(let key, let time): writer.parts(24, key, time)
        case .endContainer(let name, let step): writer.parts(25, name, step)
        case .console(let command): command.write(26, to: &writer)
        case .webhook(let command): command.write(27, to: &writer)
        case .administration(let command): command.write(28, to: &writer)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .installMap(try reader.message())
        case 2: self = try reader.parts(Self.createContainer)
        case 3:
            self = try reader.parts {
                .setSchema(SchemaKey(container: $0, environment: $1), expectedVersion: $2, $3, growth: $4)
            }
        case 4: self = .createAccount(try reader.message())
        case 5: self = .deleteAccount(name: try reader.string())
        case 6: self = .createToken(try reader.message())
        case 7: self = .revokeToken(id: try reader.string())
        case 8: self = try reader.parts(Self.updateAccount)
        case 9: self = try reader.parts(Self.resetDevelopment)
        case 10: self = try reader.parts(Self.addContainerKey)
        default:
            guard let command = try Self.access(number, &reader) else { return nil }
            self = command
        }
    }

    private static func access(_ number: Int, _ reader: inout WireReader) throws(WireError) -> Self? {
        switch number {
        case 11: try reader.parts(Self.setPassword)
        case 12: try reader.parts(Self.beginSession)
        case 13: try reader.parts(Self.noteSignInFailure)
        case 14: .createServerKey(try reader.message())
        case 15: .revokeServerKey(id: try reader.string())
        case 16: .addRoleMember(try reader.message())
        case 17: .removeRoleMember(try reader.message())
        case 18: try reader.parts(Self.setLimits)
        case 19: .setIdentityProvider(try reader.message())
        case 20: .removeIdentityProvider(name: try reader.string())
        case 21: .setSignUp(isOpen: try reader.bool())
        case 22:
            try reader.parts { .purge(time: $0, auditRecordsMax: ($1 as UInt64?) ?? AuditRetention.recordsMax) }
        case 23: .changeMap(try reader.message())
        case 24: try reader.parts(Self.makeSecret)
        case 25: try reader.parts(Self.endContainer)
        case 26: .console(try reader.message())
        case 27: .webhook(try reader.message())
        case 28: .administration(try reader.message())
        default: nil
        }
    }
}
