import Admission
import Cluster
import Directory
import RecordModel
import Service

/// A session that was begun, as its user gets it.
struct BegunSession: Sendable {
    var webAuthToken: String
    var userRecordName: String
    /// Milliseconds since 1970.
    var expires: Int64
}

// Sessions: beginning them, telling the app, and ending them.
extension SignInRequest {
    /// How long a session lasts without and with "keep me signed in".
    static let lifetimeMilliseconds: (short: Int64, kept: Int64) = (30 * 60_000, 14 * 86_400_000)

    /// Begins a session of an account, whose owner has shown who they are.
    /// - Throws: `AUTHENTICATION_FAILED` where that, or the app's API token, is worth nothing any more by now.
    func beginSession(
        of account: Account, by proof: SignInBasis.Proof, for goal: SignInGoal, keepsSignedIn: Bool
    ) async throws(RequestFailure) -> BegunSession {
        let signer = try context.service.requireSigner()
        let id = AdminRequest.randomHex(bytes: 8)
        let now = context.service.now
        let expires = now + (keepsSignedIn ? Self.lifetimeMilliseconds.kept : Self.lifetimeMilliseconds.short)
        let session = Token(
            sessionID: id, container: goal.container, accountID: account.id, expires: expires, label: "sign-in",
            created: now)
        let basis = SignInBasis(proof, apiTokenID: goal.token.id)
        try await enter(.beginSession(session, basis), by: "user \(account.name)")
        context.identity.places.didSignIn(account.id, address: remoteAddress ?? "", now: now)
        return BegunSession(
            webAuthToken: signer.token(sessionID: id, issued: now),
            userRecordName: Account.userRecordName(accountID: account.id, container: goal.container), expires: expires)
    }

    /// Sends the browser on: to the app's callback URL, or to the page that opened this window. It is known from then
    /// on.
    func finish(_ session: BegunSession, of account: Account, for goal: SignInGoal) -> Reply {
        var reply: Reply
        if let callback = goal.callbackURL {
            reply = Self.redirect(to: URLText.adding([("ckWebAuthToken", session.webAuthToken)], to: callback))
        } else {
            let outcome = ClosingPage.Outcome.signedIn(webAuthToken: session.webAuthToken, name: account.name)
            reply = ClosingPage(outcome: outcome, audience: goal.audience).page.reply()
        }
        if let signer = context.service.signer {
            reply.headers.append(KnownBrowser(accountID: account.id).header(signer: signer, now: context.service.now))
        }
        return reply
    }

    /// Tells the app that its user does not want to sign in.
    func cancel(_ goal: SignInGoal) -> Reply {
        let reason = "The user did not sign in."
        guard let callback = goal.callbackURL else {
            return ClosingPage(outcome: .failed(reason: reason), audience: goal.audience).page.reply()
        }
        return Self.redirect(to: URLText.adding([("errorMessage", reason)], to: callback))
    }

    static func redirect(to url: String, cookie: BrowserCookie? = nil) -> Reply {
        var reply = Reply(status: 303, body: [], contentType: "text/plain; charset=UTF-8")
        reply.headers = Page.commonHeaders + [("location", url)]
        if let cookie { reply.headers.append(cookie.header) }
        return reply
    }

    /// Ends a session on all nodes. That it has ended already is no fault.
    func signOut() async throws(RequestFailure) -> Reply {
        let credentials = Credentials(
            apiToken: url["ckAPIToken"], webAuthToken: url["ckWebAuthToken"] ?? url["ckSession"])
        guard let secret = credentials.apiToken else {
            throw RequestFailure(.authenticationFailed, "the request has no ckAPIToken")
        }
        guard credentials.webAuthToken != nil else {
            throw RequestFailure(.badRequest, "the request has no ckWebAuthToken: it says which session is to end")
        }
        let goal = try await goal(ofAPIToken: secret)
        try await context.service.refreshDirectory()
        let presented = try await context.service.accounts.session(of: credentials, context.service.signer)
        if let session = presented?.known, Bytewise(session.token.kind.container) == Bytewise(goal.container) {
            try await end(session.token, by: "user \(session.accountName)")
        } else {
            try countAttempt()
            // What this cluster never signed was no session that signing in began: nothing is to be waited for.
            guard presented?.isOfSignIn == true else {
                return Reply { $0.member("signedOut", true) }
            }
            // It may have ended a moment ago, by a request whose answer was lost: that no node relies on it any more is
            // to be true of this answer, too.
            do throws(ClusterError) {
                _ = try await context.service.node.changeDirectory(DirectoryEntry(nil), by: deadline)
            } catch {
                throw RequestFailure(error)
            }
        }
        return Reply { $0.member("signedOut", true) }
    }

    private func end(_ token: Token, by actor: String) async throws(RequestFailure) {
        do throws(RequestFailure) {
            // On all nodes: a session that has ended is to be worth nothing anywhere.
            let outcome = try await context.service.settle(
                .revokeToken(id: token.id), origin: origin(actor), by: deadline)
            if case .refused(let error) = outcome { throw RequestFailure(error) }
        } catch {
            // Another request has ended it meanwhile.
            if error.error.code != .notFound { throw error }
        }
    }
}
