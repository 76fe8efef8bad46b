package import Crypto
package import Foundation
import SwiftASN1
package import X509

/// A certificate authority: its self-signed certificate and its ECDSA P-256 key.
///
/// The holder of the peer authority's key can act as any node, so it belongs on the operator's machine and not on
/// nodes.
package struct CertificateAuthority: Sendable {
    /// The self-signed certificate; leafs are verified against it.
    package let certificate: Certificate
    let key: P256.Signing.PrivateKey

    /// How long an authority lives unless told otherwise: ten years, in seconds.
    package static let lifetimeSeconds: TimeInterval = 10 * 365 * 86_400
    /// How long a leaf lives unless told otherwise: one year, in seconds.
    package static let leafLifetimeSeconds: TimeInterval = 365 * 86_400
    /// How far validity begins before now, so that machines with clocks behind ours accept the certificate at once.
    static let backdatingSeconds: TimeInterval = 300

    /// Makes an authority with a random serial.
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

/// One name that a certificate is valid for.
package enum SubjectName: Hashable, Sendable, CustomStringConvertible {
    /// A cluster node, as peers check it: `zonekeeper://node/<id>` in the certificate.
    case node(UInt64)
    /// A DNS name, lowercase.
    case dns(String)
    /// An IPv4 address (4 bytes) or an IPv6 address (16 bytes).
    case address([UInt8])

    /// What stands before the node id in a peer certificate's URI.
    package static let nodePrefix = "zonekeeper://node/"

    /// Reads a host as an operator writes it: an IPv4 or IPv6 address, or a DNS name, whose first label may be `*`.
    package init(host: String) throws(CertificatesError) {
        if let bytes = Self.parse(host, family: AF_INET, count: 4) ?? Self.parse(host, family: AF_INET6, count: 16) {
            self = .address(bytes)
            return
        }
        let name = host.lowercased()
        var labels = name.split(separator: ".", omittingEmptySubsequences: false)
        if labels.count > 1, labels.first == "*" { labels.removeFirst() }
        guard name.utf8.count <= 253, labels.allSatisfy(Self.isLabel) else {
            throw CertificatesError(
                file: "host \"\(host)\"", problem: "is neither an IP address nor a DNS name",
                remedy: "Give hosts like db1.example.org, 10.0.0.5 or fd00::5, without a port")
        }
        self = .dns(name)
    }

    /// As `openssl x509 -text` and the status list show it.
    package var description: String {
        switch self {
        case .node(let id): "URI:\(Self.nodePrefix)\(id)"
        case .dns(let name): "DNS:\(name)"
        case .address(let bytes): "IP:\(Self.text(of: bytes))"
        }
    }

    private static func isLabel(_ label: Substring) -> Bool {
        guard (1...63).contains(label.utf8.count), label.first != "-", label.last != "-" else { return false }
        return label.utf8.allSatisfy { byte in
            (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D
        }
    }

    private static func parse(_ text: String, family: Int32, count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return inet_pton(family, text, &bytes) == 1 ? bytes : nil
    }

    private static func text(of bytes: [UInt8]) -> String {
        var buffer = [CChar](repeating: 0, count: 64)
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16,
            inet_ntop(family, bytes, &buffer, socklen_t(buffer.count)) != nil
        else { return bytes.map(String.init).joined(separator: ".") }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension SubjectName {
    /// The name in a certificate's own form.
    var general: GeneralName {
        switch self {
        case .node(let id): .uniformResourceIdentifier(Self.nodePrefix + String(id))
        case .dns(let name): .dnsName(name)
        case .address(let bytes): .ipAddress(ASN1OctetString(contentBytes: bytes[...]))
        }
    }

    /// The name in a certificate, if it is of a kind that we issue.
    init?(_ general: GeneralName) {
        switch general {
        case .dnsName(let name): self = .dns(name)
        case .ipAddress(let address): self = .address(Array(address.bytes))
        case .uniformResourceIdentifier(let uri):
            guard uri.hasPrefix(Self.nodePrefix), let id = UInt64(uri.dropFirst(Self.nodePrefix.count)) else {
                return nil
            }
            self = .node(id)
        default: return nil
        }
    }
}

/// Why certificates could not be made, read or written: which file, what was wrong, what to do. A retry without the
/// remedy does not help.
package struct CertificatesError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path of the file or folder, or the argument, that the error is about.
    package var file: String
    /// What was wrong with it.
    package var problem: String
    /// What the operator can do.
    package var remedy: String

    /// What was wrong and what to do about it.
    package var description: String { "\(file): \(problem). \(remedy)." }
}
