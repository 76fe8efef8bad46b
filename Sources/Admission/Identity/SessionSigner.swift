import Crypto
import RecordModel

/// Makes and opens what the cluster gives out and takes back: the tokens of sessions, which are signed, and tickets,
/// which are sealed. Every node with the cluster's key opens what any other made; nothing is stored.
///
/// Keys come from the cluster's key by HKDF-SHA-256 with a label for each use, so that no token passes for a ticket,
/// nor a ticket of one purpose for that of another. A new cluster key ends every session and ticket.
package struct SessionSigner: Sendable {
    private static let tokenPrefix = "zks1_"
    private static let ticketPrefix = "zkt1_"
    /// What is longer was not made here, and is not looked at.
    private static let textBytesMax = 16 << 10

    private let clusterKey: SymmetricKey
    private let tokenKey: SymmetricKey

    /// - Parameter clusterKey: at least 32 bytes, the same on all nodes.
    package init(clusterKey: [UInt8]) {
        precondition(clusterKey.count >= 32, "\(clusterKey.count) bytes of cluster key")
        self.clusterKey = SymmetricKey(data: clusterKey)
        tokenKey = Self.key("session token", from: self.clusterKey)
    }

    private static func key(_ label: String, from clusterKey: SymmetricKey) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: clusterKey, info: Array("zonekeeper identity/\(label)".utf8), outputByteCount: 32)
    }
}

// Tokens: `zks1_`, then in Base64URL the issue time (8 bytes, big-endian), the session's id, and an HMAC-SHA-256 of
// both (32 bytes).
extension SessionSigner {
    private static let timeBytes = 8
    private static let codeBytes = 32

    /// A web auth token of a session. Whether the session lives is the directory's to say.
    ///
    /// - Parameter issued: milliseconds since 1970; greater than that of the token it replaces
    ///   (`SessionRotation.nextIssue`).
    /// - Returns: letters, digits, `-` and `_` only, so that no client has to escape it.
    package func token(sessionID: String, issued: Int64) -> String {
        let body = Self.bigEndian(issued) + Array(sessionID.utf8)
        let code = HMAC<SHA256>.authenticationCode(for: body, using: tokenKey)
        return Self.tokenPrefix + Base64URL.encode(body + Array(code))
    }

    /// What a token says; nil unless a node of this cluster made it exactly so.
    package func open(_ text: String) -> (sessionID: String, issued: Int64)? {
        guard let bytes = Self.bytes(of: text, prefix: Self.tokenPrefix),
            bytes.count > Self.timeBytes + Self.codeBytes
        else { return nil }
        let body = bytes.dropLast(Self.codeBytes)
        guard
            HMAC<SHA256>.isValidAuthenticationCode(bytes.suffix(Self.codeBytes), authenticating: body, using: tokenKey),
            let sessionID = String(validating: body.dropFirst(Self.timeBytes), as: UTF8.self)
        else { return nil }
        return (sessionID, Self.number(body.prefix(Self.timeBytes)))
    }
}

// Tickets: `zkt1_`, then in Base64URL nonce (12 bytes), AES-256-GCM of expiry (8 bytes, big-endian) and payload, tag
// (16 bytes).
extension SessionSigner {
    /// Seals a payload that a client returns in a later request and can neither read nor change.
    ///
    /// - Parameters:
    ///   - purpose: it opens for the same purpose only.
    ///   - expires: when it stops to open, in milliseconds since 1970.
    /// - Returns: letters, digits, `-` and `_` only.
    package func ticket(_ payload: [UInt8], purpose: String, expires: Int64) -> String {
        let key = Self.key("ticket/\(purpose)", from: clusterKey)
        guard let combined = try? AES.GCM.seal(Self.bigEndian(expires) + payload, using: key).combined else {
            // AES-GCM refuses only keys and nonces of wrong sizes, and both are made here.
            preconditionFailure("AES-GCM cannot seal \(payload.count) bytes")
        }
        return Self.ticketPrefix + Base64URL.encode(Array(combined))
    }

    /// The payload of a ticket; nil where it was changed, made for another purpose or by another cluster, or has
    /// expired.
    package func openTicket(_ text: String, purpose: String, now: Int64) -> [UInt8]? {
        guard let bytes = Self.bytes(of: text, prefix: Self.ticketPrefix),
            let box = try? AES.GCM.SealedBox(combined: bytes),
            let plain = try? AES.GCM.open(box, using: Self.key("ticket/\(purpose)", from: clusterKey)),
            plain.count >= Self.timeBytes
        else { return nil }
        let all = Array(plain)
        guard now < Self.number(all.prefix(Self.timeBytes)) else { return nil }
        return Array(all.dropFirst(Self.timeBytes))
    }

    private static func bytes(of text: String, prefix: String) -> [UInt8]? {
        guard text.utf8.count <= textBytesMax, text.hasPrefix(prefix) else { return nil }
        return Base64URL.decode(text.dropFirst(prefix.count))
    }

    private static func bigEndian(_ number: Int64) -> [UInt8] {
        let bits = UInt64(bitPattern: number)
        return (0..<8).map { UInt8(truncatingIfNeeded: bits >> UInt64(56 - 8 * $0)) }
    }

    private static func number(_ bytes: some Sequence<UInt8>) -> Int64 {
        Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }
}
