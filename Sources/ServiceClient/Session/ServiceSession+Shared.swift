import AsyncHTTPClient
import Synchronization

extension ServiceSession {
    /// The session of a configuration's account: the same one for as long as anybody holds it, whatever else differs.
    ///
    /// What a session knows beside its token is asked for again when it is made anew; see `WebAuthTokens` for the token.
    /// - Throws: if the configuration, or the authority's file, cannot be used.
    package static func of(_ configuration: ZonekeeperConfiguration) throws(ServiceClientError) -> ServiceSession {
        try of(checked: configuration.checked())
    }

    /// The same for a configuration whose URLs have their usual form.
    static func of(checked configuration: ZonekeeperConfiguration) throws(ServiceClientError) -> ServiceSession {
        let identity = configuration.identity
        return try sessions.withLock { sessions throws(ServiceClientError) in
            if let known = sessions.object(of: identity) { return known }
            let session = try ServiceSession(configuration)
            sessions.set(session, for: identity)
            return session
        }
    }

    /// The session of the configuration in force, which holds it.
    /// - Throws: an error that says what of it is missing or wrong.
    package static func current() throws(ServiceClientError) -> ServiceSession {
        try ServiceAccount.inForce().session()
    }

    private static let sessions = Mutex(WeakBook<ZonekeeperConfiguration.Identity, ServiceSession>())
}

/// Clients by the authority that they trust; connections are shared by all sessions of a process, and close by
/// themselves when they are idle.
enum HTTPClients {
    private struct Kind: Hashable {
        var authority: String?
        var silenceSeconds: Int64
    }

    private static let clients = Mutex<[Kind: HTTPClient]>([:])

    static func shared(authority: String?, silenceSeconds: Int64) throws(ServiceClientError) -> HTTPClient {
        let kind = Kind(authority: authority, silenceSeconds: silenceSeconds)
        return try clients.withLock { clients throws(ServiceClientError) in
            if let known = clients[kind] { return known }
            let client = try ServiceClient.http(authority: authority, silenceSeconds: silenceSeconds)
            clients[kind] = client
            return client
        }
    }
}
