import Admission
import Directory
import HTTPTypes
import Hummingbird
import RecordModel
import Service

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
        if context.administrator.matches(token) { return console.access(named: nil) }
        if let name = try await context.service.administrator(withSecret: token, address: call.address) {
            return console.access(named: name)
        }
        throw try unknownAdministrator(call)
    }

    /// - Throws: as `administrator`, and `AUTHENTICATION_FAILED` where there is none.
    func requireAdministrator(
        _ call: WebCall, _ headers: inout AnswerHeaders
    ) async throws(RequestFailure) -> AdministratorAccess {
        if let access = try await administrator(call, &headers) { return access }
        throw try unknownAdministrator(call)
    }

    private func unknownAdministrator(_ call: WebCall) throws(RequestFailure) -> RequestFailure {
        try context.service.countFailure(of: call.address)
        return .authenticationFailed(
            "administration needs the header 'Authorization: Bearer ...' with an administrator's token")
    }

    /// What a request's cookie of this cluster's console holds; nil where it has none, or one that is not ours.
    func consoleCookie(_ call: WebCall) -> (cookie: ConsoleCookie?, secret: ClusterSecret)? {
        guard let secret = context.service.directory.secret,
            let text = BrowserCookie.value(of: ConsoleCookie.name(secret), in: call.request.headers[.cookie])
        else { return nil }
        return (ConsoleCookie(text, secret), secret)
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
            guard let given = call.request.headers[Self.csrf], Self.isEqual(given, expected) else {
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

    /// Compares without stopping at the first difference.
    private static func isEqual(_ left: String, _ right: String) -> Bool {
        guard left.utf8.count == right.utf8.count else { return false }
        return zip(left.utf8, right.utf8).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }
}
