import AsyncHTTPClient
import Foundation
package import RecordModel
import Synchronization

/// One account's access to a container of a cluster. Everything that an app does for the account goes through the same
/// session.
///
/// A process has one for each account, cluster and token file (`of(_:)`), because tokens rotate: two holders of one
/// token would sign each other out. It lives while it is referenced: by a container, preferences, a request under way,
/// or the configuration in force.
package final class ServiceSession: Sendable {
    /// The configuration that the session was made from, with normalized URLs.
    package let configuration: ZonekeeperConfiguration
    let client: ServiceClient
    /// For streams, which may be silent for a while.
    let streamingClient: ServiceClient
    let token: WebAuthTokenSource?
    /// The container's place under each of the server's roots.
    let databasePath: String
    let keyValuePath: String
    let pushPath: String
    let state = Mutex(State())

    struct State {
        /// Whether the server refused the token last.
        var isRefused = false
        /// The user that the session is known to belong to. It stays when the session ends.
        var user: String?
        /// The generation of tokens known to belong to this user.
        var generation: Int?
    }

    /// This client, as the server knows it: it is not told of its own changes.
    let clientID = IdempotencyKeys.make()
    /// The connection over which the user's notifications come.
    let notifications = NotificationFeed()

    /// How long a node may take for an answer, in seconds: a little longer than the nodes' own limit.
    private static let silenceSeconds: Int64 = 60
    /// How long a stream may be silent, in seconds. Nodes send something every 15.
    private static let streamSilenceSeconds: Int64 = 40

    init(_ configuration: ZonekeeperConfiguration, waiting: Waiting = .real) throws(ServiceClientError) {
        let configuration = try configuration.checked()
        self.configuration = configuration
        let place = "/1/\(PercentCoding.encode(configuration.container))/\(configuration.environment.rawValue)"
        (databasePath, keyValuePath, pushPath) = ("/database" + place, "/kv" + place, "/push" + place)
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

    /// Whether the configuration names a user's token at all.
    package var hasUser: Bool { token != nil }

    /// Whether there is a user's token, whatever the server thinks of it. Nobody is signed in where there is none.
    package var hasToken: Bool {
        configuration.webAuthToken != nil
            || configuration.webAuthTokenFile.map { FileManager.default.fileExists(atPath: $0) } ?? false
    }

    /// The user's token; nil if nobody is signed in, or its file cannot be read.
    package var userToken: WebAuthToken? { try? token?.token() }

    /// Sends a request to one database of the container.
    /// - Parameters:
    ///   - database: `public`, `private` or `shared`.
    ///   - action: such as `records/query`.
    ///   - body: the request's JSON.
    ///   - idempotencyKey: for what changes something, so that a repeat is done once.
    ///   - patience: how long to go on while the cluster says to come back later; nil for the session's.
    ///   - limit: how long all of it may take; nil for as long as its attempts take.
    ///   - user: the record name of the user for whom it is; nil for the session's current user.
    /// - Returns: the answer's JSON; items in it may have failed.
    /// - Throws: `ServiceFailure`, `ServiceUnreachable`, `ServiceClientError`, `CancellationError`.
    package func send(
        database: String, action: String, body: [UInt8], idempotencyKey: String? = nil, patience: Duration? = nil,
        limit: Duration? = nil, of user: String? = nil
    ) async throws -> JSONValue {
        var request = ServiceRequest(
            .post, "\(databasePath)/\(database)/\(action)", body: body, isRepeatable: idempotencyKey == nil)
        request.idempotencyKey = idempotencyKey
        request.limitSeconds = limit.map { $0 / .seconds(1) }
        request.expectedUser = user
        request.credentials = try database == "public" ? publicCredentials() : userCredentials()
        if idempotencyKey != nil, request.userToken != nil {
            request.parameters.append((name: "clientId", value: clientID))
        }
        return try await answer(to: request, patience)
    }

    /// Sends a request to the user's preferences.
    /// - Parameters:
    ///   - action: `get`, `set`, `list`, `changes`, `usage`, or `watch`, which is answered when something changes.
    ///   - body: the request's JSON.
    ///   - idempotencyKey: for `set`; nil takes a new one.
    ///   - user: the record name of the user; nil for the session's current user.
    /// - Returns: the answer's JSON.
    /// - Throws: as `send`.
    package func keyValues(
        _ action: String, body: [UInt8], idempotencyKey: String? = nil, of user: String? = nil
    ) async throws -> JSONValue {
        var request = ServiceRequest(.post, "\(keyValuePath)/\(action)", body: body, isRepeatable: action != "set")
        if action == "set" { request.idempotencyKey = idempotencyKey ?? IdempotencyKeys.make() }
        if action == "watch" { request.timeoutSeconds = 45 }
        request.credentials = try userCredentials()
        request.expectedUser = user
        return try await answer(to: request)
    }

    /// A page of the user's notifications, without those of this session's own changes.
    /// - Parameters:
    ///   - action: `changes`, or `watch`, which is answered when there is something or after half a minute.
    ///   - token: where to begin; nil begins with the first that is kept.
    ///   - fromEnd: without a token, asks for an empty page with that of the end. Servers that do not know this answer
    ///     as without it.
    ///   - limit: the most notifications; nil for the server's.
    /// - Throws: as `send`.
    package func notificationPage(
        _ action: String, since token: String?, fromEnd: Bool = false, limit: Int? = nil
    ) async throws -> NotificationPage {
        let body = JSONValue.members([
            "syncToken": token.map { .string($0) }, "fromEnd": fromEnd ? .bool(true) : nil,
            "clientId": .string(clientID), "resultsLimit": limit.map { .integer(Int64($0)) },
            "timeout": action == "watch" ? .integer(30) : nil,
        ])
        var request = ServiceRequest(.post, "\(pushPath)/\(action)", body: body.serialized(), isRepeatable: true)
        if action == "watch" { request.timeoutSeconds = 45 }
        request.credentials = try userCredentials()
        return try NotificationPage(await answer(to: request))
    }

    /// The credentials for public data: the server key if there is one, else the tokens.
    func publicCredentials() throws(ServiceClientError) -> CallerCredentials {
        if let path = configuration.serverKeyFile {
            return .key(try ServerKeyFile(path: path, id: configuration.serverKeyID))
        }
        return .tokens(api: try apiToken(), user: try token?.token())
    }

    /// The credentials for a user's own data. Without a user, the server's error says what is missing.
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

extension ServiceSession {
    /// The user's record name in the container. The server is asked once.
    /// - Throws: as `send`; with `AUTHENTICATION_REQUIRED` if no user is signed in.
    package func userRecordName() async throws -> String {
        if let name = state.withLock({ $0.isRefused ? nil : $0.user }) { return name }
        return try await askUserRecordName()
    }

    /// The user's record name, asked from the server now. It shows whether the session is still valid.
    /// - Throws: as `userRecordName`.
    package func askUserRecordName() async throws -> String {
        let name = try Self.name(in: await answer(to: caller(), allowsOtherUser: true))
        state.withLock { $0.user = name }
        return name
    }

    /// Asks the server for the caller: the user if there is one, else the server key's owner.
    private func caller() throws(ServiceClientError) -> ServiceRequest {
        var request = ServiceRequest(
            .post, databasePath + "/public/users/caller", body: Array("{}".utf8), isRepeatable: true)
        request.credentials = try hasUser ? userCredentials() : publicCredentials()
        return request
    }

    private static func name(in json: JSONValue) throws(ServiceClientError) -> String {
        guard let name = json["userRecordName"]?.string else {
            throw ServiceClientError("the answer has no userRecordName in it. Is this a Zonekeeper node?")
        }
        return name
    }

    /// Sends a request, and once more if another program renewed the session meanwhile. Keeps track of the signed-in
    /// user.
    /// - Parameter allowsOtherUser: whether the request may be sent although the user has changed since the last one.
    func answer(
        to request: ServiceRequest, _ patience: Duration? = nil, allowsOtherUser: Bool = false
    ) async throws -> JSONValue {
        var request = request
        request.patienceSeconds = (patience ?? configuration.patience) / .seconds(1)
        if !allowsOtherUser, request.expectedUser == nil { request.expectedUser = state.withLock(\.user) }
        var response = try await send(request)
        if response.status == 421, request.userToken?.takeOver() == true { response = try await send(request) }
        guard response.isSuccess else {
            let failure = ServiceFailure(response)
            if request.userToken != nil, failure.isSignedOut { note(isRefused: true) }
            throw failure
        }
        if request.userToken != nil { note(isRefused: false) }
        do throws(JSONError) {
            return try response.parsed()
        } catch {
            throw ServiceFailure(ServiceResponse(status: response.status, headers: response.headers, body: []))
        }
    }

    private func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        var request = request
        for _ in 0..<8 {
            do {
                try await settle(&request)
                return try await client.send(request)
            } catch is TokenTakenOver {
                continue
            }
        }
        throw ServiceClientError("the session's file is written again and again by another program", about: .session)
    }

    /// Checks that the token still belongs to the same user. The file may hold another user's token after a new
    /// sign-in, and a request meant for one user must not be sent as another.
    /// - Throws: `AUTHENTICATION_REQUIRED` for a request that was begun for another user. Observers learn of the new
    ///   user once; later requests are the new user's.
    func settle(_ request: inout ServiceRequest) async throws {
        guard let source = token, source.isFile, let user = request.userToken else { return }
        _ = user.takeOver()
        let generation = user.snapshot.generation
        request.tokenGeneration = generation
        let (known, isKnown) = state.withLock { ($0.user, $0.generation == generation) }
        if isKnown {
            guard let expected = request.expectedUser, let known, known != expected else { return }
            throw ServiceFailure.userChanged
        }
        var question = try caller()
        question.tokenGeneration = generation
        let response = try await client.send(question)
        // The request itself shows whether the session has ended.
        guard response.isSuccess, let json = try? response.parsed() else { return }
        let name = try Self.name(in: json)
        let isOther = state.withLock { state in
            defer { (state.user, state.generation) = (name, generation) }
            return state.user != nil && state.user != name
        }
        if isOther {
            AccountObservation.tell(.signedOut(self))
            AccountObservation.tell(.signedIn(self))
        }
        if let expected = request.expectedUser, expected != name { throw ServiceFailure.userChanged }
    }

    /// A node accepted or refused the token.
    func note(isRefused: Bool) {
        let isNew = state.withLock { state in
            defer { state.isRefused = isRefused }
            return state.isRefused != isRefused
        }
        if isNew { AccountObservation.tell(isRefused ? .signedOut(self) : .signedIn(self)) }
    }
}

extension ServiceFailure {
    /// The error of a request that was meant for the previous user.
    fileprivate static var userChanged: ServiceFailure {
        let json = JSONValue.members([
            "serverErrorCode": .string(ErrorCode.authenticationRequired.rawValue),
            "reason": .string("another user has signed in meanwhile: the session's file holds another user's session"),
        ])
        return ServiceFailure(ServiceResponse(status: 421, body: json.serialized()))
    }
}

/// A configuration that was checked once, and its session. Objects that act for an account keep it.
///
/// It is a class, so that it is neither copied nor checked again for each of a thousand calls a second.
package final class ServiceAccount: Sendable {
    /// With normalized URLs, unless one of them is invalid.
    package let configuration: ZonekeeperConfiguration
    private let fault: ServiceClientError?
    private let held = Mutex<ServiceSession?>(nil)

    package init(_ configuration: ZonekeeperConfiguration) {
        do throws(ServiceClientError) {
            self.configuration = try configuration.checked()
            fault = nil
        } catch {
            self.configuration = configuration
            fault = error
        }
    }

    /// The configuration.
    /// - Throws: what is wrong in it.
    package func checked() throws(ServiceClientError) -> ZonekeeperConfiguration {
        if let fault { throw fault }
        return configuration
    }

    /// The account's session, which the whole process shares.
    /// - Throws: if the configuration, or the authority's file, cannot be used.
    package func session() throws(ServiceClientError) -> ServiceSession {
        if let session = held.withLock({ $0 }) { return session }
        let session = try ServiceSession.of(checked: try checked())
        held.withLock { $0 = session }
        return session
    }
}

extension ServiceAccount: Hashable {
    /// Whether both belong to the same account.
    package static func == (left: ServiceAccount, right: ServiceAccount) -> Bool {
        left === right || left.configuration == right.configuration
    }

    /// Hashes what identifies the account.
    package func hash(into hasher: inout Hasher) { hasher.combine(configuration) }
}

extension ServiceSession {
    /// The session of a configuration's account. While it is referenced, every configuration of that account gets the
    /// same one.
    ///
    /// A new session asks for everything but its token again; `WebAuthTokens` keeps that.
    /// - Throws: if the configuration, or the authority's file, cannot be used.
    package static func of(_ configuration: ZonekeeperConfiguration) throws(ServiceClientError) -> ServiceSession {
        try of(checked: configuration.checked())
    }

    /// The same for a configuration with normalized URLs.
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

    private static let sessions = Mutex(WeakRegistry<ZonekeeperConfiguration.Identity, ServiceSession>())
}

/// HTTP clients by the authority that they trust. All sessions of a process share their connections, which close when
/// idle.
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

/// Objects by key, held weakly.
struct WeakRegistry<Key: Hashable, Object: AnyObject> {
    private struct Entry {
        weak var object: Object?
    }

    private var entries: [Key: Entry] = [:]
    private var sweepCount = Self.sweepCountMin
    private static var sweepCountMin: Int { 64 }

    init() {}

    /// The number of entries, including those of released objects until the next sweep.
    var count: Int { entries.count }

    /// The object of a key; nil if there is none, or it was released.
    func object(of key: Key) -> Object? { entries[key]?.object }

    /// Adds an object. Entries of released objects are swept out from time to time, so that there are at most twice as
    /// many entries as there were live objects at the last sweep.
    mutating func set(_ object: Object, for key: Key) {
        if entries.count >= sweepCount {
            entries = entries.filter { $0.value.object != nil }
            sweepCount = max(entries.count * 2, Self.sweepCountMin)
        }
        entries[key] = Entry(object: object)
    }
}

/// Warnings about problems that make no call fail. Each text is written to standard error once a process.
package enum Warnings {
    private struct State {
        var said: Set<String> = []
        var listener: (@Sendable (String) -> Void)?
    }

    private static let state = Mutex(State())
    /// Bounds the memory for distinct texts.
    private static let textsMax = 256

    /// Writes a warning: what is wrong, where, and what to do. It must not contain a secret.
    package static func say(_ text: String) {
        let listener = state.withLock { state -> (@Sendable (String) -> Void)? in
            if let listener = state.listener { return listener }
            guard state.said.count < textsMax, state.said.insert(text).inserted else { return { _ in } }
            return nil
        }
        if let listener { return listener(text) }
        FileHandle.standardError.write(Data("zonekeeper: warning: \(text)\n".utf8))
    }

    /// Sends all warnings to a listener instead, or to standard error again (nil).
    static func redirect(to listener: (@Sendable (String) -> Void)?) { state.withLock { $0.listener = listener } }
}
