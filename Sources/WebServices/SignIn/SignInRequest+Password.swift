import Admission
import Cluster
import Directory
import NIOCore
import RecordModel
import Service

// Signing in with a name and a password.
extension SignInRequest {
    func showSignIn() async throws(RequestFailure) -> Reply {
        let ticket = url["ticket"]
        let goal = try await goal(ofTicket: ticket)
        let cookie = BrowserCookie(header: headers.cookie) ?? BrowserCookie()
        return page(.signIn, for: goal, ticket: ticket ?? "", cookie: cookie).page.reply(cookie: cookie)
    }

    func signInWithForm() async throws(RequestFailure) -> Reply {
        let form = SignInForm(urlEncoded: body)
        let goal = try await goal(ofTicket: form["ticket"])
        let cookie = try checkedCookie(form, goal)
        if form["cancel"] != nil { return cancel(goal) }
        if let provider = form["provider"] {
            let url = try await authorizationURL(
                provider: provider, goal: goal, browser: cookie, keepsSignedIn: form.keepsSignedIn)
            return ContinuePage(provider: provider, url: url).page.reply()
        }
        do throws(RequestFailure) {
            let account = try await account(withName: form["name"] ?? "", password: form["password"] ?? "")
            let session = try await beginSession(
                of: account, by: Self.proof(account), for: goal, keepsSignedIn: form.keepsSignedIn)
            return finish(session, of: account, for: goal)
        } catch {
            return again(.signIn, form, goal, cookie, error)
        }
    }

    /// A program that asks its user itself.
    func signInWithJSON() async throws(RequestFailure) -> Reply {
        let form = try SignInForm(json: body)
        let goal = try await goal(ofAPIToken: try form.need("apiToken"))
        let account = try await account(withName: try form.need("name"), password: try form.need("password"))
        return Self.reply(
            try await beginSession(
                of: account, by: Self.proof(account), for: goal, keepsSignedIn: form.keepsSignedIn))
    }

    /// That the account's password was given, which is looked at again when the session begins.
    static func proof(_ account: Account) -> SignInBasis.Proof {
        .password(fingerprint: account.password?.fingerprint ?? [])
    }

    static func reply(_ session: BegunSession) -> Reply {
        var reply = Reply { writer in
            writer.member("ckWebAuthToken", session.webAuthToken)
            writer.member("userRecordName", session.userRecordName)
            writer.member("expires", integer: session.expires)
        }
        reply.headers.append(("cache-control", "no-store"))
        return reply
    }

    /// The form once more, with what was wrong.
    func again(
        _ kind: SignInPage.Kind, _ form: SignInForm, _ goal: SignInGoal, _ cookie: BrowserCookie,
        _ failure: RequestFailure
    ) -> Reply {
        var page = page(kind, for: goal, ticket: form["ticket"] ?? "", cookie: cookie)
        report(failure)
        page.problem = failure.error.reason
        page.requestID = uuid
        page.name = form["name"] ?? ""
        page.keepsSignedIn = form.keepsSignedIn
        return page.page.reply(failure: failure, cookie: cookie)
    }

    func page(
        _ kind: SignInPage.Kind, for goal: SignInGoal, ticket: String, cookie: BrowserCookie
    ) -> SignInPage {
        let directory = context.service.node.directory.snapshot
        var page = SignInPage(
            kind: kind, ticket: ticket, cookie: cookie, container: goal.container,
            isDevelopment: goal.environment == .development)
        page.asker = goal.callbackURL == nil ? goal.audience.first : nil
        if kind == .signIn { page.providers = directory.providers.map(\.name) }
        page.isSignUpOpen = directory.isSignUpOpen
        page.callbackOrigin = goal.callbackURL.flatMap { URLText.origin(of: $0) }
        return page
    }

    /// The browser that the form was shown to.
    /// - Throws: `BAD_REQUEST` where it was posted by another page or another browser.
    func checkedCookie(_ form: SignInForm, _ goal: SignInGoal) throws(RequestFailure) -> BrowserCookie {
        if let origin = headers.origin, let own = goal.pageOrigin, !OriginRule.allows(origin, [own]) {
            throw RequestFailure(
                .badRequest, "The form was sent by a page of another place (\(origin)), and this one belongs to \(own)."
            )
        }
        guard let cookie = BrowserCookie(header: headers.cookie), cookie.matches(form["check"]) else {
            throw RequestFailure(
                .badRequest,
                "The form has no cookie of this page with it. Allow cookies for this site, go back to the app and sign in again."
            )
        }
        return cookie
    }
}

// Attempts.
extension SignInRequest {
    private static let wrong = "The name or the password is not right."

    /// The account of a name, where the password is right. Unknown names, and accounts without a password, are refused
    /// like wrong passwords, after as much work.
    ///
    /// - Throws: `AUTHENTICATION_FAILED`, and `THROTTLED` while too many attempts failed: of this address, or for this
    ///   name.
    func account(withName name: String, password: String) async throws(RequestFailure) -> Account {
        try countAttempt()
        // A password that was changed, or a lock-out, at another node must not be unknown here.
        try await context.service.refreshDirectory()
        let attempt = try await self.attempt(on: name)
        try refuseIfLocked(attempt)
        let hash = attempt.account?.password
        let isRight: Bool
        do throws(ServiceError) {
            isRight = try await context.identity.hash { () throws(ServiceError) in
                PasswordHasher.matches(password, hash)
            }
        } catch {
            throw RequestFailure(error)
        }
        guard isRight, let account = attempt.account else {
            try await noteFailure(attempt)
            throw RequestFailure(.authenticationFailed, wrongText(try await self.attempt(on: name)))
        }
        // Others may have been guessing meanwhile, and the password may have been changed.
        try await context.service.refreshDirectory()
        let current = try await self.attempt(on: name)
        try refuseIfLocked(current)
        guard let same = current.account, same.id == account.id, same.password == hash else {
            throw RequestFailure(.authenticationFailed, Self.wrong)
        }
        return same
    }

    private func attempt(on name: String) async throws(RequestFailure) -> SignInAttempt {
        let (account, counted) = try await context.service.accounts.read { reader in
            let account = try reader.account(named: name)
            return (account, try account.flatMap { try reader.lockout(of: $0.id) })
        }
        var attempt = SignInAttempt(name: name, account: account, place: place(of: account))
        if let place = attempt.place {
            attempt.lockout = context.identity.places.lockouts.lockout(of: place)
        } else if account?.password == nil {
            // An account without a password is to look like an unknown name.
            attempt.lockout = context.identity.decoys.lockout(of: name)
        } else {
            attempt.lockout = counted
        }
        return attempt
    }

    private func place(of account: Account?) -> String? {
        guard let account, let signer = context.service.signer else { return nil }
        let now = context.service.now
        return context.identity.places.place(
            of: account.id, browser: KnownBrowser(header: headers.cookie, signer: signer, now: now),
            address: remoteAddress ?? "", now: now)
    }

    private func refuseIfLocked(_ attempt: SignInAttempt) throws(RequestFailure) {
        let now = context.service.now
        guard let lockout = attempt.lockout, lockout.isLocked(at: now) else { return }
        let seconds = Self.secondsLeft(lockout, now)
        throw RequestFailure(
            ServiceError(
                .throttled, "Too many wrong passwords for this name: try again in \(Self.words(seconds)).",
                retryAfterSeconds: Double(seconds)))
    }

    private func wrongText(_ attempt: SignInAttempt) -> String {
        let now = context.service.now
        guard let lockout = attempt.lockout, lockout.isLocked(at: now) else { return Self.wrong }
        return Self.wrong + " Try again in \(Self.words(Self.secondsLeft(lockout, now)))."
    }

    private func noteFailure(_ attempt: SignInAttempt) async throws(RequestFailure) {
        let now = context.service.now
        let account = attempt.account
        if let place = attempt.place { context.identity.places.lockouts.note(place, time: now) }
        if let account, account.password != nil {
            try await enter(.noteSignInFailure(accountID: account.id, time: now), by: "somebody")
            return
        }
        context.identity.decoys.note(attempt.name, time: now)
        // What was typed as a name may be a password: the log does not have it.
        try await note(
            subject: account.map { "user \($0.name)" } ?? "a name that no account has",
            outcome: account == nil ? "refused: unknown name" : "refused: the account has no password")
    }

    private static func secondsLeft(_ lockout: Lockout, _ now: Int64) -> Int64 {
        max(1, (lockout.lockedUntil - now + 999) / 1_000)
    }

    /// Such as `1 second` or `15 minutes`.
    static func words(_ seconds: Int64) -> String {
        let (count, unit) = seconds < 100 ? (seconds, "second") : ((seconds + 59) / 60, "minute")
        return count == 1 ? "1 \(unit)" : "\(count) \(unit)s"
    }
}

/// What the directory says of a name that somebody wants to sign in with.
private struct SignInAttempt {
    var name: String
    var account: Account?
    var lockout: Lockout?
    /// A name for where the request comes from, where somebody signed in to the account from there before: attempts
    /// from there are counted for themselves, so that others cannot lock the owner out.
    var place: String?
}

extension IdentityServices {
    /// Counts an attempt to sign in or up.
    /// - Throws: `THROTTLED` where there were too many from this address.
    func countSignInAttempt(of address: String) throws(RequestFailure) {
        let now = NIODeadline.now().uptimeNanoseconds
        guard signInAttempts.decide(address, now: now) else {
            let seconds = max(1, signInAttempts.retryAfterSeconds(address, now: now).rounded(.up))
            throw RequestFailure(
                ServiceError(
                    .throttled,
                    "Too many attempts from this address: try again in \(SignInRequest.words(Int64(seconds))).",
                    retryAfterSeconds: seconds))
        }
    }
}
