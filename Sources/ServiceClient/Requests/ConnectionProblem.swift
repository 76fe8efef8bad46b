import AsyncHTTPClient
import Foundation
import NIOCore
import NIOPosix
import NIOSSL

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
            text = "cannot connect: no answer in time"
            isBeforeSending = true
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
            text = "is no URL such as https://127.0.0.1:24000"
            isBeforeSending = true
        case is TimeIsUp:
            (text, isBeforeSending) = ("no answer in time", false)
        case let error as HTTPClientError where error == .deadlineExceeded:
            (text, isBeforeSending) = ("no answer in time", false)
        case let error as ServiceClientError:
            text = error.message
            isBeforeSending = true
        default:
            text = "no answer: \(error)"
            isBeforeSending = false
        }
    }
    /// Whether TLS failed before a byte of the request was sent; it may fail later too, and then nobody knows what was done.
    private static func isOfHandshake(_ error: any Error) -> Bool {
        if case .handshakeFailed? = error as? NIOSSLError { return true }
        return error is NIOSSLExtraError || "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
    }
}
