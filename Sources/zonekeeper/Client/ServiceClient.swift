import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import RecordModel

/// No node could be asked, or none answered.
struct ServiceUnreachable: Error, CustomStringConvertible {
    /// What happened at each URL that was tried.
    var problems: [(url: String, text: String)]
    /// Whether nothing was sent anywhere, because nobody listens.
    var isRefused: Bool
    /// Whether a node may have done what was asked.
    var isOutcomeUnknown: Bool

    var description: String {
        // The same problem everywhere is said once.
        (Set(problems.map(\.text)).count == 1
            ? problems.map(\.url).joined(separator: ", ") + ": \(problems[0].text)"
            : problems.map { "\($0.url): \($0.text)" }.joined(separator: "; "))
            + (isOutcomeUnknown ? ". The outcome is unknown: look before you repeat it" : "")
    }
}

/// Sends requests to whichever of a cluster's nodes answers.
struct ServiceClient: Sendable {
    var http: HTTPClient
    /// Without a slash at the end; tried in order.
    var urls: [String]
    var administratorSecret: String?
    var waiting = Waiting.real

    /// The longest answer that is read.
    private static let responseBytesMax = 64 << 20

    /// A client that trusts one authority, or the system's where it is nil.
    /// - Throws: `CommandFailure` if the authority's file cannot be used.
    static func http(authority: String?, connectSeconds: Int64 = 3) throws(CommandFailure) -> HTTPClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        if let authority {
            do {
                tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(authority))
            } catch {
                throw CommandFailure("the certificate authority \(authority) cannot be read as PEM: \(error)")
            }
        }
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls, timeout: .init(connect: .seconds(connectSeconds)))
        // Another node is the better second try.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.httpVersion = .http1Only
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// Sends a request, to the next URL where one cannot be connected to, and again while the cluster says to come back later
    /// and nothing can have been done twice: exactly when it says, for as long as the request's patience lasts.
    /// - Throws: `ServiceUnreachable`; `CommandFailure` if a request cannot be signed.
    func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        let start = waiting.now()
        var pauses = RetryPauses(patienceSeconds: request.patienceSeconds)
        while true {
            let pause: Double
            do {
                let response = try await sendToAny(request)
                let elapsed = (waiting.now() - start) / .seconds(1)
                guard Self.isWorthRepeating(response, request),
                    let next = pauses.next(named: response.retryAfterSeconds, elapsed: elapsed)
                else { return response }
                pause = next
            } catch let error as ServiceUnreachable {
                let isSafe = !error.isOutcomeUnknown || request.isRepeatable || request.idempotencyKey != nil
                let elapsed = (waiting.now() - start) / .seconds(1)
                guard request.waitsForConnection, isSafe, let next = pauses.next(named: nil, elapsed: elapsed)
                else { throw error }
                pause = next
            }
            try await waiting.sleep(.seconds(pause))
        }
    }

    private func sendToAny(_ request: ServiceRequest) async throws -> ServiceResponse {
        var unreachable = ServiceUnreachable(problems: [], isRefused: true, isOutcomeUnknown: false)
        for url in urls {
            do {
                return try await attempt(request, at: url)
            } catch {
                let problem = ConnectionProblem(error)
                unreachable.problems.append((url, problem.text))
                unreachable.isRefused = unreachable.isRefused && problem.isRefused
                guard problem.isBeforeSending || request.isRepeatable || request.idempotencyKey != nil else {
                    unreachable.isOutcomeUnknown = true
                    throw unreachable
                }
                if !problem.isBeforeSending, !request.isRepeatable { unreachable.isOutcomeUnknown = true }
            }
        }
        throw unreachable
    }

    private func attempt(_ request: ServiceRequest, at url: String) async throws -> ServiceResponse {
        let target = request.target
        var message = HTTPClientRequest(url: url + target)
        message.method = request.method
        if !request.body.isEmpty {
            message.headers.add(name: "Content-Type", value: "application/json; charset=UTF-8")
            message.body = .bytes(request.body)
        }
        if let key = request.idempotencyKey { message.headers.add(name: "Idempotency-Key", value: key) }
        if case .key(let key)? = request.credentials {
            let headers = try key.headers(target: target, body: request.body, time: Times.now)
            for (name, value) in headers { message.headers.add(name: name, value: value) }
        }
        if request.isAdministrative {
            guard let administratorSecret else {
                throw CommandFailure("this needs the administrator's token: name its file with --admin-token-file")
            }
            message.headers.add(name: "Authorization", value: "Bearer \(administratorSecret)")
        }
        let answer = try await http.execute(message, timeout: .seconds(request.timeoutSeconds))
        let body = try await answer.body.collect(upTo: Self.responseBytesMax)
        let response = ServiceResponse(
            status: Int(answer.status.code), headers: answer.headers, body: Array(body.readableBytesView))
        if case .tokens(_, let user?)? = request.credentials, let token = response.newWebAuthToken {
            user.replaced(by: token)
        }
        return response
    }

    /// Whether the cluster asks to try later, and a repeat cannot do the same thing twice.
    private static func isWorthRepeating(_ response: ServiceResponse, _ request: ServiceRequest) -> Bool {
        if response.status == 429 { return true }
        guard response.status == 503 else { return false }
        if request.isRepeatable || request.idempotencyKey != nil { return true }
        // The server's own words where it can prove it.
        return (try? response.json())?["reason"]?.string?.hasPrefix("nothing was done") == true
    }
}
