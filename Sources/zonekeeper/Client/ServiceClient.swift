import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
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

    /// Sends a request, to the next URL where one cannot be connected to, and again while the cluster says to try later and
    /// nothing can have been done twice.
    /// - Throws: `ServiceUnreachable`.
    func send(_ request: ServiceRequest) async throws -> ServiceResponse {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(request.patienceSeconds)
        var pause = Duration.milliseconds(100)
        while true {
            do {
                let response = try await sendToAny(request)
                guard Self.isWorthRepeating(response, request), clock.now + pause < end else { return response }
            } catch let error as ServiceUnreachable {
                let isSafe = !error.isOutcomeUnknown || request.isRepeatable || request.idempotencyKey != nil
                guard request.waitsForConnection, isSafe, clock.now + pause < end else { throw error }
            }
            try await Task.sleep(for: pause)
            pause = min(pause * 2, .seconds(2))
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
        var message = HTTPClientRequest(url: url + request.target)
        message.method = request.method
        if !request.body.isEmpty {
            message.headers.add(name: "Content-Type", value: "application/json; charset=UTF-8")
            message.body = .bytes(request.body)
        }
        if let key = request.idempotencyKey { message.headers.add(name: "Idempotency-Key", value: key) }
        if request.isAdministrative {
            guard let administratorSecret else {
                throw CommandFailure("this needs the administrator's token: name its file with --admin-token-file")
            }
            message.headers.add(name: "Authorization", value: "Bearer \(administratorSecret)")
        }
        let response = try await http.execute(message, timeout: .seconds(request.timeoutSeconds))
        let body = try await response.body.collect(upTo: Self.responseBytesMax)
        return ServiceResponse(status: Int(response.status.code), body: Array(body.readableBytesView))
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

/// Why an attempt got no answer.
private struct ConnectionProblem {
    var text: String
    var isBeforeSending: Bool
    var isRefused = false

    init(_ error: any Error) {
        switch error {
        case let error as NIOConnectionError:
            isRefused = !error.connectionErrors.isEmpty || error.dnsAError == nil && error.dnsAAAAError == nil
            text = isRefused ? "cannot connect: no node listens there" : "cannot connect: the host is not known"
            isBeforeSending = true
        case let error as HTTPClientError where error == .connectTimeout:
            text = "cannot connect: no answer in time"
            isBeforeSending = true
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            text = "its certificate does not name this host: use the host that the certificate names, or issue it anew"
            isBeforeSending = true
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            text =
                "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
                ? "its certificate is not trusted: name the authority that signed it with --ca"
                : "the TLS handshake failed: \(error)"
            isBeforeSending = true
        case let error as IOError where error.errnoCode == ECONNREFUSED:
            (text, isBeforeSending, isRefused) = ("cannot connect: no node listens there", true, true)
        case let error as HTTPClientError where error == .invalidURL || error == .emptyHost || error == .emptyScheme:
            text = "is no URL such as https://127.0.0.1:24000"
            isBeforeSending = true
        case let error as CommandFailure:
            text = error.message
            isBeforeSending = true
        default:
            text = "no answer: \(error)"
            isBeforeSending = false
        }
    }
}
