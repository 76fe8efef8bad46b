import Cluster
package import Directory
import RecordModel
import Wire

/// Who may use the console, and their sessions there, as typed calls.
///
/// A session is a row of the directory, so its end holds on every node at once (decision 0008); its use is in the
/// browser's cookie, so it costs no write. Links are rows as well: whichever nodes get one at the same time, the
/// directory's log has one of them first.
package struct ConsoleAccess: Sendable {
    private let service: RecordService
    /// For one question to the cluster, from when it is asked.
    private var deadline: Deadline { service.node.deadline() }

    package init(_ service: RecordService) { self.service = service }

    /// A secret and until when it is good, in milliseconds since 1970.
    package struct Link: Sendable {
        package var secret: String
        package var expires: Int64
    }

    // MARK: Who asks

    /// The administrator of a token of their own, or of the nodes' (nil).
    package func access(named name: String?, session: ConsoleSession? = nil) -> AdministratorAccess {
        guard let name else { return AdministratorAccess(name: nil, role: .admin, session: session) }
        let known = service.node.directory.snapshot.administrator(named: name)
        return AdministratorAccess(
            name: name, role: known?.role ?? .admin, containers: known?.containers, session: session)
    }

    /// The administrator whose session has a secret.
    /// - Parameter lastUsed: when the browser used it the time before, in milliseconds since 1970.
    /// - Returns: nil where the session is over, or never was.
    package func access(
        withSessionSecret secret: String, lastUsed: Int64
    ) async throws(RequestFailure) -> AdministratorAccess? {
        do throws(ClusterError) { try await service.node.requireDirectory() } catch { throw RequestFailure(error) }
        if let access = try knownAccess(secret, lastUsed) { return access }
        try await service.refreshDirectory()
        return try knownAccess(secret, lastUsed)
    }

    private func knownAccess(_ secret: String, _ lastUsed: Int64) throws(RequestFailure) -> AdministratorAccess? {
        guard let token = service.node.directory.snapshot.token(withSecret: secret),
            case .console(let name, let expires) = token.kind
        else { return nil }
        let session = ConsoleSession(
            id: token.id, secret: secret, began: token.created, expires: expires, lastUsed: lastUsed)
        guard try service.trustedNow() < session.idleExpires else { return nil }
        return access(named: name.isEmpty ? nil : name, session: session)
    }

    // MARK: Signing in

    /// A link that opens the console once, as the administrator `name`; nil is the nodes' own token.
    package func makeLink(
        for name: String?, id: String, secret: String, origin: AuditOrigin
    ) async throws(RequestFailure) -> Link {
        let now = try service.trustedNow()
        let expires = now + ConsoleSession.linkMilliseconds
        let token = Token(
            id: id, secretHash: Token.hash(ofSecret: secret), kind: .consoleLink(name: name ?? "", expires: expires),
            label: "", created: now)
        try await enter(.makeLink(token), origin)
        return Link(secret: secret, expires: expires)
    }

    /// Begins a session by a link, which is worth nothing afterwards.
    /// - Parameters:
    ///   - secret: the link's.
    ///   - begin: what the session begins with.
    /// - Throws: `AUTHENTICATION_FAILED` where the link was used, is over, or never was.
    package func signIn(link secret: String, _ begin: SignIn) async throws(RequestFailure) -> AdministratorAccess {
        let hash = Token.hash(ofSecret: secret)
        var link = service.node.directory.snapshot.token(withSecret: secret)
        if link == nil {
            try await service.refreshDirectory()
            link = service.node.directory.snapshot.token(withSecret: secret)
        }
        guard let link, case .consoleLink(let name, _) = link.kind else {
            throw RequestFailure(
                .authenticationFailed,
                "the link was used already, or its minute is over: `zonekeeper console open` makes another one")
        }
        return try await self.begin(begin, name: name, .link(secretHash: hash))
    }

    /// What is known of a name that somebody wants to sign in with.
    package struct Attempt: Sendable {
        /// Nil where no administrator has the name, or that one has no password.
        package var password: PasswordHash?
        package var lockout: Lockout?
    }

    /// Looks a name up, with every change that was acknowledged before this call.
    package func attempt(on name: String) async throws(RequestFailure) -> Attempt {
        try await service.refreshDirectory()
        guard let password = service.node.directory.snapshot.administrator(named: name)?.password else {
            return Attempt()
        }
        let lockout = try await service.accounts.read { try $0.lockout(of: Administrator.lockoutKey(name)) }
        return Attempt(password: password, lockout: lockout)
    }

    /// Begins a session of the administrator whose password was right.
    package func signIn(
        name: String, _ password: PasswordHash, _ begin: SignIn
    ) async throws(RequestFailure) -> AdministratorAccess {
        try await self.begin(begin, name: name, .password(fingerprint: password.fingerprint))
    }

    /// Counts a wrong password.
    /// - Parameter name: nil where no administrator with a password has it; the audit log does not have what was typed
    ///   then, as it may be a password.
    package func noteFailure(_ name: String?, origin: AuditOrigin) async throws(RequestFailure) {
        if let name { return try await enter(.noteFailure(name: name, time: origin.time), origin) }
        let event = AuditEvent(
            origin: origin, action: "sign-in", subject: "a name that no administrator has",
            outcome: "refused: unknown name, or no password")
        try await service.enter(DirectoryEntry(nil, events: [event]), by: deadline)
    }

    /// What a session begins with.
    package struct SignIn: Sendable {
        /// Of the session to be: no secret.
        package var id: String
        package var secret: String
        /// The session that the browser had before.
        package var replacedID: String?
        package var requestID: String
        package var address: String?

        package init(id: String, secret: String, replacedID: String?, requestID: String, address: String?) {
            self.id = id
            self.secret = secret
            self.replacedID = replacedID
            self.requestID = requestID
            self.address = address
        }

        fileprivate func origin(_ service: RecordService, actor: String) -> AuditOrigin {
            AuditOrigin(actor: actor, requestID: requestID, address: address ?? "", time: service.now)
        }
    }

    private func begin(
        _ begin: SignIn, name: String, _ proof: ConsoleProof
    ) async throws(RequestFailure) -> AdministratorAccess {
        let now = try service.trustedNow()
        let session = ConsoleSession(
            id: begin.id, secret: begin.secret, began: now, expires: now + ConsoleSession.lifetimeMilliseconds,
            lastUsed: now)
        let token = Token(
            id: session.id, secretHash: Token.hash(ofSecret: session.secret),
            kind: .console(name: name, expires: session.expires), label: "", created: now)
        let access = access(named: name.isEmpty ? nil : name, session: session)
        try await enter(
            .beginSession(token, proof, replacing: begin.replacedID ?? ""), begin.origin(service, actor: access.actor))
        return self.access(named: access.name, session: session)
    }

    // MARK: Sessions

    /// Ends a session; when it returns, no node takes it any more.
    package func end(_ session: ConsoleSession, origin: AuditOrigin) async throws(RequestFailure) {
        try await settle(.revokeToken(id: session.id), origin)
    }

    // MARK: The team

    /// The team, sorted by name, with those who have a token only.
    package func administrators() async throws(RequestFailure) -> [Administrator] {
        try await service.refreshDirectory()
        return service.node.directory.snapshot.team
    }

    package func create(_ administrator: Administrator, origin: AuditOrigin) async throws(RequestFailure) {
        try await requireLevel()
        try await settle(.console(.save(administrator, isNew: true)), origin)
    }

    /// Changes the role, or where it holds.
    /// - Parameter change: is given the administrator as they are.
    /// - Throws: `NOT_FOUND` where there is none of that name.
    package func update(
        _ name: String, origin: AuditOrigin, _ change: (inout Administrator) throws(RequestFailure) -> Void
    ) async throws(RequestFailure) {
        try await requireLevel()
        guard var administrator = try await administrators().first(where: { $0.name == name }) else {
            throw RequestFailure(
                .notFound, "no administrator '\(name)': `zonekeeper administrator list` shows those that exist")
        }
        try change(&administrator)
        try await settle(.console(.save(administrator, isNew: false)), origin)
    }

    /// Removes an administrator; their token, links and sessions end on every node.
    package func remove(_ name: String, origin: AuditOrigin) async throws(RequestFailure) {
        try await requireLevel()
        try await settle(.console(.remove(name: name)), origin)
    }

    /// Sets a password, or takes it away; all sessions end but one.
    package func setPassword(
        _ password: PasswordHash?, of name: String, keeping session: ConsoleSession? = nil, origin: AuditOrigin
    ) async throws(RequestFailure) {
        try await requireLevel()
        let command = ConsoleCommand.setPassword(
            name: name, password, keepingSession: session?.id ?? "", time: origin.time)
        try await settle(.console(command), origin)
    }

    /// Makes the holder of a session that the nodes' token began an administrator with the role `admin`.
    package func found(
        _ name: String, _ password: PasswordHash, _ session: ConsoleSession, origin: AuditOrigin
    ) async throws(RequestFailure) {
        let administrator = Administrator(
            name: name, role: .admin, password: password, created: origin.time, lastSignIn: session.began)
        try await settle(.console(.found(administrator, session: session.id)), origin)
    }

    // MARK: The directory

    private func enter(_ command: ConsoleCommand, _ origin: AuditOrigin) async throws(RequestFailure) {
        try await requireLevel()
        try await service.enter(DirectoryEntry(.console(command), origin: origin), by: deadline)
    }

    private func settle(_ command: DirectoryCommand, _ origin: AuditOrigin) async throws(RequestFailure) {
        switch try await service.settle(command, origin: origin, by: deadline) {
        case .refused(let error): throw RequestFailure(error)
        case .done: await service.catchUp()
        }
    }

    /// - Throws: `TRY_AGAIN_LATER` while a node of the cluster runs a build that does not know the console's commands.
    private func requireLevel() async throws(RequestFailure) {
        let level = await service.node.status().first { $0.group == .directory }?.level ?? .first
        guard level >= .console else {
            throw RequestFailure(
                ServiceError.nothingDone(
                    "the console needs feature level \(FeatureLevel.console), which comes into force once "
                        + "every node runs this build; see `zonekeeper cluster status`"))
        }
    }
}
