import Admission
import Directory
import HTTPTypes
import Hummingbird
import RecordModel
import Service
import Wire

// Which administrator sends a request: by a token, or by the cookie of a session in the console.
extension WebResponder {
    // A valid header name, so the optionals are never nil.
    private static let csrf = HTTPField.Name("X-Zonekeeper-CSRF")!
    private static let fetchSite = HTTPField.Name("Sec-Fetch-Site")!

    /// - Returns: the administrator; nil where the request has neither a token nor a cookie of the console.
    /// - Throws: `AUTHENTICATION_FAILED`, `THROTTLED` where the address has failed too often, `ACCESS_DENIED` for a
    ///   cookie that comes from a page of another place.
    func administrator(
        _ call: WebCall, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> AdministratorAccess? {
        guard let token = call.bearerToken else { return try await consoleAdministrator(call, &headers) }
        let console = ConsoleAccess(context.service)
        if context.administrator.matches(token) { return try console.access(named: nil) }
        if let name = try await context.service.identification.administrator(withSecret: token, address: call.address) {
            return try console.access(named: name)
        }
        throw try unknownAdministrator(
            call, "the administrator's token is not known to this cluster, or was removed")
    }

    /// - Throws: as `administrator`, and `AUTHENTICATION_FAILED` where there is none.
    func requireAdministrator(
        _ call: WebCall, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> AdministratorAccess {
        if let access = try await administrator(call, &headers) { return access }
        throw try unknownAdministrator(
            call, "administration needs the header 'Authorization: Bearer ...' with an administrator's token")
    }

    /// The same administrator as they are at this moment: what takes long must not outlive a session or a role.
    /// - Throws: as `requireAdministrator`.
    func recheckedAdministrator(_ call: WebCall) async throws(RequestFailure) -> AdministratorAccess {
        // What the answer is to say besides is said already.
        var headers = AnswerHeaders(call.request, url: call.url)
        return try await requireAdministrator(call, &headers)
    }

    private func unknownAdministrator(
        _ call: WebCall, _ reason: String
    ) throws(RequestFailure) -> RequestFailure {
        try context.service.failedAuthentications.count(of: call.address)
        return .authenticationFailed(reason)
    }

    /// What a request's cookie of this cluster's console holds; nil where it has none, or one that is not ours.
    func consoleCookie(_ call: WebCall) -> (cookie: ConsoleCookie?, secret: ClusterSecret)? {
        guard let secret = context.service.directory.secret,
            let text = BrowserCookie.value(of: ConsoleCookie.name(secret), in: call.request.headers[.cookie])
        else { return nil }
        return (ConsoleCookie(text, secret), secret)
    }

    /// The browser, where an administrator signed in from it before.
    func knownBrowser(_ call: WebCall) -> KnownBrowser? {
        context.service.signer.flatMap {
            KnownBrowser(
                header: call.request.headers[.cookie], cookie: KnownBrowser.administratorCookieName, signer: $0,
                now: context.service.now)
        }
    }

    private func consoleAdministrator(
        _ call: WebCall, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> AdministratorAccess? {
        guard let (cookie, secret) = consoleCookie(call) else { return nil }
        // Browsers send cookies by themselves: no page of another place may read what comes of it.
        headers.leaveOutAccessControl()
        try Self.requireOwnPage(call)
        guard let cookie,
            var access = try await ConsoleAccess(context.service).access(
                withSessionSecret: cookie.secret, lastUsed: cookie.lastUsed),
            var session = access.session
        else {
            throw .authenticationFailed("the session in the console is over: sign in again")
        }
        if !call.isSafe {
            let expected = ConsoleCookie.csrfToken(of: session, secret)
            guard let given = call.request.headers[Self.csrf], isSameSecret(given, expected) else {
                throw .accessDenied("the header X-Zonekeeper-CSRF with the session's csrfToken is expected")
            }
        }
        let now = context.service.now
        if now - session.lastUsed > ConsoleCookie.renewedAfterMilliseconds {
            session.lastUsed = now
            access.session = session
            let (name, value) = ConsoleCookie(session).header(secret)
            headers.add(name, value)
        }
        return access
    }

    /// Who signs in: nobody yet, or the administrator whose session in the console is to be replaced.
    func openingCaller(
        _ call: WebCall, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> AdministratorAccess? {
        headers.leaveOutAccessControl()
        // Nobody is to be signed in as somebody else without noticing.
        try Self.requireOwnPage(call)
        guard let cookie = consoleCookie(call)?.cookie else { return nil }
        return try await ConsoleAccess(context.service).access(
            withSessionSecret: cookie.secret, lastUsed: cookie.lastUsed)
    }

    /// Makes sure that a request which a browser sends with cookies comes from a page of this server.
    /// - Throws: `ACCESS_DENIED` where it does not; for what changes something also where nothing says so.
    static func requireOwnPage(_ call: WebCall) throws(RequestFailure) {
        let origin = call.request.headers[.origin]
        let site = call.request.headers[fetchSite]
        let isOwnOrigin = origin.map { $0 == call.origin } ?? call.isSafe
        // An address that somebody types has no page before it.
        let isOwnSite = site.map { $0 == "same-origin" || call.isSafe && $0 == "none" } ?? true
        guard isOwnOrigin, isOwnSite else {
            throw .accessDenied("the request was sent by a page of another place than \(call.origin)")
        }
    }
}

/// The cookie of a session in the console: its secret, and when the browser used it, sealed for this cluster.
///
/// Browsers share cookies among the ports of a host. Nodes of one cluster there share the sign-in; another cluster
/// looks for another name, and could not open this one.
struct ConsoleCookie: Hashable, Sendable {
    private static let purpose = "console-session"

    var secret: String
    /// Milliseconds since 1970.
    var lastUsed: Int64

    /// How long a cookie goes on before the browser gets one with the present time.
    static let renewedAfterMilliseconds: Int64 = 60_000

    /// The prefix has browsers accept it from this host over TLS only.
    static func name(_ secret: ClusterSecret) -> String {
        "__Host-zk-console-" + Hex.encode(Array(secret.code(of: [], purpose: "console-cookie").prefix(4)))
    }

    init(_ session: ConsoleSession) {
        secret = session.secret
        lastUsed = session.lastUsed
    }

    /// The one of a cookie's value; nil where this cluster did not make it.
    init?(_ text: String, _ secret: ClusterSecret) {
        guard text.utf8.count < 1_024, let sealed = Base64URL.decode(text[...]),
            let payload = secret.open(sealed, purpose: Self.purpose),
            let cookie = try? ConsoleCookie(decoding: payload)
        else { return nil }
        self = cookie
    }

    /// As the answer's `Set-Cookie` header.
    func header(_ secret: ClusterSecret) -> (name: String, value: String) {
        let value = Base64URL.encode(secret.seal(encoded(), purpose: Self.purpose))
        return Self.header(secret, value: value, seconds: ConsoleSession.lifetimeMilliseconds / 1_000)
    }

    /// Has the browser forget it.
    static func removal(_ secret: ClusterSecret) -> (name: String, value: String) {
        header(secret, value: "", seconds: 0)
    }

    private static func header(
        _ secret: ClusterSecret, value: String, seconds: Int64
    ) -> (name: String, value: String) {
        (
            "set-cookie",
            "\(name(secret))=\(value); Path=/; Max-Age=\(seconds); Secure; HttpOnly; SameSite=Strict"
        )
    }

    /// What a request that changes something must say beside its cookie: pages of other places cannot know it.
    static func csrfToken(of session: ConsoleSession, _ secret: ClusterSecret) -> String {
        Hex.encode(secret.code(of: Array(session.secret.utf8), purpose: "console-csrf"))
    }
}

extension ConsoleCookie: WireMessage {
    static var blank: Self { ConsoleCookie(secret: "", lastUsed: 0) }

    private init(secret: String, lastUsed: Int64) {
        self.secret = secret
        self.lastUsed = lastUsed
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &secret)
        try wire.required(2, &lastUsed)
    }
}
