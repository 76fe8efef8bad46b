import Foundation
import SwiftASN1
import X509

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
    /// - Throws: `CertificatesError` if it is neither.
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
