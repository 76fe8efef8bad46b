import AsyncHTTPClient
package import RecordModel
import Synchronization

/// A container of a cluster as one account reaches it; whatever an app does goes through the same session.
///
/// There is one for each account, place and file of a token in a process (`of(_:)`), as tokens rotate: two holders of
/// one token would sign each other out. It lives as long as somebody holds it: a container, preferences, a request under
/// way, the configuration in force.
package final class ServiceSession: Sendable {
    /// What the session was made of first, its URLs in their usual form.
    package let configuration: ZonekeeperConfiguration
    let client: ServiceClient
    /// For streams, which are silent for a while as a matter of course, but not for long.
    let streamingClient: ServiceClient
    let token: WebAuthTokenSource?
    /// The container's place under each of the server's roots.
    let databasePath: String
    let keyValuePath: String
    let state = Mutex(State())

    struct State {
        /// The server refused the token last.
        var isRefused = false
        /// Whom the session is known to speak for; it stays when the session ends.
        var user: String?
        /// The generation of tokens that are known to be this user's.
        var generation: Int?
    }

    /// How long a node may take over an answer, in seconds: its own longest time for one, and some.
    private static let silenceSeconds: Int64 = 60
    /// How long a stream may say nothing, in seconds; nodes say something every 15.
    private static let streamSilenceSeconds: Int64 = 40

    init(_ configuration: ZonekeeperConfiguration, waiting: Waiting = .real) throws(ServiceClientError) {
        let configuration = try configuration.checked()
        self.configuration = configuration
        let place = "/1/\(PercentCoding.encode(configuration.container))/\(configuration.environment.rawValue)"
        (databasePath, keyValuePath) = ("/database" + place, "/kv" + place)
        let authority = configuration.certificateAuthorityPath
        client = ServiceClient(
            http: try HTTPClients.shared(authority: authority, silenceSeconds: Self.silenceSeconds),
            urls: configuration.urls, waiting: waiting)
        streamingClient = ServiceClient(
            http: try HTTPClients.shared(authority: authority, silenceSeconds: Self.streamSilenceSeconds),
            urls: configuration.urls, waiting: waiting)
        token =
            configuration.webAuthToken.map { WebAuthTokenSource(account: configuration.identity, $0) }
            ?? configuration.webAuthTokenFile.map { WebAuthTokenSource(path: $0) }
    }

    /// Whether there is a user's token, and the server did not refuse it when it was last asked.
    package var isSignedIn: Bool { token != nil && !state.withLock(\.isRefused) }

    /// Whether the configuration names a user's token at all.
    package var hasUser: Bool { token != nil }

    /// Sends a request to one database of the container.
    /// - Parameters:
    ///   - database: `public`, `private` or `shared`.
    ///   - action: such as `records/query`.
    ///   - idempotencyKey: for what changes something, so that a repeat is done once.
    ///   - patience: how long to go on while the cluster says to come back later; nil for the session's.
    ///   - limit: how long all of it may take; nil for as long as its attempts take.
    /// - Returns: the answer's JSON; items in it may have failed.
    /// - Throws: `ServiceFailure`, `ServiceUnreachable`, `ServiceClientError`, `CancellationError`.
    package func send(
        database: String, action: String, json: JSONValue, idempotencyKey: String? = nil, patience: Duration? = nil,
        limit: Duration? = nil
    ) async throws -> JSONValue {
        try await send(
            database: database, action: action, body: json.serialized(), idempotencyKey: idempotencyKey,
            patience: patience, limit: limit)
    }

    /// The same with a body that was rendered.
    package func send(
        database: String, action: String, body: [UInt8], idempotencyKey: String? = nil, patience: Duration? = nil,
        limit: Duration? = nil
    ) async throws -> JSONValue {
        var request = ServiceRequest(
            .post, "\(databasePath)/\(database)/\(action)", body: body, isRepeatable: idempotencyKey == nil)
        request.idempotencyKey = idempotencyKey
        request.limitSeconds = limit.map { $0 / .seconds(1) }
        request.credentials = try database == "public" ? publicCredentials() : userCredentials()
        return try await answer(to: request, patience)
    }

    /// Sends a request to the user's preferences.
    /// - Parameters:
    ///   - action: `get`, `set`, `list`, `changes`, `usage`, or `watch`, whose answer comes when something changed.
    ///   - idempotencyKey: for `set`; nil takes a new one.
    ///   - user: the record name of the user whose preferences are meant; nil is the session's of this moment.
    /// - Returns: the answer's JSON.
    /// - Throws: as `send`.
    package func keyValues(
        _ action: String, _ json: JSONValue, idempotencyKey: String? = nil, of user: String? = nil
    ) async throws -> JSONValue {
        var request = ServiceRequest(
            .post, "\(keyValuePath)/\(action)", body: json.serialized(), isRepeatable: action != "set")
        if action == "set" { request.idempotencyKey = idempotencyKey ?? IdempotencyKeys.make() }
        if action == "watch" { request.timeoutSeconds = 45 }
        request.credentials = try userCredentials()
        request.expectedUser = user
        return try await answer(to: request)
    }

    /// What requests for public data show: the server key where there is one, else the tokens.
    func publicCredentials() throws(ServiceClientError) -> CallerCredentials {
        if let path = configuration.serverKeyFile {
            return .key(try ServerKeySource(path: path, id: configuration.serverKeyID).read())
        }
        return .tokens(api: try apiToken(), user: try token?.token())
    }

    /// What requests for a user's own data show; without a user the server says what is missing.
    func userCredentials() throws(ServiceClientError) -> CallerCredentials {
        .tokens(api: try apiToken(), user: try token?.token())
    }

    private func apiToken() throws(ServiceClientError) -> String {
        guard let token = configuration.apiToken else {
            throw ServiceClientError(
                "the configuration has no API token: make one with `zonekeeper token create --api`, and set ZONEKEEPER_API_TOKEN"
            )
        }
        return token
    }
}
