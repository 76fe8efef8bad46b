import Crypto
package import RecordModel
import Wire

// Secrets of the cluster itself, such as those that identity providers gave it: few, sealed with the cluster's key.
extension FieldVault {
    /// Seals a secret; it opens with the same purpose only. Empty stays empty.
    /// - Parameter purpose: what it is and whose, such as `provider/NAME`.
    /// - Throws: `INTERNAL_ERROR` where the node has no encryption key.
    package func sealSecret(_ secret: [UInt8], purpose: String) throws(ServiceError) -> [UInt8] {
        if secret.isEmpty { return [] }
        let key = try requiredClusterKey()
        return try [Self.version] + Self.encrypt(secret, with: key, binding: Self.binding(ofSecret: purpose))
    }

    /// The secret that was sealed for this purpose.
    /// - Throws: `INTERNAL_ERROR` where the node has no encryption key or another than the cluster's, or the bytes are
    ///   damaged or were sealed for something else; the reason shows nothing of the secret.
    package func openSecret(_ sealed: [UInt8], purpose: String) throws(ServiceError) -> [UInt8] {
        guard let version = sealed.first else { return [] }
        let key = try requiredClusterKey()
        guard version == Self.version,
            let secret = Self.decrypt(sealed.dropFirst(), with: key, binding: Self.binding(ofSecret: purpose))
        else {
            throw ServiceError(
                .internalError,
                "the secret of '\(purpose)' does not open with this node's encryption key: put the cluster's own key file "
                    + "(certs/encryption.key) back on this node and restart it, or give the secret anew")
        }
        return secret
    }

    private static func binding(ofSecret purpose: String) -> [UInt8] {
        var writer = WireWriter()
        writer.field(1, "zonekeeper secret")
        writer.field(2, purpose)
        return writer.bytes
    }
}
