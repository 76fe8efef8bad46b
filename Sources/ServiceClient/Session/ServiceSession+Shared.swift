import AsyncHTTPClient
import Synchronization

extension ServiceSession {
    /// The session of a configuration's account: the same one for as long as the process lives, whatever else differs.
    /// - Throws: if the configuration, or the authority's file, cannot be used.
    package static func of(_ configuration: ZonekeeperConfiguration) throws(ServiceClientError) -> ServiceSession {
        let configuration = try configuration.checked()
        return try sessions.withLock { sessions throws(ServiceClientError) in
            if let known = sessions[configuration.identity] { return known }
            let session = try ServiceSession(configuration)
            sessions[configuration.identity] = session
            return session
        }
    }

    /// The session of the configuration in force.
    /// - Throws: an error that says what of it is missing or wrong.
    package static func current() throws(ServiceClientError) -> ServiceSession { try of(.needed()) }

    private static let sessions = Mutex<[ZonekeeperConfiguration.Identity: ServiceSession]>([:])
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
