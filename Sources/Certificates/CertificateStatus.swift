package import Foundation
import SwiftASN1
import X509

/// What a certificate file says, for the operator's list.
package struct CertificateStatus: Hashable, Sendable {
    /// The file, relative to the folder: `node-1/peer.pem`.
    package var file: String
    /// The subject's common name.
    package var subject: String
    /// The issuer's common name.
    package var issuer: String
    /// The subject alternative names, as `URI:…`, `DNS:…` and `IP:…`; empty for an authority.
    package var names: [String]
    /// From when it is valid.
    package var notBefore: Date
    /// Until when it is valid.
    package var notAfter: Date

    /// Whether it has expired at a time.
    package func isExpired(at now: Date) -> Bool { notAfter <= now }

    /// Whole days until it expires; negative once it has.
    package func daysLeft(at now: Date) -> Int { Int((notAfter.timeIntervalSince(now) / 86_400).rounded(.down)) }
}

extension CertificateFolder {
    /// Lists the certificates in a folder: the authorities, then each node's. No key is read; on a node, where there
    /// are no keys of authorities, it works as well.
    /// - Throws: `CertificatesError` naming a file that is not a certificate, or if there are none.
    package static func status(path: String) throws(CertificatesError) -> [CertificateStatus] {
        var files = ["peer-ca.pem", "client-ca.pem"]
        for nodeID in try nodeIDs(path: path) { files += ["node-\(nodeID)/peer.pem", "node-\(nodeID)/server.pem"] }
        var list: [CertificateStatus] = []
        for file in files where Files.exists("\(path)/\(file)") {
            let certificate = try Files.readCertificate("\(path)/\(file)")
            list.append(
                CertificateStatus(
                    file: file, subject: certificate.commonName, issuer: certificate.issuer.commonName,
                    names: certificate.subjectNames.map(\.description), notBefore: certificate.notValidBefore,
                    notAfter: certificate.notValidAfter))
        }
        guard !list.isEmpty else {
            throw CertificatesError(
                file: path, problem: "there are no certificates in it", remedy: "Make them first, or check the path")
        }
        return list
    }
}

extension DistinguishedName {
    /// The first common name, or the whole name if there is none.
    var commonName: String {
        for relative in self {
            for attribute in relative where attribute.type == .RDNAttributeType.commonName {
                return String(describing: attribute.value)
            }
        }
        return String(describing: self)
    }
}

extension Certificate {
    var commonName: String { subject.commonName }

    /// The subject alternative names of the kinds that we issue.
    var subjectNames: [SubjectName] {
        guard let names = try? extensions.subjectAlternativeNames else { return [] }
        return names.compactMap(SubjectName.init)
    }
}
