import Admission
import Cluster
import Directory
import RecordModel
import Service
import Wire

/// The headers of a request that signing in looks at.
struct SignInHeaders: Sendable {
    var cookie: String?
    var origin: String?
    var contentType: String?
    var host: String?
}

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
    var context: WebContext
    var method: String
    var url: RequestURL
    var headers: SignInHeaders
    var body: [UInt8]
    /// The client's address, for limits and the audit log.
    var remoteAddress: String?
    /// The request's name.
    var uuid: String

    /// Whether a path is one of these.
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
        guard isPage else {
            try await prepare()
            return try await answerProgram()
        }
        return await inPage { () async throws(RequestFailure) in
            try await prepare()
            return try await showPage()
        }
    }

    /// One of those of `isPath`.
    private var path: String { url.segments.joined(separator: "/") }

    /// Nothing here relies on a directory that this node is not sure of: what was revoked elsewhere works nowhere.
    private func prepare() async throws(RequestFailure) {
        guard body.count <= Self.bodyBytesMax else {
            throw RequestFailure(
                .badRequest, "the body has \(body.count) bytes; at most \(Self.bodyBytesMax) are allowed here",
                details: .bodyTooLarge)
        }
        do throws(ClusterError) { try await context.service.node.requireDirectory() } catch {
            throw RequestFailure(error)
        }
    }

    private func showPage() async throws(RequestFailure) -> Reply {
        switch (method, path) {
        case ("GET", "sign-in"): return try await showSignIn()
        case ("POST", "sign-in"): return try await signInWithForm()
        case ("GET", "sign-up"): return try await showSignUp()
        case ("POST", "sign-up"): return try await signUpWithForm()
        case ("GET", "sign-in/provider"): return try await confirmProvider()
        case ("GET", "sign-in/callback"): return try await comeFromProvider()
        default: throw wrongMethod
        }
    }

    private func answerProgram() async throws(RequestFailure) -> Reply {
        switch (method, path) {
        case ("POST", "sign-in"): return try await signInWithJSON()
        case ("POST", "sign-up"): return try await signUpWithJSON()
        case ("POST", "sign-out"): return try await signOut()
        default: throw wrongMethod
        }
    }

    private var wrongMethod: RequestFailure {
        let methods =
            path == "sign-out" ? ["POST"] : path == "sign-in" || path == "sign-up" ? ["GET", "POST"] : ["GET"]
        return RequestFailure(
            .badRequest, "/\(path) is called with \(methods.joined(separator: " or ")), not with \(method)",
            details: .methods(methods))
    }

    private var isForm: Bool {
        headers.contentType?.lowercased().hasPrefix("application/x-www-form-urlencoded") == true
    }

    private func inPage(_ show: () async throws(RequestFailure) -> Reply) async -> Reply {
        do throws(RequestFailure) {
            return try await show()
        } catch {
            report(error)
            return ProblemPage(reason: error.error.reason, requestID: uuid).page.reply(failure: error)
        }
    }

    /// Logs what a page shows, under the request's name, which the page shows, too.
    func report(_ failure: RequestFailure) {
        if failure.error.code == .throttled { return }
        context.service.peerExchange.report(
            RequestTrace.current ?? RequestTrace(id: uuid),
            "\(method) /\(path) failed: \(failure.status) \(failure.error.code.rawValue): \(failure.error.reason)")
    }

    /// For one question to the cluster, from when it is asked: hashing a password, or an identity provider, may have
    /// taken longer than a question may.
    var deadline: Deadline { context.service.node.deadline() }

    func origin(_ actor: String) -> AuditOrigin {
        AuditOrigin(actor: actor, requestID: uuid, address: remoteAddress ?? "", time: context.service.now)
    }

    /// Has a command applied, tells the audit log, and waits until this node knows.
    func enter(_ command: DirectoryCommand, by actor: String) async throws(RequestFailure) {
        try await context.service.enter(DirectoryEntry(command, origin: origin(actor)), by: deadline)
    }

    /// Tells the audit log of an attempt that no command tells of; waits as for a command, so that nobody can tell them
    /// apart.
    func note(subject: String, outcome: String) async throws(RequestFailure) {
        let event = AuditEvent(
            origin: origin("somebody"), action: "sign-in", subject: subject, outcome: outcome)
        try await context.service.enter(DirectoryEntry(nil, events: [event]), by: deadline)
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

/// Whom a user signs in for: an API token, by which the request came here.
struct SignInGoal: Sendable {
    var token: Token
    var container: String
    var environment: Environment
    /// Origins that may use the token; empty where all may.
    var origins: [String]
    var callbackURL: String?
    /// The origin of this server's own pages, where a link began it.
    var pageOrigin: String?
    /// The origin of the page that asked for the link; nil where no page asked.
    var asker: String?

    /// The origins whose pages may be told of the session: the one that asked, if the token may be used there. A link
    /// that no page asked for tells the token's listed origins, and no page where there is no list.
    var audience: [String] {
        guard let asker else { return origins }
        return OriginRule.allows(asker, origins) ? [asker] : []
    }

    /// Nil for a token that is no API token.
    init?(_ token: Token, pageOrigin: String? = nil, asker: String? = nil) {
        guard case .api(let container, let environment, let origins, let callbackURL) = token.kind else { return nil }
        self.token = token
        self.container = container
        self.environment = environment
        self.origins = origins
        self.callbackURL = callbackURL
        self.pageOrigin = pageOrigin
        self.asker = asker
    }
}

extension SignInRequest {
    /// What a link was made for.
    /// - Throws: `BAD_REQUEST` for a link that is not ours, has expired, or whose API token was revoked.
    func goal(ofTicket text: String?) async throws(RequestFailure) -> SignInGoal {
        let signer = try context.service.requireSigner()
        guard let text, !text.isEmpty else {
            throw RequestFailure(
                .badRequest,
                "Signing in begins in an app: it is given a link to this page, and this is not the whole link.")
        }
        guard let payload = signer.openTicket(text, purpose: SignInTicket.purpose, now: context.service.now),
            let ticket = try? SignInTicket(decoding: payload)
        else {
            throw RequestFailure(
                .badRequest,
                "This link has expired, or was changed. Go back to the app and sign in again: it is given a new one.")
        }
        return try await goal(of: ticket)
    }

    func goal(of ticket: SignInTicket) async throws(RequestFailure) -> SignInGoal {
        if let goal = known(ticket) { return goal }
        try await context.service.refreshDirectory()
        guard let goal = known(ticket) else {
            throw RequestFailure(
                .badRequest, "The app may not sign users in any more: its API token was revoked.")
        }
        return goal
    }

    private func known(_ ticket: SignInTicket) -> SignInGoal? {
        context.service.node.directory.snapshot.token(withID: ticket.tokenID).flatMap {
            SignInGoal($0, pageOrigin: ticket.origin, asker: ticket.asker)
        }
    }

    /// What a program signs in for.
    /// - Throws: `AUTHENTICATION_FAILED` for an API token that is unknown, or not for the request's origin.
    func goal(ofAPIToken secret: String) async throws(RequestFailure) -> SignInGoal {
        var token = context.service.node.directory.snapshot.token(withSecret: secret)
        if token == nil {
            try await context.service.refreshDirectory()
            token = context.service.node.directory.snapshot.token(withSecret: secret)
        }
        guard let goal = token.flatMap({ SignInGoal($0) }) else {
            throw RequestFailure(
                .authenticationFailed, "the API token is not known: it was never made, or was revoked")
        }
        guard OriginRule.allows(headers.origin, goal.origins) else {
            throw RequestFailure(
                .authenticationFailed,
                "the API token is not for pages of \(headers.origin ?? ""); it is for \(goal.origins.joined(separator: ", "))"
            )
        }
        return goal
    }

    /// Counts an attempt of this address.
    /// - Throws: `THROTTLED` where there were too many.
    func countAttempt() throws(RequestFailure) {
        try context.identity.countSignInAttempt(of: remoteAddress ?? "")
    }
}
