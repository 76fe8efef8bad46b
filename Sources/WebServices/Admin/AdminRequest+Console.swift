import Admission
import Cluster
import Directory
import RecordModel
import Service

// Signing in to the console, and out of it.
extension AdminRequest {
    private var console: ConsoleAccess { ConsoleAccess(context.service) }

    /// `POST console/links`: a link that opens the console once, for the holder of the token.
    func makeConsoleLink() async throws(RequestFailure) -> Reply {
        let access = try access
        guard access.session == nil else {
            throw RequestFailure(.accessDenied, "a link to the console is made with an administrator's token")
        }
        let link = try await console.makeLink(
            for: access.name, id: Self.randomHex(bytes: 8), secret: Self.randomHex(bytes: 32), origin: origin)
        return Reply { writer in
            writer.member("url", "\(serverURL)/console/#link=\(link.secret)")
            writer.member("secret", link.secret)
            writer.member("expires", integer: link.expires)
        }
    }

    /// `POST console/sign-in`: by a link, or by a name and a password.
    func signInToConsole() async throws(RequestFailure) -> Reply {
        try context.identity.countSignInAttempt(of: origin.address)
        let secret = try await context.service.requireSecret()
        let begin = ConsoleAccess.SignIn(
            id: Self.randomHex(bytes: 8), secret: Self.randomHex(bytes: 32), replacedID: caller?.session?.id,
            requestID: origin.requestID, address: origin.address)
        let access: AdministratorAccess
        if let link = try json["link"]?.string {
            access = try await console.signIn(link: link, begin)
        } else {
            access = try await signInToConsole(name: try text("name"), password: try text("password"), begin)
        }
        var reply = Self.reply(of: access, in: context, secret)
        if let session = access.session { reply.headers.append(ConsoleCookie(session).header(secret)) }
        return reply
    }

    /// Unknown names, and administrators without a password, are refused like wrong passwords, after as much work.
    private func signInToConsole(
        name: String, password: String, _ begin: ConsoleAccess.SignIn
    ) async throws(RequestFailure) -> AdministratorAccess {
        let hash = try await knownPassword(of: name)
        let isRight: Bool
        do throws(ServiceError) {
            isRight = try await context.identity.hash { () throws(ServiceError) in
                PasswordHasher.matches(password, hash)
            }
        } catch {
            throw RequestFailure(error)
        }
        guard isRight, let hash else {
            if hash == nil { context.identity.decoys.note(Administrator.lockoutKey(name), time: context.service.now) }
            var origin = origin
            origin.actor = "somebody"
            try await console.noteFailure(hash == nil ? nil : name, origin: origin)
            throw RequestFailure(.authenticationFailed, "The name or the password is not right.")
        }
        // Others may have been guessing meanwhile.
        _ = try await knownPassword(of: name)
        return try await console.signIn(name: name, hash, begin)
    }

    /// - Throws: `THROTTLED` where the name is locked.
    private func knownPassword(of name: String) async throws(RequestFailure) -> PasswordHash? {
        let attempt = try await console.attempt(on: name)
        let now = context.service.now
        let lockout =
            attempt.password == nil
            ? context.identity.decoys.lockout(of: Administrator.lockoutKey(name)) : attempt.lockout
        if let lockout, lockout.isLocked(at: now) {
            let seconds = max(1, (lockout.lockedUntil - now + 999) / 1_000)
            throw RequestFailure(
                ServiceError(
                    .throttled, "Too many wrong passwords for this name: try again in \(SignInRequest.words(seconds)).",
                    retryAfterSeconds: Double(seconds)))
        }
        return attempt.password
    }

    /// `GET console/me`: who asks, and until when they may.
    func consoleCaller() async throws(RequestFailure) -> Reply {
        Self.reply(of: try access, in: context, try await context.service.requireSecret())
    }

    /// `POST console/password`: sets the password of the session's administrator. Who came by a link of the nodes'
    /// token says which name is theirs from now on.
    func setConsolePassword() async throws(RequestFailure) -> Reply {
        let (access, secret) = (try access, try await context.service.requireSecret())
        guard let session = access.session else {
            throw RequestFailure(
                .badRequest, "a session in the console is expected; set others' passwords with PATCH administrators")
        }
        let name = if let own = access.name { own } else { try administratorName() }
        let hash = try await context.passwordHash(try text("password"))
        if access.name == nil {
            try await console.found(name, hash, session, origin: origin)
        } else {
            try await console.setPassword(hash, of: name, keeping: session, origin: origin)
        }
        return Self.reply(of: console.access(named: name, session: session), in: context, secret)
    }

    /// `POST console/sign-out`: ends the session, on all nodes when it is answered.
    func signOutOfConsole() async throws(RequestFailure) -> Reply {
        guard let session = try access.session else {
            throw RequestFailure(.badRequest, "a session in the console is expected; tokens are revoked")
        }
        let secret = try await context.service.requireSecret()
        try await console.end(session, origin: origin)
        var reply = Reply { $0.member("signedOut", true) }
        reply.headers.append(ConsoleCookie.removal(secret))
        return reply
    }

    private static func reply(of access: AdministratorAccess, in context: WebContext, _ secret: ClusterSecret) -> Reply
    {
        let directory = context.service.node.directory.snapshot
        let hasPassword = access.name.flatMap { directory.administrator(named: $0) }?.password != nil
        return Reply { writer in
            writer.key("name")
            if let name = access.name { writer.string(name) } else { writer.null() }
            writer.member("role", access.role.rawValue)
            writer.key("containers")
            Self.write(access.containers, to: &writer)
            guard let session = access.session else { return }
            writer.member("csrfToken", ConsoleCookie.csrfToken(of: session, secret))
            writer.member("idleExpires", integer: session.idleExpires)
            writer.member("expires", integer: session.expires)
            writer.member("freshUntil", integer: session.freshUntil)
            writer.member("needsPassword", !hasPassword)
        }
    }

    static func write(_ containers: [String]?, to writer: inout JSONWriter) {
        guard let containers else { return writer.null() }
        writer.array { writer in for name in containers { writer.string(name) } }
    }
}
