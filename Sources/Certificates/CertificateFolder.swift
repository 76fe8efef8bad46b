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

    /// Makes the folder, if need be, and both authorities. What is there of them, because this was cut short before, stays as it is.
    /// - Parameter commonName: the cluster's name; the authorities are called `<name> peer CA` and `<name> client CA`.
    /// - Throws: `CertificatesError`, also where both authorities are there, or one is lost that nodes' certificates are of.
    package static func create(
        path: String, commonName: String = "Zonekeeper", now: Date,
        lifetime: TimeInterval = CertificateAuthority.lifetimeSeconds
    ) throws(CertificatesError) -> CertificateFolder {
        if Files.exists("\(path)/peer-ca.pem"), Files.exists("\(path)/client-ca.pem") {
            throw CertificatesError(
                file: "\(path)/peer-ca.pem", problem: "is already there",
                remedy: "Use it as it is, renew the nodes' certificates, or choose another folder")
        }
        try Files.makeFolder(path)
        let hasNodes = try Files.names(in: path).contains { $0.hasPrefix("node-") }
        for (file, name) in [("peer-ca", "peer CA"), ("client-ca", "client CA")] {
            let (certificatePath, keyPath) = ("\(path)/\(file).pem", "\(path)/\(file).key")
            guard !Files.exists(certificatePath) else { continue }
            guard !hasNodes else {
                throw CertificatesError(
                    file: certificatePath, problem: "is missing, and there are nodes' certificates beside it",
                    remedy: "Restore it, or choose another folder")
            }
            // What another process made meanwhile counts. The key first: nothing is signed by it before its certificate is there.
            let new = P256.Signing.PrivateKey().pemRepresentation + "\n"
            _ = try Files.writeNew(new, to: keyPath, mode: Files.keyMode)
            let authority = try CertificateAuthority.create(
                commonName: "\(commonName) \(name)", key: Files.readKey(keyPath), now: now, lifetime: lifetime)
            let certificate = try Files.pem(authority.certificate)
            _ = try Files.writeNew(certificate, to: certificatePath, mode: Files.certificateMode)
        }
        return try load(path: path)
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
