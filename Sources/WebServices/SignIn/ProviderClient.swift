import Admission
import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOPosix
import RecordModel
import Service
import Synchronization

/// Talks to identity providers: reads what they say of themselves and their keys, and changes codes into identity
/// tokens.
///
/// Addresses are https, or of this machine; answers are bounded in size and time; redirects are not followed. What
/// providers say is kept for an hour, and their keys are read again when a token names one that is not there.
final class ProviderClient: IdentityProviderClient {
    private struct Known {
        var document: ProviderDocument
        var keys: ProviderKeys
        /// Nanoseconds of a monotonic clock.
        var read: UInt64
    }

    private struct State {
        var http: HTTPClient?
        var isShutDown = false
        var known: [String: Known] = [:]
    }

    private static let lifetimeNanoseconds: UInt64 = 3_600_000_000_000
    /// Unknown keys make a node ask at most this often.
    private static let pauseNanoseconds: UInt64 = 10_000_000_000
    private static let requestSeconds: Int64 = 8
    private static let knownMax = 64

    private let state = Mutex(State())

    func document(ofIssuer issuer: String) async throws(RequestFailure) -> ProviderDocument {
        try await known(issuer, maxAge: Self.lifetimeNanoseconds).document
    }

    func keys(ofIssuer issuer: String, for idToken: String) async throws(RequestFailure) -> ProviderKeys {
        let known = try await known(issuer, maxAge: Self.lifetimeNanoseconds)
        if known.keys.hasKey(for: idToken) { return known.keys }
        return try await self.known(issuer, maxAge: Self.pauseNanoseconds).keys
    }

    private func known(_ issuer: String, maxAge: UInt64) async throws(RequestFailure) -> Known {
        let now = NIODeadline.now().uptimeNanoseconds
        if let known = state.withLock({ $0.known[issuer] }), now - min(now, known.read) < maxAge { return known }
        let found = try await get(try relay(ProviderDocument.address(ofIssuer: issuer)), issuer)
        let document = try relay(ProviderDocument(parsing: found, issuer: issuer))
        let read = try await get(document.keysEndpoint, issuer)
        let keys = try relay(ProviderKeys(parsing: read, issuer: issuer))
        let known = Known(document: document, keys: keys, read: now)
        state.withLock { state in
            if state.known.count >= Self.knownMax { state.known.removeAll() }
            state.known[issuer] = known
        }
        return known
    }

    func idToken(
        for exchange: CodeExchange, at document: ProviderDocument
    ) async throws(RequestFailure) -> String {
        var fields = [
            ("grant_type", "authorization_code"), ("code", exchange.code), ("redirect_uri", exchange.redirectAddress),
            ("code_verifier", exchange.verifier),
        ]
        var request = HTTPClientRequest(url: document.tokenEndpoint)
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/x-www-form-urlencoded")
        request.headers.add(name: "accept", value: "application/json")
        if let secret = exchange.clientSecret, document.tokenAuthenticationMethods.contains("client_secret_basic") {
            let pair = "\(URLText.escape(exchange.clientID)):\(URLText.escape(secret))"
            request.headers.add(name: "authorization", value: "Basic \(Base64.encode(Array(pair.utf8)))")
        } else {
            fields.append(("client_id", exchange.clientID))
            if let secret = exchange.clientSecret { fields.append(("client_secret", secret)) }
        }
        request.body = .bytes(ByteBuffer(string: URLText.query(fields.map { (name: $0.0, value: $0.1) })))
        let (status, body) = try await send(request, document.issuer)
        let json = try? JSONParser.parse(body)
        guard status == 200, let token = json?["id_token"]?.string else {
            throw Self.refusal(document.issuer, status: status, json)
        }
        return token
    }

    /// What a token endpoint's failure means. Only the standard's short code is repeated: the rest may hold anything.
    private static func refusal(_ issuer: String, status: Int, _ json: JSONValue?) -> RequestFailure {
        let code = json?["error"]?.string?.filter { $0.isASCII && ($0.isLetter || $0 == "_") }.prefix(40)
        let problem = code.map { "it said '\($0)'" } ?? (status == 200 ? "it gave no identity token" : "HTTP \(status)")
        return .authenticationFailed(
            "The identity provider '\(issuer)' did not confirm who you are (\(problem)). Sign in again.")
    }

    private func get(_ url: String, _ issuer: String) async throws(RequestFailure) -> [UInt8] {
        var request = HTTPClientRequest(url: url)
        request.headers.add(name: "accept", value: "application/json")
        let (status, body) = try await send(request, issuer)
        guard status == 200 else { throw Self.unreachable(issuer, "\(url) answered HTTP \(status)") }
        return body
    }

    private func send(
        _ request: HTTPClientRequest, _ issuer: String
    ) async throws(RequestFailure) -> (status: Int, body: [UInt8]) {
        do {
            let end = NIODeadline.now() + .seconds(Self.requestSeconds)
            let response = try await client().execute(request, deadline: end)
            let body = try await response.body.collect(upTo: ProviderDocument.documentBytesMax, by: end)
            return (Int(response.status.code), Array(body.readableBytesView))
        } catch {
            throw Self.unreachable(issuer, "\(request.url): \(error)")
        }
    }

    private static func unreachable(_ issuer: String, _ problem: String) -> RequestFailure {
        RequestFailure(
            ServiceError(
                .tryAgainLater, "The identity provider '\(issuer)' cannot be asked now: \(problem)",
                retryAfterSeconds: 5))
    }

    private func client() throws -> HTTPClient {
        try state.withLock { state in
            if state.isShutDown { throw CancellationError() }
            if let http = state.http { return http }
            var configuration = HTTPClient.Configuration(
                redirectConfiguration: .disallow,
                timeout: HTTPClient.Configuration.Timeout(connect: .seconds(4), read: .seconds(Self.requestSeconds)))
            configuration.connectionPool.idleTimeout = .seconds(5)
            let http = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
            state.http = http
            return http
        }
    }

    /// Ends all connections; requests from now on fail.
    func shutdown() async {
        let http = state.withLock { state in
            state.isShutDown = true
            return state.http.take()
        }
        try? await http?.shutdown()
    }
}
