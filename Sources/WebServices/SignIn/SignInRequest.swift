import Admission
import Directory
import HTTPTypes
import HummingbirdCore
import RecordModel
import Service

/// A request for one of the sign-in pages, or of a program that signs a user in.
///
/// | route | what it is |
/// | --- | --- |
/// | `GET /sign-in?ticket=` | the page that `redirectURL` names |
/// | `POST /sign-in` | its form; or JSON, without a page |
/// | `GET`, `POST /sign-up` | the same for a new account, where sign-up is open |
/// | `GET /sign-in/provider?name=&ticket=` | a button that leads to an identity provider |
/// | `GET /sign-in/callback` | back from it |
/// | `POST /sign-out` | ends a session |
struct SignInRequest: Sendable {
    let service: RecordService
    let signIn: SignIn
    let call: WebCall
    let body: [UInt8]
    private var method: String { call.request.method.rawValue }
    private var url: RequestURL { call.url }
    private var headers: HTTPFields { call.request.headers }

    static func isPath(_ segments: [String]) -> Bool {
        switch segments {
        case ["sign-in"], ["sign-up"], ["sign-out"], ["sign-in", "provider"], ["sign-in", "callback"]: true
        default: false
        }
    }

    /// Bytes of a body at most.
    static let bodyBytesMax = 65_536

    /// The answer; what fails in a page is shown in a page.
    /// - Throws: what fails for a program.
    func respond() async throws(RequestFailure) -> Reply {
        let isPage = path != "sign-out" && (method == "GET" || method == "POST" && isForm)
        do throws(RequestFailure) {
            guard body.count <= Self.bodyBytesMax else {
                throw .badRequest(
                    "the body has \(body.count) bytes; at most \(Self.bodyBytesMax) are allowed here",
                    details: .bodyTooLarge)
            }
            try await signIn.prepare()
            return try await isPage ? showPage() : answerProgram()
        } catch {
            guard isPage else { throw error }
            report(error)
            return Page.problem(error.error.reason, requestID: call.uuid).reply(failure: error)
        }
    }

    /// One of those of `isPath`.
    private var path: String { url.segments.joined(separator: "/") }

    private func showPage() async throws(RequestFailure) -> Reply {
        switch (method, path) {
        case ("GET", "sign-in"): return try await show(.signIn)
        case ("POST", "sign-in"): return try await signInWithForm()
        case ("GET", "sign-up"): return try await show(.signUp)
        case ("POST", "sign-up"): return try await signUpWithForm()
        case ("GET", "sign-in/provider"): return try await confirmProvider()
        case ("GET", "sign-in/callback"): return try await comeFromProvider()
        default: throw wrongMethod
        }
    }

    private func answerProgram() async throws(RequestFailure) -> Reply {
        switch (method, path) {
        case ("POST", "sign-in"), ("POST", "sign-up"): return try await beginWithJSON()
        case ("POST", "sign-out"): return try await signOut()
        default: throw wrongMethod
        }
    }

    private var wrongMethod: RequestFailure {
        let methods =
            path == "sign-out" ? ["POST"] : path == "sign-in" || path == "sign-up" ? ["GET", "POST"] : ["GET"]
        return .wrongMethod(method, of: methods, for: "/\(path)")
    }

    private var isForm: Bool {
        headers[.contentType]?.lowercased().hasPrefix("application/x-www-form-urlencoded") == true
    }

    /// Logs what a page shows, under the request's name, which the page shows, too.
    private func report(_ failure: RequestFailure) {
        if failure.error.code == .throttled { return }
        service.report(
            call.uuid,
            "\(method) /\(path) failed: \(failure.status) \(failure.error.code.rawValue): \(failure.error.reason)")
    }
}

// Programs, which ask their users themselves.
extension SignInRequest {
    private func beginWithJSON() async throws(RequestFailure) -> Reply {
        let form = try SignInForm(json: body)
        let goal = try await signIn.goal(ofAPIToken: try form.need("apiToken"), origin: headers[.origin])
        let (name, password) = (try form.need("name"), try form.need("password"))
        let session =
            path == "sign-up"
            ? try await signIn.signUp(name: name, password: password, for: goal, keepsSignedIn: form.keepsSignedIn)
            : try await signIn.signIn(
                name: name, password: password, from: knownBrowser, for: goal, keepsSignedIn: form.keepsSignedIn)
        var reply = Reply { writer in
            writer.member("ckWebAuthToken", session.webAuthToken)
            writer.member("userRecordName", session.userRecordName)
            writer.member("expires", integer: session.expires)
        }
        reply.headers.append(("cache-control", "no-store"))
        return reply
    }

    private func signOut() async throws(RequestFailure) -> Reply {
        let credentials = Credentials(
            apiToken: url["ckAPIToken"], webAuthToken: url["ckWebAuthToken"] ?? url["ckSession"])
        try await signIn.signOut(credentials, origin: headers[.origin])
        return Reply { $0.member("signedOut", true) }
    }
}

// Pages.
extension SignInRequest {
    /// The browser, where somebody signed in from it before.
    private var knownBrowser: KnownBrowser? {
        service.signer.flatMap { KnownBrowser(header: headers[.cookie], signer: $0, now: service.now) }
    }

    private func show(_ kind: SignInPage.Kind) async throws(RequestFailure) -> Reply {
        let ticket = url["ticket"]
        let goal = try await signIn.goal(ofTicket: ticket)
        if kind == .signUp { try signIn.requireOpenSignUp() }
        if case .provider(let name) = kind { try signIn.requireProvider(name) }
        let cookie = BrowserCookie(header: headers[.cookie]) ?? BrowserCookie()
        var page = page(kind, for: goal, ticket: ticket ?? "", cookie: cookie)
        page.keepsSignedIn = url["keepSignedIn"] == "true"
        return page.page.reply(cookie: cookie)
    }

    private func signInWithForm() async throws(RequestFailure) -> Reply {
        let form = SignInForm(urlEncoded: body)
        let goal = try await signIn.goal(ofTicket: form["ticket"])
        let cookie = try checkedCookie(form, goal)
        if form["cancel"] != nil { return cancel(goal) }
        if let provider = form["provider"] {
            let url = try await signIn.authorizationURL(
                provider: provider, for: goal, browser: cookie.value, keepsSignedIn: form.keepsSignedIn)
            return Page.goingOn(to: provider, at: url).reply()
        }
        do throws(RequestFailure) {
            let session = try await signIn.signIn(
                name: form["name"] ?? "", password: form["password"] ?? "", from: knownBrowser, for: goal,
                keepsSignedIn: form.keepsSignedIn)
            return finish(session, for: goal)
        } catch {
            return again(.signIn, form, goal, cookie, error)
        }
    }

    private func signUpWithForm() async throws(RequestFailure) -> Reply {
        let form = SignInForm(urlEncoded: body)
        let goal = try await signIn.goal(ofTicket: form["ticket"])
        let cookie = try checkedCookie(form, goal)
        do throws(RequestFailure) {
            guard form["password"] == form["repeated"] else {
                throw .badRequest("The two passwords differ.")
            }
            let session = try await signIn.signUp(
                name: form["name"] ?? "", password: form["password"] ?? "", for: goal,
                keepsSignedIn: form.keepsSignedIn)
            return finish(session, for: goal)
        } catch {
            return again(.signUp, form, goal, cookie, error)
        }
    }

    /// The form once more, with what was wrong.
    private func again(
        _ kind: SignInPage.Kind, _ form: SignInForm, _ goal: SignInGoal, _ cookie: BrowserCookie,
        _ failure: RequestFailure
    ) -> Reply {
        var page = page(kind, for: goal, ticket: form["ticket"] ?? "", cookie: cookie)
        report(failure)
        page.problem = failure.error.reason
        page.requestID = call.uuid
        page.name = form["name"] ?? ""
        page.keepsSignedIn = form.keepsSignedIn
        return page.page.reply(failure: failure, cookie: cookie)
    }

    private func page(
        _ kind: SignInPage.Kind, for goal: SignInGoal, ticket: String, cookie: BrowserCookie
    ) -> SignInPage {
        let directory = service.directory
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
    private func checkedCookie(_ form: SignInForm, _ goal: SignInGoal) throws(RequestFailure) -> BrowserCookie {
        if let origin = headers[.origin], let own = goal.pageOrigin, !OriginRule.allows(origin, [own]) {
            throw .badRequest(
                "The form was sent by a page of another place (\(origin)), and this one belongs to \(own)."
            )
        }
        guard let cookie = BrowserCookie(header: headers[.cookie]), cookie.matches(form["check"]) else {
            throw .badRequest(
                "The form has no cookie of this page with it. Allow cookies for this site, go back to the app and sign in again."
            )
        }
        return cookie
    }

    /// Sends the browser on: to the app's callback URL, or to the page that opened this window. It is known from then
    /// on.
    private func finish(_ session: SignIn.Session, for goal: SignInGoal) -> Reply {
        var reply: Reply
        if let callback = goal.callbackURL {
            reply = Self.redirect(to: URLText.adding([("ckWebAuthToken", session.webAuthToken)], to: callback))
        } else {
            let outcome = ClosingPage.Outcome.signedIn(webAuthToken: session.webAuthToken, name: session.accountName)
            reply = ClosingPage(outcome: outcome, audience: goal.audience).page.reply()
        }
        reply.headers.append(KnownBrowser.header(session.knownBrowser))
        return reply
    }

    /// Tells the app that its user does not want to sign in.
    private func cancel(_ goal: SignInGoal) -> Reply {
        let reason = "The user did not sign in."
        guard let callback = goal.callbackURL else {
            return ClosingPage(outcome: .failed(reason: reason), audience: goal.audience).page.reply()
        }
        return Self.redirect(to: URLText.adding([("errorMessage", reason)], to: callback))
    }

    private static func redirect(to url: String) -> Reply {
        var reply = Reply(status: 303, body: [], contentType: "text/plain; charset=UTF-8")
        reply.headers = Page.commonHeaders + [("location", url)]
        return reply
    }
}

// Identity providers.
extension SignInRequest {
    /// A page with one button that leads to the provider. Never there at once: a provider that knows the visitor would
    /// send the browser back signed in, and any page may link here.
    private func confirmProvider() async throws(RequestFailure) -> Reply {
        guard let name = url.text("name") else {
            throw .badRequest("The parameter 'name' is missing: it says which identity provider.")
        }
        return try await show(.provider(name))
    }

    /// The browser comes back with a code.
    private func comeFromProvider() async throws(RequestFailure) -> Reply {
        let state = try signIn.providerState(url["state"])
        guard let cookie = BrowserCookie(header: headers[.cookie]), cookie.matches(state.browser) else {
            throw .badRequest(
                "This sign-in began in another browser, or cookies are switched off. Go back to the app and sign in again."
            )
        }
        let goal = try await signIn.goal(of: state.ticket)
        guard let code = url.text("code") else { return try declined(goal, state) }
        return finish(try await signIn.signIn(code: code, issuer: url["iss"], state, for: goal), for: goal)
    }

    /// The user said no there, or the provider does not work: the one is the app's to know, the other the user's.
    private func declined(_ goal: SignInGoal, _ state: ProviderState) throws(RequestFailure) -> Reply {
        let code = (url["error"] ?? "").filter { $0.isASCII && ($0.isLetter || $0 == "_") }.prefix(40)
        if code == "access_denied" { return cancel(goal) }
        throw .authenticationFailed(
            "The identity provider '\(state.provider)' did not sign you in\(code.isEmpty ? "" : ": it said '\(code)'")."
        )
    }
}

extension Page {
    /// The page under the failure's status. Browsers show 421 badly, and to them it is an ordinary refusal.
    func reply(failure: RequestFailure, cookie: BrowserCookie? = nil) -> Reply {
        let status = failure.status
        var reply = reply(status: status == 421 ? 403 : status, cookie: cookie)
        reply.retryAfterSeconds = failure.error.retryAfterWholeSeconds
        return reply
    }
}
