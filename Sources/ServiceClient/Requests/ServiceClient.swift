package import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
package import NIOSSL
import RecordModel
import Synchronization

/// Sends requests to the nodes of a cluster, until one of them answers.
package struct ServiceClient: Sendable {
    /// Opens and keeps the connections; its owner shuts it down.
    package var http: HTTPClient
    /// Without a trailing slash; tried in order.
    package let urls: [String]
    /// For `/admin/1`.
    package var administratorSecret: String?
    /// The clock and sleep for pauses.
    package var waiting: Waiting
    /// The order in which to try the nodes. Copies of a client share it.
    private let nodes: NodeOrder

    static let responseBytesMax = 64 << 20

    package init(http: HTTPClient, urls: [String], administratorSecret: String? = nil, waiting: Waiting = .real) {
        self.http = http
        self.urls = urls
        self.administratorSecret = administratorSecret
        self.waiting = waiting
        nodes = NodeOrder(count: urls.count)
    }

    /// A client that trusts one authority, or the system's (nil). It speaks HTTP/2 if a node offers it.
    /// - Parameters:
    ///   - authority: the path of a PEM file.
    ///   - silenceSeconds: how long a connection may be silent while an answer is due, and how long a node may take
    ///     none of a body; nil for any time.
    /// - Throws: if the authority's file cannot be used.
    package static func http(
        authority: String?, connectSeconds: Int64 = 3, silenceSeconds: Int64? = nil
    ) throws(ServiceClientError) -> HTTPClient {
        let tls = try tls(authority: authority)
        // Nodes never redirect; tokens must not be forwarded.
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls, redirectConfiguration: .disallow,
            timeout: .init(connect: .seconds(connectSeconds), read: silenceSeconds.map { .seconds($0) }))
        configuration.timeout.write = silenceSeconds.map { .seconds($0) }
        // Trying another node is better than repeating the request here.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.httpVersion = .automatic
        // Attributes without a tracer cost as much as all of a save's own work. Spans are made only if the program
        // traces.
        if let tracer = configuration.tracing.tracer, String(describing: type(of: tracer)) == "NoOpTracer" {
            configuration.tracing.tracer = nil
        }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// TLS that trusts one authority, given by the path of its PEM file, or the system's (nil).
    package static func tls(authority: String?) throws(ServiceClientError) -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        guard let authority else { return tls }
        guard access(authority, R_OK) == 0 else {
            throw ServiceClientError(
                "the certificate authority \(authority) cannot be read: \(String(cString: strerror(errno)))")
        }
        guard let certificates = try? NIOSSLCertificate.fromPEMFile(authority), !certificates.isEmpty else {
            throw ServiceClientError("the certificate authority \(authority) holds no certificate in PEM")
        }
        tls.trustRoots = .certificates(certificates)
        return tls
    }

    /// Sends a request. If a node cannot be reached, tries the next URL. Repeats the request within its patience: when
    /// the cluster says to, and after a pause if the answer got lost and a repeat is safe. Under a limit for the whole
    /// call, each attempt gets the time that is left.
    /// - Throws: `ServiceUnreachable`; `ServiceClientError` if a request cannot be signed; `CancellationError` when the
    ///   task was cancelled, in which case a node may have done what was asked.
    package func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        let start = waiting.now()
        var pauses = RetryPauses(patienceSeconds: min(request.patienceSeconds, request.limitSeconds ?? .infinity))
        var lost: ServiceUnreachable?
        var isUncertain = false
        while true {
            let pause: Double
            do {
                var response = try await sendToAny(request, since: start)
                response.followsUncertainty = response.followsUncertainty || isUncertain
                isUncertain = response.isOutcomeUnknown && !request.isRepeatable
                guard Self.isWorthRepeating(response, request),
                    let next = pauses.next(
                        named: response.retryAfterSeconds, elapsed: elapsed(since: start), portion: .random(in: 0.5...1)
                    )
                else { return response }
                pause = next
            } catch var error as ServiceUnreachable {
                error.note(lost)
                error.isOutcomeUnknown = error.isOutcomeUnknown || isUncertain
                isUncertain = error.isOutcomeUnknown
                lost = error
                let isSafe = !error.isOutcomeUnknown || request.isRepeatable || request.idempotencyKey != nil
                guard request.waitsForConnection || error.wasSent, isSafe,
                    let next = pauses.next(named: nil, elapsed: elapsed(since: start), portion: .random(in: 0.5...1))
                else { throw error }
                pause = next
            }
            try await waiting.sleep(.seconds(pause))
        }
    }

    private func elapsed(since start: Duration) -> Double { (waiting.now() - start) / .seconds(1) }

    private func sendToAny(_ request: ServiceRequest, since start: Duration) async throws -> ServiceResponse {
        var unreachable = ServiceUnreachable()
        let places = nodes.order(now: waiting.now())
        for (number, place) in places.enumerated() {
            let url = urls[place]
            let seconds = Self.secondsForAttempt(
                request, elapsed: elapsed(since: start), isLast: number + 1 == places.count)
            if seconds <= 0, number > 0 { break }
            do {
                var response = try await attempt(request, at: url, seconds: max(seconds, 0.001))
                response.followsUncertainty = unreachable.isOutcomeUnknown
                // A node that cannot serve now comes last next time.
                nodes.answered(place, isServing: response.status != 503, now: waiting.now())
                return response
            } catch let error as TokenTakenOver {
                throw error
            } catch {
                if Task.isCancelled { throw CancellationError() }
                let problem = unreachable.note(error, at: url)
                // A node that had too little time has not failed.
                if problem.isBeforeSending || seconds >= Self.fairSeconds {
                    nodes.answered(place, isServing: false, now: waiting.now())
                }
                guard problem.isBeforeSending || request.isRepeatable || request.idempotencyKey != nil else {
                    unreachable.isOutcomeUnknown = true
                    throw unreachable
                }
                if !problem.isBeforeSending, !request.isRepeatable { unreachable.isOutcomeUnknown = true }
            }
        }
        throw unreachable
    }

    /// How long a node must have had, in seconds, before silence counts as a failure.
    private static let fairSeconds = 3.0

    /// The time for an attempt. While there is another node to try, it is half of the time left.
    static func secondsForAttempt(_ request: ServiceRequest, elapsed: Double, isLast: Bool) -> Double {
        guard let limit = request.limitSeconds else { return Double(request.timeoutSeconds) }
        let rest = limit - elapsed
        return min(isLast ? rest : rest / 2, Double(request.timeoutSeconds))
    }

    private func attempt(_ request: ServiceRequest, at url: String, seconds: Double) async throws -> ServiceResponse {
        let token = try request.presentToken()
        let message = try message(request, to: url, showing: token)
        let answer = try await http.execute(message, timeout: .nanoseconds(Int64(seconds * 1e9)))
        let body = try await Self.body(of: answer, within: request.limitSeconds == nil ? nil : seconds)
        let response = ServiceResponse(
            status: Int(answer.status.code), headers: answer.headers, body: Array(body.readableBytesView))
        response.renew(request.userToken, after: token)
        return response
    }

    /// Reads an answer's body. Without a time limit, it fails when the node falls silent.
    private static func body(of answer: HTTPClientResponse, within seconds: Double?) async throws -> ByteBuffer {
        guard let seconds else { return try await answer.body.collect(upTo: responseBytesMax) }
        return try await withThrowingTaskGroup(of: ByteBuffer.self) { group in
            group.addTask { try await answer.body.collect(upTo: responseBytesMax) }
            group.addTask {
                try await Task.sleep(for: .seconds(seconds))
                throw TimeIsUp()
            }
            defer { group.cancelAll() }
            return try await group.next() ?? ByteBuffer()
        }
    }

    func message(_ request: ServiceRequest, to url: String, showing token: String?) throws -> HTTPClientRequest {
        let target = request.target(showing: token)
        var message = try HTTPClientRequest(to: url + target)
        message.method = request.method
        var headers = HTTPHeaders()
        headers.reserveCapacity(8)
        if !request.body.isEmpty {
            headers.add(name: "Content-Type", value: "application/json; charset=UTF-8")
            message.body = .bytes(ByteBuffer(bytes: request.body))
        }
        if let key = request.idempotencyKey { headers.add(name: "Idempotency-Key", value: key) }
        if case .key(let key)? = request.credentials {
            let signature = try key.headers(target: target, body: request.body, time: WallClock.now)
            for (name, value) in signature { headers.add(name: name, value: value) }
        }
        if case .acting(let id)? = request.credentials { headers.add(name: "X-Zonekeeper-Act-As", value: id) }
        if request.isAdministrative || request.isActing {
            guard let administratorSecret else {
                throw ServiceClientError("this needs the administrator's token: name its file with --admin-token-file")
            }
            headers.add(name: "Authorization", value: "Bearer \(administratorSecret)")
        }
        message.headers = headers
        return message
    }

    /// Whether the cluster asks to try later, and a repeat cannot do the same thing twice.
    private static func isWorthRepeating(_ response: ServiceResponse, _ request: ServiceRequest) -> Bool {
        if response.status == 429 { return true }
        guard response.status == 503 else { return false }
        if request.isRepeatable || request.idempotencyKey != nil { return true }
        return response.saysNothingWasDone
    }
}

/// The time of a request ended before a node answered.
struct TimeIsUp: Error {}

/// The token was replaced by another program's since the request was made, and may belong to another user.
struct TokenTakenOver: Error {}

extension ServiceResponse {
    /// Keeps the token that came with the answer to a request that carried `sent`.
    func renew(_ user: WebAuthToken?, after sent: String?) {
        if let user, let sent, let token = newWebAuthToken { user.replaced(by: token, after: sent) }
    }
}

/// The order in which to try a cluster's nodes: the one that answered last comes first, and nodes that failed a few
/// seconds ago come last.
final class NodeOrder: Sendable {
    private struct State {
        var preferred = 0
        /// Until when each node comes last; nil for a node that did not fail.
        var failedUntil: [Duration?]
    }

    private let state: Mutex<State>
    private static let avoided = Duration.seconds(5)

    init(count: Int) { state = Mutex(State(failedUntil: Array(repeating: nil, count: count))) }

    func order(now: Duration) -> [Int] {
        state.withLock { state in
            let count = state.failedUntil.count
            if count == 1 { return [0] }
            let round = (0..<count).map { (state.preferred + $0) % count }
            if !state.failedUntil.contains(where: { $0 != nil }) { return round }
            func isAvoided(_ place: Int) -> Bool { state.failedUntil[place].map { $0 > now } ?? false }
            return round.filter { !isAvoided($0) } + round.filter { isAvoided($0) }
        }
    }

    /// - Parameter isServing: false if it could not be reached, or says that it cannot serve now.
    func answered(_ place: Int, isServing: Bool, now: Duration) {
        state.withLock { state in
            guard state.failedUntil.indices.contains(place) else { return }
            state.failedUntil[place] = isServing ? nil : now + Self.avoided
            if isServing { state.preferred = place }
        }
    }
}

/// The clock of a client; tests use their own.
package struct Waiting: Sendable {
    /// Time since some fixed moment; never goes back.
    package var now: @Sendable () -> Duration
    /// Returns after the duration. Throws `CancellationError` if the task is cancelled.
    package var sleep: @Sendable (Duration) async throws -> Void

    package init(now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async throws -> Void) {
        self.now = now
        self.sleep = sleep
    }

    /// The machine's clock.
    package static let real = Waiting(
        now: { [start = ContinuousClock.now] in start.duration(to: .now) }, sleep: { try await Task.sleep(for: $0) })
}

/// How long to wait before a request is sent again, and when to give up.
///
/// A pause that the server asks for is kept exactly: a retry then finds room, an earlier one is refused again.
/// Otherwise pauses double from 0.1 s up to 2 s, and each client takes a random portion, so that clients refused
/// together do not return together. A pause that would end too late is not begun: the call fails at once.
package struct RetryPauses: Hashable, Sendable {
    /// How long to go on from the first attempt, in seconds.
    private let patienceSeconds: Double
    private var nextSeconds = 0.1
    private static let secondsMax = 2.0

    package init(patienceSeconds: Double) { self.patienceSeconds = patienceSeconds }

    /// The pause before the next attempt, in seconds; nil to give up.
    /// - Parameters:
    ///   - named: what the server asked for, in seconds; may be fractional.
    ///   - elapsed: since the first attempt began, in seconds.
    ///   - portion: how much of our own pause is taken, above 0 and up to 1; random in real clients.
    package mutating func next(named: Double?, elapsed: Double, portion: Double = 1) -> Double? {
        let pause: Double
        // A server that asks for a pause of zero is not asked again at once.
        if let named, named > 0 {
            pause = named
        } else {
            pause = nextSeconds * portion
            nextSeconds = min(nextSeconds * 2, Self.secondsMax)
        }
        return elapsed + pause < patienceSeconds ? pause : nil
    }
}

/// The time of day.
package enum WallClock {
    /// Milliseconds since 1970, now.
    package static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
}

extension ServiceClient {
    /// Whether a URL names no port, or one that there is. With any other the network's library ends the process, or
    /// takes the scheme's own.
    package static func hasPort(_ url: String) -> Bool {
        let ends = Set("/?#".utf8)
        let authority = url.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2).prefix { !ends.contains($0) }
        // Behind the brackets of an IPv6 address.
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            !authority[colon...].contains(UInt8(ascii: "]"))
        else { return true }
        let digits = Substring(authority[colon...].dropFirst())
        return Int(digits).map { (1...65_535).contains($0) } ?? digits.isEmpty
    }
}

extension HTTPClientRequest {
    /// A request to a node's address.
    /// - Throws: `HTTPClientError.invalidURL` where it has a port that there is not.
    init(to address: String) throws(HTTPClientError) {
        guard ServiceClient.hasPort(address) else { throw .invalidURL }
        self.init(url: address)
    }
}
