import AsyncHTTPClient
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
package import RecordModel

/// A configuration, file or key that cannot be used, so that no request can be sent.
///
/// A retry helps only after the cause in the message was repaired. The message contains no secret.
package struct ServiceClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was wrong, where, and what to do.
    package var message: String

    /// What it is about.
    package var subject: Subject

    /// The part of a configuration that cannot be used.
    package enum Subject: Hashable, Sendable {
        /// A setting, or a file or key that one names.
        case configuration
        /// The file of the user's session is missing: no user is signed in.
        case session
    }

    package init(_ message: String, about subject: Subject = .configuration) {
        self.message = message
        self.subject = subject
    }

    /// What was wrong and what to do about it.
    package var description: String { message }
}

/// A node's answer that the request as a whole failed.
package struct ServiceFailure: Error, Sendable, CustomStringConvertible {
    /// HTTP's.
    package var status: Int
    /// The server's code, such as `THROTTLED`; empty if the answer did not come from a node.
    package var code: String
    /// What was wrong, where, and what to do.
    package var reason: String
    /// When a retry may help, in seconds from now; nil if none does.
    package var retryAfterSeconds: Double?
    /// The request's name in the logs of the nodes.
    package var uuid: String?
    /// Where to sign in, with `AUTHENTICATION_REQUIRED`.
    package var redirectURL: String?
    /// The whole body; null if it is not JSON. For an atomic batch it has the `records`.
    package var json: JSONValue

    package init(_ response: ServiceResponse) {
        status = response.status
        json = (try? response.parsed()) ?? .null
        code = json["serverErrorCode"]?.string ?? ""
        reason =
            json["reason"]?.string
            ?? "HTTP status \(response.status), without a reason. Is this a Zonekeeper node?"
        retryAfterSeconds = response.retryAfterSeconds
        uuid = json["uuid"]?.string
        redirectURL = json["redirectURL"]?.string
    }

    /// What the error is about, beside its code.
    package var detail: ErrorDetail? { ErrorDetail(ofError: json) }

    /// Whether the server does not accept the session's token.
    package var isSignedOut: Bool { status == 421 || code == "AUTHENTICATION_REQUIRED" }

    /// What was wrong and what to do about it.
    package var description: String { code.isEmpty ? reason : "\(code): \(reason)" }
}

extension ErrorDetail {
    /// What an error's JSON object says beside its code.
    package init?(ofError json: JSONValue) {
        let said = json["detail"]?.string
        guard let detail = said.map({ ErrorDetail(rawValue: $0) }) ?? json["reason"]?.string.flatMap(Self.inWords)
        else { return nil }
        self = detail
    }

    /// Servers from before the member `detail`, and shards that remember what they answered, say it in words only.
    private static func inWords(_ reason: String) -> ErrorDetail? {
        let words: [(ErrorDetail, [String])] = [
            (.tooLongAnswer, ["too large for one answer"]),
            (.tooLarge, ["send them in several requests", " bytes, at most", "send less in one request"]),
            (.expiredSyncToken, ["nknown sync continuation type", "client knowledge differs"]),
        ]
        if let found = words.first(where: { $0.1.contains { reason.contains($0) } }) { return found.0 }
        if reason.hasPrefix("nothing was done") { return .nothingDone }
        if reason.hasPrefix("no container ") { return .unknownContainer }
        if reason.hasPrefix("record type not found") { return .unknownRecordType }
        return reason.lowercased().contains("idempotency") ? .idempotencyKey : nil
    }
}

/// No node could be reached, or none answered.
package struct ServiceUnreachable: Error, Sendable, CustomStringConvertible {
    /// What happened at each URL that was tried, in order; never empty.
    package var problems: [(url: String, text: String)] = []
    /// Whether nothing was sent, because no connection could be made.
    package var isRefused = true
    /// Whether a request was sent to a node that did not answer.
    package var wasSent = false
    /// Whether a node may have done the request. If not, a retry is safe.
    package var isOutcomeUnknown = false

    /// Adds an attempt at one URL that got no answer.
    @discardableResult
    mutating func note(_ error: any Error, at url: String) -> ConnectionProblem {
        var problem = ConnectionProblem(error)
        if url.hasPrefix("http://"), error as? HTTPClientError == .remoteConnectionClosed {
            problem.text = "the node closed the connection: nodes speak https; is https\(url.dropFirst(4)) meant?"
        }
        problems.append((url, problem.text))
        isRefused = isRefused && problem.isRefused
        wasSent = wasSent || !problem.isBeforeSending
        return problem
    }

    mutating func note(_ earlier: ServiceUnreachable?) {
        guard let earlier else { return }
        wasSent = wasSent || earlier.wasSent
        isRefused = isRefused && earlier.isRefused
    }

    /// What was wrong and what to do about it.
    package var description: String {
        // The same problem at all nodes is listed once.
        (Set(problems.map(\.text)).count == 1
            ? problems.map(\.url).joined(separator: ", ") + ": \(problems[0].text)"
            : problems.map { "\($0.url): \($0.text)" }.joined(separator: "; "))
            + (isOutcomeUnknown ? ". The outcome is unknown: look before you repeat it" : "")
    }
}

/// Why an attempt got no answer.
struct ConnectionProblem {
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
            (text, isBeforeSending) = ("cannot connect: no answer in time", true)
        case let error as NIOSSLExtraError where error == .failedToValidateHostname:
            text = "its certificate does not name this host: use the host that the certificate names, or issue it anew"
            isBeforeSending = true
        case _ where Self.isOfHandshake(error):
            text =
                "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
                ? "its certificate is not trusted: name the authority that signed it with --ca"
                : "the TLS handshake failed: \(error)"
            isBeforeSending = true
        case let error as IOError where error.errnoCode == ECONNREFUSED:
            (text, isBeforeSending, isRefused) = ("cannot connect: no node listens there", true, true)
        case let error as HTTPClientError where error == .invalidURL || error == .emptyHost || error == .emptyScheme:
            (text, isBeforeSending) = ("is no URL such as https://127.0.0.1:24000", true)
        case let error as HTTPClientError where error == .remoteConnectionClosed:
            (text, isBeforeSending) = ("no answer: the node closed the connection", false)
        case is TimeIsUp: (text, isBeforeSending) = ("no answer in time", false)
        case let error as HTTPClientError where error == .deadlineExceeded:
            (text, isBeforeSending) = ("no answer in time", false)
        case let error as ServiceClientError: (text, isBeforeSending) = (error.message, true)
        default: (text, isBeforeSending) = ("no answer: \(error)", false)
        }
    }
    /// Whether TLS failed before a byte of the request was sent. If it fails later, the outcome is unknown.
    private static func isOfHandshake(_ error: any Error) -> Bool {
        if case .handshakeFailed? = error as? NIOSSLError { return true }
        return error is NIOSSLExtraError || "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
    }
}
