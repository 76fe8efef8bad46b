import Cluster
package import Directory
import RecordModel
import Wire

/// Which administrator a credential of theirs belongs to.
package struct ConsoleAccess: Sendable {
    private let service: RecordService

    /// By what a node knows.
    package init(_ service: RecordService) { self.service = service }

    /// The administrator of a token of their own, or of the nodes' (nil), with the role that they have now.
    /// - Throws: `ACCESS_DENIED` where nobody of the name administers any more.
    package func access(
        named name: String?, session: ConsoleSession? = nil
    ) throws(RequestFailure) -> AdministratorAccess {
        guard let name else { return AdministratorAccess(name: nil, role: .admin, session: session) }
        guard let known = service.directory.teamMember(named: name) else {
            throw .accessDenied("'\(name)' is no administrator any more")
        }
        return AdministratorAccess(name: name, role: known.role, containers: known.containers, session: session)
    }

    /// The administrator whose session has a secret.
    /// - Parameter lastUsed: when the browser used it the time before, in milliseconds since 1970.
    /// - Returns: nil where the session is over, or never was.
    package func access(
        withSessionSecret secret: String, lastUsed: Int64
    ) async throws(RequestFailure) -> AdministratorAccess? {
        try await service.cluster.requireDirectory()
        if let access = try knownAccess(secret, lastUsed) { return access }
        try await service.cluster.refreshDirectory()
        return try knownAccess(secret, lastUsed)
    }

    private func knownAccess(_ secret: String, _ lastUsed: Int64) throws(RequestFailure) -> AdministratorAccess? {
        guard let token = service.directory.token(withSecret: secret),
            case .console(let name, let expires) = token.kind
        else { return nil }
        let session = ConsoleSession(
            id: token.id, secret: secret, began: token.created, expires: expires, lastUsed: lastUsed)
        guard try service.trustedNow() < session.idleExpires else { return nil }
        return try access(named: name.isEmpty ? nil : name, session: session)
    }
}

/// Signing in to the console and out of it, and the team of administrators, as typed calls.
///
/// A session is a row of the directory, so its end holds on every node at once (decision 0008); its use is in the
/// browser's cookie, so it costs no write. Links are rows as well: whichever nodes get one at the same time, the
/// directory's log has one of them first.
package struct ConsoleAdministration: Sendable {
    /// A secret and until when it is good, in milliseconds since 1970.
    package typealias Link = (secret: String, expires: Int64)

    let administration: Administration
    private var service: RecordService { administration.service }
    private var console: ConsoleAccess { ConsoleAccess(service) }

    // MARK: Signing in

    /// A link that opens the console once, for the holder of an administrator's token.
    package func makeLink() async throws(RequestFailure) -> Link {
        let access = try administration.access
        guard access.session == nil else {
            throw .accessDenied("a link to the console is made with an administrator's token")
        }
        let now = try service.trustedNow()
        let link = (secret: service.randomHex(bytes: 32), expires: now + ConsoleSession.linkMilliseconds)
        let token = Token(
            id: service.randomHex(bytes: 8), secretHash: Token.hash(ofSecret: link.secret),
            kind: .consoleLink(name: access.name ?? "", expires: link.expires), label: "", created: now)
        try await enter(.makeLink(token), administration.origin)
        return link
    }

    /// Begins a session by a link, which is worth nothing afterwards.
    /// - Throws: `AUTHENTICATION_FAILED` where the link was used, is over, or never was; `THROTTLED` where the address
    ///   tried too often.
    package func signIn(link secret: String) async throws(RequestFailure) -> AdministratorAccess {
        try await beginAttempt()
        var link = service.directory.token(withSecret: secret)
        if link == nil { link = try await service.cluster.newestDirectory().token(withSecret: secret) }
        guard let link, case .consoleLink(let name, _) = link.kind else {
            throw .authenticationFailed(
                "the link was used already, or its minute is over: `zonekeeper console open` makes another one")
        }
        return try await begin(name, .link(secretHash: Token.hash(ofSecret: secret)))
    }

    /// Begins a session by a password. Unknown names, and administrators without a password, are refused like wrong
    /// passwords, after as much work.
    /// - Parameter browser: the browser, where an administrator signed in from it before. From there, and from an
    ///   address of an earlier sign-in, attempts are counted for themselves: others who guess lock nobody out.
    /// - Throws: `AUTHENTICATION_FAILED`; `THROTTLED` where the name is locked, or the address tried too often.
    package func signIn(
        name: String, password: String, from browser: KnownBrowser?
    ) async throws(RequestFailure) -> AdministratorAccess {
        try await beginAttempt()
        let (key, places) = (Administrator.lockoutKey(name), service.signIns.places)
        let place = places.place(
            of: key, browser: browser, address: administration.origin.address, now: service.now)
        let hash = try await knownPassword(of: name, at: place)
        guard try await service.accounts.isRight(password, for: hash), let hash else {
            if let place { places.lockouts.note(place, time: service.now) }
            if hash == nil { service.signIns.decoys.note(key, time: service.now) }
            try await noteFailure(hash == nil ? nil : name)
            throw .authenticationFailed("The name or the password is not right.")
        }
        // Others may have been guessing meanwhile.
        _ = try await knownPassword(of: name, at: place)
        return try await begin(name, .password(fingerprint: hash.fingerprint))
    }

    /// What the browser keeps of a sign-in, so that it is known from then on; nil where it is nobody's with a name, or
    /// the node has no encryption key.
    package func knownBrowser(of access: AdministratorAccess) -> String? {
        guard let name = access.name, let signer = service.signer else { return nil }
        let browser = KnownBrowser(accountID: Administrator.lockoutKey(name), id: service.randomHex(bytes: 16))
        return browser.sealed(by: signer, now: service.now)
    }

    private func beginAttempt() async throws(RequestFailure) {
        try service.signIns.count(of: administration.origin.address, now: service.uptime)
        _ = try await service.requireSecret()
    }

    /// The password of a name, with every change that was acknowledged before this call; nil where no administrator has
    /// the name, or that one has no password.
    /// - Throws: `THROTTLED` where the name is locked, or the place if it is known.
    private func knownPassword(of name: String, at place: String?) async throws(RequestFailure) -> PasswordHash? {
        let password = try await service.cluster.newestDirectory().administrator(named: name)?.password
        let key = Administrator.lockoutKey(name)
        let lockout =
            password == nil
            ? service.signIns.decoys.lockout(of: key) : try await service.accounts.read { try $0.lockout(of: key) }
        try SignInAttempts.require(service.signIns.lockout(at: place, else: lockout), isOverAt: service.now)
        return password
    }

    /// Counts a wrong password.
    /// - Parameter name: nil where no administrator with a password has it; the audit log does not have what was typed
    ///   then, as it may be a password.
    private func noteFailure(_ name: String?) async throws(RequestFailure) {
        var origin = administration.origin
        origin.actor = "somebody"
        if let name { return try await enter(.noteFailure(name: name, time: origin.time), origin) }
        let event = AuditEvent(
            origin: origin, action: "sign-in", subject: "a name that no administrator has",
            outcome: "refused: unknown name, or no password")
        try await service.cluster.enter(DirectoryEntry(nil, events: [event]), by: service.deadline())
    }

    private func begin(_ name: String, _ proof: ConsoleProof) async throws(RequestFailure) -> AdministratorAccess {
        let now = try service.trustedNow()
        let session = ConsoleSession(
            id: service.randomHex(bytes: 8), secret: service.randomHex(bytes: 32), began: now,
            expires: now + ConsoleSession.lifetimeMilliseconds, lastUsed: now)
        let token = Token(
            id: session.id, secretHash: Token.hash(ofSecret: session.secret),
            kind: .console(name: name, expires: session.expires), label: "", created: now)
        let access = try console.access(named: name.isEmpty ? nil : name, session: session)
        var origin = administration.origin
        origin.actor = access.actor
        let replaced = administration.caller?.session?.id ?? ""
        try await enter(.beginSession(token, proof, replacing: replaced), origin)
        if let name = access.name {
            service.signIns.places.didSignIn(Administrator.lockoutKey(name), address: origin.address, now: now)
        }
        return try console.access(named: access.name, session: session)
    }

    /// Ends the caller's session; when it returns, no node takes it any more.
    package func signOut() async throws(RequestFailure) {
        guard let session = try administration.access.session else {
            throw .badRequest("a session in the console is expected; tokens are revoked")
        }
        try await administration.change(.revokeToken(id: session.id))
    }

    /// A token of the session's administrator, such as for the command line; they have one at most.
    package func makeToken(label: String) async throws(RequestFailure) -> (token: Token, secret: String) {
        let access = try administration.access
        guard let name = access.name, let session = access.session else {
            throw .badRequest("a session in the console, of an administrator with a name, is expected")
        }
        return try await administration.tokens.create(.administrator(name: name), label: label, in: session)
    }

    /// Sets the password of the session's administrator; the others of their sessions end. The holder of a session that
    /// the nodes' token began becomes an administrator of the name, with the role `admin`.
    package func setOwnPassword(
        _ password: String, name: String
    ) async throws(RequestFailure) -> AdministratorAccess {
        let access = try administration.access
        let hash = try await administration.service.hash(ofPassword: password)
        if access.name == nil, let session = access.session {
            let administrator = Administrator(
                name: name, role: .admin, password: hash, created: administration.origin.time,
                lastSignIn: session.began)
            try await administration.change(.console(.found(administrator, session: session.id)))
        } else {
            try await setPassword(hash, of: name, keeping: access.session?.id)
        }
        _ = try await service.cluster.newestDirectory()
        return try console.access(named: name, session: access.session)
    }

    // MARK: The team

    /// The team, sorted by name, with those who have a token only.
    package func team() async throws(RequestFailure) -> [Administrator] {
        try await service.cluster.newestDirectory().team
    }

    /// Makes somebody an administrator.
    package func create(
        _ name: String, _ role: AdministratorRole, _ changes: AdministratorChanges
    ) async throws(RequestFailure) -> Administrator {
        var administrator = Administrator(name: name, role: role, created: service.now)
        if let containers = changes.containers { administrator.containers = containers }
        administrator.password = try await hash(of: changes)
        try await requireLevel()
        try await administration.change(.console(.save(administrator, isNew: true)))
        return administrator
    }

    /// - Returns: the administrator as they are then.
    /// - Throws: `NOT_FOUND` where there is none of that name.
    package func update(
        _ name: String, _ changes: AdministratorChanges
    ) async throws(RequestFailure) -> Administrator {
        let hash = try await hash(of: changes)
        if changes.role != nil || changes.containers != nil {
            try await administration.requireLevel(.partialChanges)
            let command = AdministrationCommand.changeAdministrator(
                name: name, role: changes.role, containers: changes.containers)
            try await administration.change(.administration(command))
        }
        if changes.password != .unchanged { try await setPassword(hash, of: name) }
        if let administrator = try await team().first(where: { $0.name == name }) { return administrator }
        throw .notFound("the administrator '\(name)' was removed meanwhile")
    }

    private func hash(of changes: AdministratorChanges) async throws(RequestFailure) -> PasswordHash? {
        guard case .set(let password) = changes.password else { return nil }
        return try await administration.service.hash(ofPassword: password)
    }

    /// Removes an administrator; their token, links and sessions end on every node.
    package func remove(_ name: String) async throws(RequestFailure) {
        try await requireLevel()
        try await administration.change(.console(.remove(name: name)))
    }

    /// Sets a password, or takes it away; all sessions end but one.
    private func setPassword(
        _ password: PasswordHash?, of name: String, keeping session: String? = nil
    ) async throws(RequestFailure) {
        try await requireLevel()
        let command = ConsoleCommand.setPassword(
            name: name, password, keepingSession: session ?? "", time: administration.origin.time)
        try await administration.change(.console(command))
    }

    private func enter(_ command: ConsoleCommand, _ origin: AuditOrigin) async throws(RequestFailure) {
        try await requireLevel()
        try await service.cluster.enter(DirectoryEntry(.console(command), origin: origin), by: service.deadline())
    }

    /// - Throws: `TRY_AGAIN_LATER` while a node of the cluster runs a build that does not know the console's commands.
    private func requireLevel() async throws(RequestFailure) {
        let level = await service.node.status().first { $0.group == .directory }?.level ?? .first
        guard level >= .console else {
            throw .nothingDone(
                "the console needs feature level \(FeatureLevel.console), which comes into force once "
                    + "every node runs this build; see `zonekeeper cluster status`")
        }
    }
}

/// What is changed of an administrator; what is nil stays as it is.
package struct AdministratorChanges: Sendable {
    /// What they may do.
    package var role: AdministratorRole?
    /// Where the role holds; a value that is nil is the whole cluster.
    package var containers: [String]??
    /// All of their sessions end where it changes.
    package var password = SecretChange.unchanged

    /// Nothing.
    package init() {}
}
