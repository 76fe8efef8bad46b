package import Crypto
package import Foundation
import SwiftASN1
package import X509

/// A certificate authority: its self-signed certificate and its ECDSA P-256 key.
///
/// Whoever holds the key of the peer authority can act as any node, so it belongs on the operator's machine and not
/// on nodes.
package struct CertificateAuthority: Sendable {
    /// The self-signed certificate; leafs are verified against it.
    package let certificate: Certificate
    /// Signs leafs.
    let key: P256.Signing.PrivateKey

    /// How long an authority lives unless told otherwise: ten years, in seconds.
    package static let lifetimeSeconds: TimeInterval = 10 * 365 * 86_400
    /// How long a leaf lives unless told otherwise: one year, in seconds.
    package static let leafLifetimeSeconds: TimeInterval = 365 * 86_400
    /// How far validity begins before now, so that machines with clocks behind ours accept the certificate at once.
    static let backdatingSeconds: TimeInterval = 300

    init(certificate: Certificate, key: P256.Signing.PrivateKey) {
        self.certificate = certificate
        self.key = key
    }

    /// Makes an authority with a random serial.
    /// - Throws: `CertificatesError` if the name or the lifetime cannot stand in a certificate.
    package static func create(
        commonName: String, key: P256.Signing.PrivateKey = P256.Signing.PrivateKey(), now: Date,
        lifetime: TimeInterval = lifetimeSeconds
    ) throws(CertificatesError) -> CertificateAuthority {
        do {
            let publicKey = Certificate.PublicKey(key.publicKey)
            let name = try DistinguishedName { CommonName(commonName) }
            let certificate = try Certificate(
                version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: publicKey,
                notValidBefore: now - backdatingSeconds, notValidAfter: now + lifetime, issuer: name, subject: name,
                signatureAlgorithm: .ecdsaWithSHA256,
                extensions: try Certificate.Extensions {
                    Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                    Critical(KeyUsage(keyCertSign: true, cRLSign: true))
                    SubjectKeyIdentifier(hash: publicKey)
                }, issuerPrivateKey: Certificate.PrivateKey(key))
            return CertificateAuthority(certificate: certificate, key: key)
        } catch {
            throw CertificatesError(
                file: "authority \"\(commonName)\"", problem: "its certificate cannot be made: \(error)",
                remedy: "Check the name and the lifetime")
        }
    }

    /// What a leaf says.
    struct Leaf {
        var commonName: String
        var names: [SubjectName]
        var usages: [ExtendedKeyUsage.Usage]
        var lifetime: TimeInterval
    }

    /// Signs a leaf for a public key. It never outlives the authority.
    /// - Throws: `CertificatesError` if the authority has expired or the leaf cannot be encoded.
    func issue(
        _ leaf: Leaf, for publicKey: P256.Signing.PublicKey, now: Date
    ) throws(CertificatesError) -> Certificate {
        let authorityName = String(describing: certificate.subject)
        guard certificate.notValidAfter > now else {
            throw CertificatesError(
                file: "authority \(authorityName)", problem: "expired on \(certificate.notValidAfter)",
                remedy:
                    "Make new authorities in another folder, issue every node anew and put the files in place of the old"
            )
        }
        do {
            let publicKey = Certificate.PublicKey(publicKey)
            return try Certificate(
                version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: publicKey,
                notValidBefore: max(now - Self.backdatingSeconds, certificate.notValidBefore),
                notValidAfter: min(now + leaf.lifetime, certificate.notValidAfter), issuer: certificate.subject,
                subject: try DistinguishedName { CommonName(leaf.commonName) }, signatureAlgorithm: .ecdsaWithSHA256,
                extensions: try Certificate.Extensions {
                    Critical(BasicConstraints.notCertificateAuthority)
                    Critical(KeyUsage(digitalSignature: true))
                    try ExtendedKeyUsage(leaf.usages)
                    SubjectAlternativeNames(leaf.names.map(\.general))
                    SubjectKeyIdentifier(hash: publicKey)
                    AuthorityKeyIdentifier(
                        keyIdentifier: SubjectKeyIdentifier(hash: self.certificate.publicKey).keyIdentifier)
                }, issuerPrivateKey: Certificate.PrivateKey(key))
        } catch {
            throw CertificatesError(
                file: "certificate \"\(leaf.commonName)\"", problem: "it cannot be made: \(error)",
                remedy: "Check its names and lifetime")
        }
    }
}
