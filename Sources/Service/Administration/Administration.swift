import Admission
import Cluster
package import Directory
import RecordModel
import Wire

/// What a request of the administration is done with: the node's service, and who asks.
///
/// Each noun's operations are a value that holds one of these, such as `TokenAdministration`. What is one command of
/// the directory is `change`.
package struct Administration: Sendable {
    /// The node's.
    package let service: RecordService
    /// Who asks, for the audit log.
    package let origin: AuditOrigin
    /// Nil where somebody signs in.
    package let caller: AdministratorAccess?

    package init(_ service: RecordService, origin: AuditOrigin, caller: AdministratorAccess?) {
        self.service = service
        self.origin = origin
        self.caller = caller
    }

    /// - Throws: `AUTHENTICATION_FAILED` where nobody has signed in.
    package var access: AdministratorAccess {
        get throws(RequestFailure) {
            if let caller { return caller }
            throw .authenticationFailed("an administrator is expected to have signed in")
        }
    }

    /// Tells the audit log of what no command tells of.
    func tell(_ action: String, _ subject: String) async throws(RequestFailure) {
        let event = AuditEvent(origin: origin, action: action, subject: subject)
        try await service.cluster.enter(DirectoryEntry(nil, events: [event]), by: service.deadline())
    }

    /// Has the directory changed, which the audit log tells of, and waits until this node knows it.
    /// - Returns: the new version, where the command gives one.
    @discardableResult
    package func change(_ command: DirectoryCommand) async throws(RequestFailure) -> UInt64 {
        try await service.cluster.change(command, origin: origin)
    }

    /// Who makes a token, as it is kept with it; empty while a node does not know that it is.
    func maker() async -> String { await service.node.levels.has(.administration, in: .directory) ? origin.actor : "" }

    /// - Throws: `TRY_AGAIN_LATER` while a node of the cluster runs a build that does not know what came with the
    ///   level.
    func requireLevel(_ level: FeatureLevel = .administration) async throws(RequestFailure) {
        try await service.node.require(level, for: "this needs", in: .directory)
    }

    /// The directory as it is now, with a container.
    /// - Throws: `NOT_FOUND` where there is no such container, or it was deleted.
    package func directory(with container: String) async throws(RequestFailure) -> DirectorySnapshot {
        let directory = try await service.cluster.newestDirectory()
        try relay(directory.requireContainer(container))
        return directory
    }

    /// The account of a name, with every change that was acknowledged before this call.
    /// - Throws: `NOT_FOUND` if it does not exist.
    package func account(named name: String) async throws(RequestFailure) -> Account {
        try await service.cluster.refreshDirectory()
        if let account = try await service.accounts.account(named: name) { return account }
        throw .notFound(
            "no user '\(name)': `zonekeeper user list` shows those that there are, and `zonekeeper user create \(name)` makes "
                + "it")
    }

    /// The account of a name, to show what it has in a container. Where the caller's role holds in some containers
    /// only, an unknown name is that of a user who has nothing there: which names exist is not theirs to know.
    package func owner(named name: String) async throws(RequestFailure) -> Account {
        if try access.containers == nil { return try await account(named: name) }
        try await service.cluster.refreshDirectory()
        return try await service.accounts.account(named: name)
            ?? Account(id: service.randomHex(bytes: 16), name: name, created: service.now)
    }
}

// The nouns.
extension Administration {
    /// Of apps, sessions and administrators.
    package var tokens: TokenAdministration { TokenAdministration(administration: self) }
    /// Those of servers.
    package var keys: KeyAdministration { KeyAdministration(administration: self) }
    /// Users, and their roles.
    package var accounts: AccountAdministration { AccountAdministration(administration: self) }
    /// Of identity.
    package var providers: ProviderAdministration { ProviderAdministration(administration: self) }
    /// With their limits.
    package var containers: ContainerAdministration { ContainerAdministration(administration: self) }
    /// What users are told of.
    package var subscriptions: SubscriptionAdministration { SubscriptionAdministration(administration: self) }
    /// The audit logs.
    package var audit: AuditAdministration { AuditAdministration(administration: self) }
    /// Times as users.
    package var acting: ActingAdministration { ActingAdministration(administration: self) }
    /// Nodes and groups.
    package var cluster: ClusterAdministration { ClusterAdministration(administration: self) }
    /// The log of requests, and what requests came to.
    package var requests: RequestAdministration { RequestAdministration(administration: self) }
    /// What is wrong.
    package var alerts: AlertAdministration { AlertAdministration(administration: self) }
    /// Work on all matches of a query.
    package var jobs: JobAdministration { JobAdministration(administration: self) }
    /// What containers hold and carry.
    package var usage: UsageAdministration { UsageAdministration(administration: self) }
    /// The console, and the team of administrators.
    package var console: ConsoleAdministration { ConsoleAdministration(administration: self) }
    /// What a request would be held to.
    package var limits: LimitExplanation { LimitExplanation(administration: self) }

    /// The life of a schema.
    package func schemas(_ options: SchemaAdministration.Options = SchemaAdministration.Options())
        -> SchemaAdministration
    {
        SchemaAdministration(administration: self, options: options)
    }
}

/// What becomes of a password or another secret.
package enum SecretChange: Hashable, Sendable {
    case unchanged
    case set(String)
    case removed
}

/// Tokens: those of apps, of sessions that an administrator begins, and of administrators.
package struct TokenAdministration: Sendable {
    /// Some of the tokens, the oldest first; the names of the accounts that sessions are of, by the accounts' ids; and
    /// where the list goes on.
    package typealias Page = (tokens: [Token], names: [String: String], next: TokenPosition?)

    let administration: Administration

    /// A page of those that a filter lets through.
    package func list(
        _ filter: TokenFilter, after: TokenPosition?, limit: Int
    ) async throws(RequestFailure) -> Page {
        try await administration.service.cluster.refreshDirectory()
        return try await administration.service.accounts.read { reader in
            let page = try reader.tokens(filter, after: after, limit: limit)
            let names = try reader.names(ofAccounts: page.tokens.compactMap(\.kind.accountID))
            return (page.tokens, names, page.next)
        }
    }

    /// - Parameter secret: the one that the administrator gave; nil for a new random one.
    /// - Returns: the token and its secret, which is kept nowhere.
    package func create(
        _ kind: TokenKind, secret: String?, label: String
    ) async throws(RequestFailure) -> (token: Token, secret: String) {
        let made = await made(kind, secret: secret, label: label)
        try await administration.change(.createToken(made.token))
        return made
    }

    /// Makes the token of the administrator whose session in the console it is asked for in.
    func create(
        _ kind: TokenKind, label: String, in session: ConsoleSession
    ) async throws(RequestFailure) -> (token: Token, secret: String) {
        try await administration.requireLevel(.sessionTokens)
        let made = await made(kind, secret: nil, label: label)
        try await administration.change(.administration(.makeToken(made.token, session: session.id)))
        return made
    }

    private func made(_ kind: TokenKind, secret: String?, label: String) async -> (token: Token, secret: String) {
        let service = administration.service
        let secret = secret ?? service.randomHex(bytes: 32)
        var token = Token(
            id: service.randomHex(bytes: 8), secretHash: Token.hash(ofSecret: secret), kind: kind, label: label,
            created: service.now)
        token.maker = await administration.maker()
        return (token, secret)
    }

    /// Gives an API token another label or other origins; nil leaves them.
    /// - Returns: the token as it is then.
    package func change(_ id: String, label: String?, origins: [String]?) async throws(RequestFailure) -> Token {
        try await administration.requireLevel()
        try await administration.change(.administration(.changeToken(id: id, label: label, origins: origins)))
        if let token = administration.service.directory.token(withID: id) { return token }
        throw .notFound("the token was revoked meanwhile")
    }

    /// The session of a user in a container, from now on.
    package func session(
        of user: String, in container: String, seconds: Int64
    ) async throws(RequestFailure) -> TokenKind {
        let account = try await administration.account(named: user)
        return .session(
            container: container, accountID: account.id, expires: administration.service.now + seconds * 1_000)
    }
}

/// Keys with which servers sign their requests. The private halves never come here.
package struct KeyAdministration: Sendable {
    let administration: Administration

    /// The keys that the administrator may see, each with its user's name.
    package func list() async throws(RequestFailure) -> [(key: ServerKey, user: String)] {
        let access = try administration.access
        let keys = try await administration.service.cluster.newestDirectory().serverKeys.filter {
            access.covers($0.container)
        }
        let names = try await administration.service.accounts.read { try $0.names(ofAccounts: keys.map(\.accountID)) }
        return keys.map { ($0, names[$0.accountID] ?? "") }
    }

    /// Gives a key another label.
    package func relabel(_ id: String, _ label: String) async throws(RequestFailure) {
        try await administration.requireLevel()
        try await administration.change(.administration(.changeKey(id: id, label: label)))
    }

    /// Registers a public key, by which a server acts as a user.
    package func create(
        _ publicKey: [UInt8], of user: String, in place: SchemaKey, label: String
    ) async throws(RequestFailure) -> ServerKey {
        let account = try await administration.account(named: user)
        let service = administration.service
        var key = ServerKey(
            id: service.randomHex(bytes: 32), container: place.container, environment: place.environment,
            publicKey: publicKey, accountID: account.id, label: label, created: service.now)
        key.maker = await administration.maker()
        try await administration.change(.createServerKey(key))
        return key
    }
}

extension DatabaseKey {
    init(privateDataOf account: Account, in key: SchemaKey) {
        self.init(
            privateDataOf: Account.userRecordName(accountID: account.id, container: key.container), in: key)
    }

    /// - Parameter user: the record name.
    init(privateDataOf user: String, in key: SchemaKey) {
        self.init(container: key.container, environment: key.environment, scope: .private, owner: user)
    }

    init(publicDataIn key: SchemaKey) {
        self.init(
            container: key.container, environment: key.environment, scope: .public, owner: DatabaseKey.publicOwner)
    }
}

/// Reading the audit logs.
package struct AuditAdministration: Sendable {
    let administration: Administration

    /// What a page of an audit log has.
    package enum Page: Sendable {
        /// Every record of the page, the oldest first, with what is needed to verify their chain.
        case chain(AuditPage)
        /// What a search found.
        case findings(AuditFindings)
    }

    /// Records of an audit log: those that are looked for, and that the administrator may see.
    package func page(_ search: AuditSearch) async throws(RequestFailure) -> Page {
        var search = search
        search.visibleActors = try visibleActors()
        if search.isOfAll, search.before == nil {
            let read = DirectoryRead.audit(search.log, after: search.after, limit: search.limit)
            return .chain(try unpacked(try await self.read(read)))
        }
        let answer = try await read(.search(search))
        if let findings = try? AuditFindings(decoding: answer) { return .findings(findings) }
        throw .tryAgain("the audit log can be searched once every node runs this build")
    }

    private func read(_ read: DirectoryRead) async throws(RequestFailure) -> [UInt8] {
        let node = administration.service.node
        return try await ask(await node.router.read(read.encoded(), from: .directory, by: node.deadline()))
    }

    /// Whose records the administrator may see: an admin of the cluster all, anybody else what they did themselves.
    private func visibleActors() throws(RequestFailure) -> [String]? {
        let access = try administration.access
        return access.isClusterAdmin ? nil : access.actors
    }
}
