import Crypto
import Synchronization
package import Wire

/// A secret that all nodes have from the directory, and clients do not have. The directory's leader makes it once, as
/// soon as all nodes know it (`FeatureLevel.containerDeletion`).
///
/// What nodes give to clients and take back is sealed or signed with keys derived from it, one for each purpose. The
/// directory stores it unencrypted, so that nodes need no encryption key for it. It does not protect against anyone who
/// has a node's disk or a backup.
package struct ClusterSecret: Hashable, Sendable, WireMessage {
    /// The length of the random key in bytes.
    package static let keyBytes = 32
    /// How long a cluster goes on to take the positions that it gave before it had the secret, in milliseconds.
    package static let clearMilliseconds: Int64 = 7 * 86_400_000
    /// Of a sealed form. Nothing that was given in clear begins with it.
    private static let version: UInt8 = 0

    private var key: [UInt8]
    private let derivedKeys = DerivedKeys()
    /// Until when unsealed positions of earlier builds are accepted, in milliseconds since 1970; 0 if there were never
    /// any.
    package private(set) var clearUntil: Int64

    /// - Parameter key: `keyBytes` random bytes.
    package init(key: [UInt8], clearUntil: Int64) {
        self.key = key
        self.clearUntil = clearUntil
    }

    /// Whether it can be one: for what comes from a command.
    var isWhole: Bool { key.count == Self.keyBytes }

    /// Seals a payload that a client returns in a later request and can neither read nor change.
    ///
    /// The same payload gives the same bytes, as clients compare positions: the nonce is a code of the payload.
    /// - Parameter purpose: the payload opens for the same purpose only.
    package func seal(_ payload: [UInt8], purpose: String) -> [UInt8] {
        let nonce = code(of: payload, purpose: "nonce/\(purpose)").prefix(12)
        guard
            let combined = try? AES.GCM.seal(
                payload, using: derived("seal/\(purpose)"), nonce: AES.GCM.Nonce(data: nonce)
            ).combined
        else {
            // AES-GCM refuses only keys and nonces of wrong sizes, and both are made here.
            preconditionFailure("AES-GCM cannot seal \(payload.count) bytes")
        }
        return [Self.version] + combined
    }

    /// The payload of what `seal` made; nil where it was changed, or made for another purpose or by another cluster.
    package func open(_ sealed: [UInt8], purpose: String) -> [UInt8]? {
        guard Self.isSealed(sealed), let box = try? AES.GCM.SealedBox(combined: sealed.dropFirst()) else { return nil }
        return (try? AES.GCM.open(box, using: derived("seal/\(purpose)"))).map { Array($0) }
    }

    /// Whether bytes have the form of what a cluster sealed; they may be forged.
    package static func isSealed(_ bytes: [UInt8]) -> Bool { bytes.first == version }

    /// Whether a position is taken that is not sealed.
    package func takesClear(at now: Int64) -> Bool { now < clearUntil }

    /// The HMAC-SHA-256 of some bytes, for what clients may read and not change; 32 bytes.
    /// - Parameter purpose: as in `seal`.
    package func code(of bytes: [UInt8], purpose: String) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: derived("code/\(purpose)")))
    }

    /// Whether `code` is what `code(of:purpose:)` gives; takes the same time wherever they differ.
    package func isCode(_ code: [UInt8], of bytes: [UInt8], purpose: String) -> Bool {
        HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: bytes, using: derived("code/\(purpose)"))
    }

    private func derived(_ label: String) -> SymmetricKey {
        derivedKeys.key(label) {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: key), info: Array("zonekeeper cluster/\(label)".utf8),
                outputByteCount: 32)
        }
    }

    /// Equal where the key and `clearUntil` are; derived keys do not count.
    package static func == (one: ClusterSecret, other: ClusterSecret) -> Bool {
        one.key == other.key && one.clearUntil == other.clearUntil
    }

    /// Hashes the key and `clearUntil`, as `==` compares them.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(key)
        hasher.combine(clearUntil)
    }

    package static var blank: Self { ClusterSecret(key: [], clearUntil: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &key)
        try wire.field(2, &clearUntil, unless: 0)
    }
}

/// The keys that follow from a secret, each derived once: every URL and position needs one. Their labels are constants
/// of the program, so there are few.
private final class DerivedKeys: Sendable {
    private let keys = Mutex<[String: SymmetricKey]>([:])

    func key(_ label: String, _ derive: () -> SymmetricKey) -> SymmetricKey {
        keys.withLock { keys in
            if let key = keys[label] { return key }
            let key = derive()
            keys[label] = key
            return key
        }
    }
}

/// No log shows the key.
extension ClusterSecret: CustomStringConvertible {
    /// The same text for every secret.
    package var description: String { "the cluster's secret" }
}
