import Crypto
package import Foundation
import X509

/// The folder with a cluster's authorities and its nodes' certificates.
///
/// ```
/// peer-ca.pem   peer-ca.key      who may be a node
/// client-ca.pem client-ca.key    what clients trust
/// node-<id>/peer.pem|peer.key      SAN URI zonekeeper://node/<id>; server and client authentication
/// node-<id>/server.pem|server.key  SANs localhost, 127.0.0.1, ::1 and the node's hosts; server authentication
/// ```
/// Two authorities, so that a certificate of the client port can never act as a node. A node needs `peer-ca.pem`,
/// `client-ca.pem` and its own folder; the authorities' keys are for issuing only. Keys have mode 0600, folders 0700.
package struct CertificateFolder: Sendable {
    /// The folder's path.
    package let path: String
    /// Signs what nodes show each other.
    package let peerAuthority: CertificateAuthority
    /// Signs what nodes show clients.
    package let clientAuthority: CertificateAuthority

    /// Makes the folder, if need be, and both authorities.
    /// - Parameter commonName: the cluster's name; the authorities are called `<name> peer CA` and `<name> client CA`.
    /// - Throws: `CertificatesError`; authorities that are already there are never overwritten.
    package static func create(
        path: String, commonName: String = "Zonekeeper", now: Date,
        lifetime: TimeInterval = CertificateAuthority.lifetimeSeconds
    ) throws(CertificatesError) -> CertificateFolder {
        for file in ["peer-ca.pem", "peer-ca.key", "client-ca.pem", "client-ca.key"]
        where Files.exists("\(path)/\(file)") {
            throw CertificatesError(
                file: "\(path)/\(file)", problem: "is already there",
                remedy: "Use it as it is, renew the nodes' certificates, or choose another folder")
        }
        let peer = try CertificateAuthority.create(commonName: commonName + " peer CA", now: now, lifetime: lifetime)
        let client = try CertificateAuthority.create(
            commonName: commonName + " client CA", now: now, lifetime: lifetime)
        try Files.makeFolder(path)
        for (name, authority) in [("peer-ca", peer), ("client-ca", client)] {
            try Files.write(authority.key.pemRepresentation + "\n", to: "\(path)/\(name).key", mode: Files.keyMode)
            let certificate = try Files.pem(authority.certificate)
            try Files.write(certificate, to: "\(path)/\(name).pem", mode: Files.certificateMode)
        }
        return CertificateFolder(path: path, peerAuthority: peer, clientAuthority: client)
    }

    /// Reads the authorities, keys included.
    /// - Throws: `CertificatesError` naming the file that is missing, unreadable or does not fit.
    package static func load(path: String) throws(CertificatesError) -> CertificateFolder {
        let peer = try Files.readCertificate("\(path)/peer-ca.pem")
        let client = try Files.readCertificate("\(path)/client-ca.pem")
        return CertificateFolder(
            path: path,
            peerAuthority: CertificateAuthority(
                certificate: peer, key: try Files.readKey("\(path)/peer-ca.key", for: peer)),
            clientAuthority: CertificateAuthority(
                certificate: client, key: try Files.readKey("\(path)/client-ca.key", for: client)))
    }
}
