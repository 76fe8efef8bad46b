import RecordModel

extension DirectoryCommand {
    /// What the audit log tells of the command. No secret and no hash of one is in it.
    package var auditSummary: (action: String, subject: String) {
        switch self {
        case .installMap(let map): ("map.install", "epoch \(map.epoch), \(map.nodes.count) nodes")
        case .changeMap(let change): change.auditSummary
        case .createContainer(let name, _): ("container.create", "container \(name)")
        case .setSchema(let key, let version, _, let growth?):
            (
                AuditEvent.schemaGrowth,
                "\(Self.text(key.container, key.environment)), after version \(version): \(growth)"
            )
        case .setSchema(let key, let version, let schema, nil):
            (
                "schema.set",
                "\(Self.text(key.container, key.environment)), after version \(version): \(schema.types.count) types, "
                    + "\(schema.roles.count) roles"
            )
        case .resetDevelopment(let container, let version):
            ("schema.reset", "\(Self.text(container, .development)), after version \(version)")
        case .addContainerKey(let container, let key): ("data-key.add", "container \(container), key \(key.number)")
        case .setLimits(let container, let changes): ("limits.set", Self.text(container, changes))
        case .setIdentityProvider(let provider):
            (
                "provider.set",
                "provider \(provider.name), issuer \(provider.issuer), sign-up \(provider.allowsSignUp ? "open" : "closed")"
            )
        case .removeIdentityProvider(let name): ("provider.remove", "provider \(name)")
        case .setSignUp(let isOpen): (isOpen ? "sign-up.open" : "sign-up.close", "cluster")
        case .endContainer(let name, let step): ("container.\(step.auditName)", "container \(name)")
        case .makeSecret: ("secret.make", "cluster")
        case .console(let command): command.auditSummary
        case .webhook(let command): command.auditSummary
        case .administration(let command): command.auditSummary
        case .purge: ("directory.purge", "expired tokens, old audit records")
        case .createAccount, .updateAccount, .deleteAccount, .setPassword, .createToken, .beginSession, .revokeToken,
            .noteSignInFailure, .createServerKey, .revokeServerKey, .addRoleMember, .removeRoleMember:
            accountSummary
        }
    }

    private var accountSummary: (action: String, subject: String) {
        switch self {
        case .createAccount(let account): ("user.create", Self.text(account))
        case .updateAccount(let name, let changes): ("user.update", "user \(name): \(Self.text(changes))")
        case .deleteAccount(let name): ("user.delete", "user \(name)")
        case .setPassword(let name, let password, let endsSessions):
            (
                password == nil ? "user.password.remove" : "user.password.set",
                "user \(name)\(endsSessions ? ", sessions end" : "")"
            )
        case .createToken(let token): ("token.create", Self.text(token))
        case .beginSession(let token, _): ("session.begin", Self.text(token))
        case .revokeToken(let id): ("token.revoke", "token \(AuditText.id(id))")
        case .noteSignInFailure(let accountID, _): (AuditEvent.signInFailure, "account \(AuditText.id(accountID))")
        case .createServerKey(let key):
            (
                "key.create",
                "key \(AuditText.id(key.id)), \(Self.text(key.container, key.environment)), "
                    + "account \(AuditText.id(key.accountID))"
            )
        case .revokeServerKey(let id): ("key.revoke", "key \(AuditText.id(id))")
        case .addRoleMember(let member): ("role.grant", Self.text(member))
        case .removeRoleMember(let member): ("role.revoke", Self.text(member))
        default: preconditionFailure("a command that is summed up elsewhere")
        }
    }

    /// The event of a command that somebody asked for; nil for a schema's growth that another was faster with: it is
    /// tried again, and told then.
    func auditEvent(of origin: AuditOrigin, _ outcome: DirectoryOutcome) -> AuditEvent? {
        if case .setSchema(_, _, _, .some) = self, case .refused(let error) = outcome, error.code == .conflict {
            return nil
        }
        let (action, subject) = auditSummary
        let text =
            switch outcome {
            case .done: AuditEvent.done
            case .refused(let error): "\(error.code.rawValue): \(error.reason)"
            }
        return AuditEvent(origin: origin, action: action, subject: subject, outcome: text)
    }

    private static func text(_ container: String, _ environment: Environment) -> String {
        "container \(container) (\(environment.rawValue))"
    }

    private static func text(_ container: String?, _ changes: [LimitChange]) -> String {
        let values = changes.map { "\($0.limit.rawValue) \($0.value.map(String.init) ?? "as before")" }
        return (container.map { "container \($0): " } ?? "every container: ") + values.joined(separator: ", ")
    }

    private static func text(_ account: Account) -> String {
        var parts = ["user \(account.name)", "account \(AuditText.id(account.id))"]
        if account.password != nil { parts.append("with a password") }
        if let identity = account.identity { parts.append("known to \(identity.issuer)") }
        return parts.joined(separator: ", ")
    }

    private static func text(_ changes: AccountChanges) -> String {
        var parts: [String] = []
        if changes.email != nil { parts.append("address") }
        if changes.givenName != nil || changes.familyName != nil { parts.append("names") }
        if let isDiscoverable = changes.isDiscoverable {
            parts.append(isDiscoverable ? "discoverable" : "not discoverable")
        }
        if let identity = changes.identity {
            parts.append(identity == .none ? "no identity" : "known to \(identity.issuer)")
        }
        return parts.isEmpty ? "nothing" : parts.joined(separator: ", ")
    }

    private static func text(_ token: Token) -> String {
        let id = AuditText.id(token.id)
        return switch token.kind {
        case .administrator(let name): "administrator \(AuditText.id(name)), token \(id)"
        case .console(let name, _): "session \(id) of administrator \(AuditText.id(name)) in the console"
        case .consoleLink(let name, _): "link \(id) of administrator \(AuditText.id(name)) to the console"
        case .acting(let session): "time \(id) of administrator \(AuditText.id(session.administrator)) as a user"
        case .api(let container, let environment, _, _): "API token \(id), \(text(container, environment))"
        case .session(let container, let accountID, _), .signIn(let container, let accountID, _):
            "session \(id), container \(container), account \(AuditText.id(accountID))"
        }
    }

    private static func text(_ member: RoleMember) -> String {
        "role \(member.role), \(text(member.container, member.environment)), account \(AuditText.id(member.accountID))"
    }
}

extension MapChange {
    /// What the audit log tells of the change.
    package var auditSummary: (action: String, subject: String) {
        switch self {
        case .addNode(let node): ("node.add", "node \(node.id) at \(node.addresses)")
        case .removeNode(let id): ("node.remove", "node \(id)")
        case .replaceNode(let id, let node): ("node.replace", "node \(id) by node \(node.id) at \(node.addresses)")
        case .dropNode(let id): ("node.drop", "node \(id)")
        case .claimNode(let id, _, _): ("node.claim", "node \(id), with a data folder of its own")
        case .renewReplica(let shard, let replica):
            ("replica.renew", "\(Self.text(shard)) on node \(replica.node), generation \(replica.generation)")
        case .preferLeader(let shard, let node): ("leader.move", "\(Self.text(shard)) to node \(node)")
        case .moveLeaders(let from, let to):
            ("leader.move", "all of node \(from) to \(to.map { "node \($0)" } ?? "the others")")
        case .moveNode(let node): ("node.move", "node \(node.id) to \(node.addresses)")
        }
    }

    private static func text(_ shard: Int?) -> String { shard.map { "shard \($0)" } ?? "directory" }
}
