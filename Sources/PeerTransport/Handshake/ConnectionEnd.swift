import NIOSSL

/// How a connection ended, which decides whether and how loudly it is logged.
enum ConnectionEnd: Hashable {
    /// This node wanted it.
    case wanted(String)
    /// This node refused the peer; "it" is the peer.
    case refused(String)
    /// The peer said goodbye, or its TLS refused this node.
    case refusedByPeer(String)
    /// The network or the peer went away.
    case broken(String)

    /// Translates what the channel reported. BoringSSL's errors are only told apart by their text.
    init(_ error: any Error) {
        let text = String(describing: error)
        func has(_ parts: String...) -> Bool { parts.contains { text.contains($0) } }
        if has("PEER_DID_NOT_RETURN_A_CERTIFICATE") {
            self = .refused("it presented no certificate")
        } else if has("CERTIFICATE_VERIFY_FAILED", "unableToValidateCertificate") {
            self = .refused("its certificate is not one of this cluster's peer CA, or has expired")
        } else if has(
            "ALERT_UNKNOWN_CA", "ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE", "CERTIFICATE_REQUIRED", "DECRYPT_ERROR")
        {
            self = .refusedByPeer("its TLS rejected this node's certificate (\(text))")
        } else if has("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST") {
            self = .refused("it does not speak TLS")
        } else if has("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION") {
            self = .refused("it does not speak TLS 1.3")
        } else if error is PeerProtocolError {
            self = .refused(text)
        } else if let error = error as? NIOSSLError, error == .uncleanShutdown {
            self = .broken("the connection was cut")
        } else if has("EOF during handshake") {
            self = .broken("it closed the connection during the TLS handshake")
        } else if case .handshakeFailed = error as? NIOSSLError {
            self = .refused("the TLS handshake failed (\(text))")
        } else {
            self = .broken(text)
        }
    }
}
