import Crypto
import RecordModel

/// The secret that ties a sign-in at an identity provider to the node that began it (RFC 7636, method S256).
package struct PKCE: Hashable, Sendable {
    /// 43 characters; kept (sealed in a ticket) until the provider sends the browser back.
    package let verifier: String

    /// - Parameter seed: 32 random bytes.
    package init(seed: [UInt8]) {
        precondition(seed.count == 32, "\(seed.count) bytes of seed")
        verifier = Base64URL.encode(seed)
    }

    /// What the provider is told at the start: Base64URL of the verifier's SHA-256.
    package var challenge: String { Self.challenge(of: verifier) }

    package static func challenge(of verifier: String) -> String {
        Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
    }
}
