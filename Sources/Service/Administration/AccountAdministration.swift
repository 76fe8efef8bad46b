import Authorization
import Cluster
package import Directory
import RecordModel

/// Accounts: making, changing and ending them, and who has which of a schema's custom roles.
package struct AccountAdministration: Sendable {
    let administration: Administration
    private var service: RecordService { administration.service }

    /// A page of accounts by name, each with the end of its lock-out where it is locked, and whether more follow.
    package func list(
        after name: String, limit: Int
    ) async throws(RequestFailure) -> (accounts: [(account: Account, lockedUntil: Int64?)], moreComing: Bool) {
        try await service.cluster.refreshDirectory()
        let now = service.now
        return try await service.accounts.read { reader in
            // One more says whether the list goes on.
            let accounts = try reader.accounts(after: name, limit: limit + 1)
            let page: [(account: Account, lockedUntil: Int64?)] = try accounts.prefix(limit).map { account in
                let lockout = try reader.lockout(of: account.id)
                return (account, lockout?.isLocked(at: now) == true ? lockout?.lockedUntil : nil)
            }
            return (page, accounts.count > limit)
        }
    }

    /// Forgets a user's failed sign-ins, so that nothing keeps them out but a wrong password.
    package func unlock(_ name: String) async throws(RequestFailure) {
        _ = try await administration.account(named: name)
        try await administration.requireLevel(.unlocking)
        try await administration.change(.administration(.unlock(account: name)))
    }

    /// Makes an account with what `given` has; empty texts are left out.
    package func create(
        _ name: String, _ given: AccountChanges, password: String?
    ) async throws(RequestFailure) -> Account {
        var account = Account(id: service.randomHex(bytes: 16), name: name, created: service.now)
        given.apply(to: &account)
        if let password { account.password = try await administration.service.hash(ofPassword: password) }
        try await administration.change(.createAccount(account))
        return account
    }

    /// - Returns: the account as it is then.
    package func update(_ name: String, _ changes: AccountChanges) async throws(RequestFailure) -> Account {
        try await administration.change(.updateAccount(name: name, changes))
        let changed: Account?
        do throws(RequestFailure) {
            try await service.cluster.refreshDirectory()
            changed = try await service.accounts.account(named: name)
        } catch {
            throw .tryAgain("the change is made, but this node cannot show it: it is behind the directory")
        }
        if let changed { return changed }
        throw .notFound("the user '\(name)' was deleted meanwhile")
    }

    /// Sets a user's password, or takes it away (nil); ends a lock-out, and the user's sessions unless told not to.
    package func setPassword(
        _ password: String?, of name: String, endsSessions: Bool
    ) async throws(RequestFailure) {
        _ = try await administration.account(named: name)
        let hash: PasswordHash? =
            if let password { try await administration.service.hash(ofPassword: password) } else { nil }
        try await administration.change(.setPassword(account: name, hash, endsSessions: endsSessions))
    }

    // MARK: Roles

    /// The custom roles of a schema, sorted, also those that the schema has lost and somebody still has; each with the
    /// names of its users, sorted.
    package func roles(
        of key: SchemaKey
    ) async throws(RequestFailure) -> [(name: String, members: [String])] {
        let directory = try await administration.directory(with: key.container)
        let members = directory.members(container: key.container, environment: key.environment)
        let users = try await service.accounts.read { try $0.names(ofAccounts: members.map(\.accountID)) }
        let names = directory.schema(key).schema.roles.filter { !$0.hasPrefix("_") } + members.map(\.role)
        return Set(names).sorted().map { name in
            let holders = members.filter { $0.$role == Bytewise(name) }.compactMap { users[$0.accountID] }
            return (name, holders.sorted())
        }
    }

    /// Gives a user a role, or takes it away. Only by giving one a caller whose role holds in some containers learns
    /// whether there is a user: it must not seem given where a name is wrong, and the audit log has it.
    package func setMember(
        _ user: String, of role: String, in key: SchemaKey, isMember: Bool
    ) async throws(RequestFailure) {
        let directory = try await administration.directory(with: key.container)
        let account =
            isMember ? try await administration.account(named: user) : try await administration.owner(named: user)
        let member = RoleMember(
            container: key.container, environment: key.environment, role: role, accountID: account.id)
        // Before the audit log would name an account.
        if !isMember, !directory.members(container: key.container, environment: key.environment).contains(member) {
            throw .notFound(
                "'\(user)' has no role '\(role)' in '\(key.container)' (\(key.environment.rawValue)): `zonekeeper role "
                    + "list` shows who has which")
        }
        try await administration.change(isMember ? .addRoleMember(member) : .removeRoleMember(member))
    }

    /// What somebody may do with public records of a type: the roles by which, sorted; of their own records only, where
    /// that is `_creator` alone.
    package struct Rights: Sendable {
        /// The record type's name.
        package var type: String
        /// The roles that let them make records.
        package var create: [String]
        /// Those that let them read records.
        package var read: [String]
        /// Those that let them change and delete records.
        package var write: [String]
    }

    /// What a user may do with public records of each type of a schema.
    /// - Parameter user: nil: somebody who has not signed in.
    package func rights(
        of user: String?, in key: SchemaKey
    ) async throws(RequestFailure) -> (roles: [String], rights: [Rights]) {
        let directory = try await administration.directory(with: key.container)
        var caller = Caller(user: nil)
        if let user {
            let account = try await administration.owner(named: user)
            caller = Caller(
                user: Account.userRecordName(accountID: account.id, container: key.container),
                customRoles: directory.roles(
                    of: account.id, container: key.container, environment: key.environment))
        }
        let rights = directory.schema(key).schema.normalized.types.map { type in
            // A record that is not there yet has no creator.
            func roles(_ permission: Permissions) -> [String] {
                caller.grants(in: type, isCreator: permission != .create)
                    .filter { $0.permissions.contains(permission) }.map(\.role).sorted()
            }
            return Rights(type: type.name, create: roles(.create), read: roles(.read), write: roles(.write))
        }
        return (caller.roles, rights)
    }

    // MARK: What names and addresses may be

    /// The text where it is one line of an allowed length; nil where it is not.
    package static func line(_ text: String) -> String? {
        let isLine = !text.isEmpty && text.count <= Limits.nameLengthMax && text.utf8.count <= 4 * Limits.nameLengthMax
        return isLine && !text.unicodeScalars.contains { $0.properties.generalCategory == .control } ? text : nil
    }

    /// - Throws: `BAD_REQUEST` for what is no name of an account.
    package static func name(_ text: String) throws(RequestFailure) -> String {
        if let line = line(text) { return line }
        throw .badRequest("name: 1 to \(Limits.nameLengthMax) characters on one line are expected")
    }

    /// Whether a text has the form of an address.
    package static func isEmail(_ text: String) -> Bool {
        let sides = text.split(separator: "@", omittingEmptySubsequences: false)
        return sides.count == 2 && sides.allSatisfy { !$0.isEmpty } && text.utf8.count <= 254
            && !text.contains { $0.isWhitespace || $0 == "," || $0 == "<" || $0 == ">" }
    }
}

/// Identity providers whose users may sign in.
package struct ProviderAdministration: Sendable {
    let administration: Administration

    /// Adds a provider, or gives the one of that name new values.
    /// - Parameters:
    ///   - secret: what the provider gave this cluster; an unchanged one stays for the same issuer and client.
    ///   - allowsSignUp: whether its users may make accounts; nil: as before.
    package func set(
        _ name: String, issuer: String, clientID: String, _ secret: SecretChange, allowsSignUp: Bool?
    ) async throws(RequestFailure) -> IdentityProvider {
        let old = try await administration.service.cluster.newestDirectory().providers.first {
            $0.$name == Bytewise(name)
        }
        var provider = IdentityProvider(
            name: name, issuer: issuer, clientID: clientID, sealedSecret: [],
            allowsSignUp: allowsSignUp ?? old?.allowsSignUp ?? false)
        switch secret {
        case .removed: break
        case .unchanged where old?.issuer == issuer && old?.clientID == clientID:
            provider.sealedSecret = old?.sealedSecret ?? []
        case .unchanged: break
        case .set(let text):
            provider.sealedSecret = try relay(
                administration.service.node.vault.sealSecret(Array(text.utf8), purpose: provider.secretPurpose))
        }
        try await administration.change(.setIdentityProvider(provider))
        return provider
    }
}

extension IdentityProvider {
    var secretPurpose: String { "provider/\(name)" }
}
