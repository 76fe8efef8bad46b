import Cluster
import Directory
import RecordModel
import Service

// The secrets that identity providers gave this cluster, sealed with its key.
extension WebContext {
    /// - Throws: `INTERNAL_ERROR` on a node without an encryption key.
    func sealed(_ secret: String, of provider: IdentityProvider) throws(RequestFailure) -> [UInt8] {
        do throws(ServiceError) {
            return try service.node.vault.sealSecret(Array(secret.utf8), purpose: Self.purpose(provider))
        } catch {
            throw RequestFailure(error)
        }
    }

    /// Nil for a public client, which has none.
    /// - Throws: `INTERNAL_ERROR` where it does not open with this node's encryption key.
    func secret(of provider: IdentityProvider) throws(ServiceError) -> String? {
        let secret = try service.node.vault.openSecret(provider.sealedSecret, purpose: Self.purpose(provider))
        return secret.isEmpty ? nil : String(decoding: secret, as: UTF8.self)
    }

    private static func purpose(_ provider: IdentityProvider) -> String { "provider/\(provider.name)" }
}
