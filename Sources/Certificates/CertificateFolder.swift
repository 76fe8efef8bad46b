import Crypto
package import Foundation
import SwiftASN1
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

    /// Makes the folder, if need be, and both authorities. What is there of them, because this was cut short before,
    /// stays as it is.
    /// - Parameter commonName: the cluster's name; the authorities are called `<name> peer CA` and `<name> client CA`.
    /// - Throws: `CertificatesError`, also where both authorities are there, or one is lost that nodes' certificates
    ///   are of.
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
            // What another process made meanwhile counts. The key first: nothing is signed by it before its certificate
            // is there.
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

/// The files of a node's folder: what it shows to peers and to clients, and the keys of both.
package struct NodeCertificates: Sendable {
    let folder: String

    /// Shown to peers.
    package var peerCertificatePath: String { folder + "/peer.pem" }
    /// The private key for peers.
    package var peerKeyPath: String { folder + "/peer.key" }
    /// Shown to clients.
    package var serverCertificatePath: String { folder + "/server.pem" }
    /// The private key for clients.
    package var serverKeyPath: String { folder + "/server.key" }
}

extension CertificateFolder {
    /// Names that every client certificate carries, so that a cluster on one machine just works.
    private static let localNames: [SubjectName] = [
        .dns("localhost"), .address([127, 0, 0, 1]), .address([UInt8](repeating: 0, count: 15) + [1]),
    ]

    /// The files of a node, whether or not they are there.
    package func node(_ nodeID: UInt64) -> NodeCertificates { NodeCertificates(folder: "\(path)/node-\(nodeID)") }

    /// Makes a node's keys and certificates. The node's folder appears whole or not at all.
    /// - Parameters:
    ///   - hosts: DNS names and IP addresses, without ports, at which clients reach the node.
    ///   - lifetime: seconds from now; cut to the authority's own.
    /// - Throws: `CertificatesError`; certificates that are already there are never overwritten (see `renew`).
    @discardableResult
    package func issueNode(
        nodeID: UInt64, hosts: [String] = [], now: Date,
        lifetime: TimeInterval = CertificateAuthority.leafLifetimeSeconds
    ) throws(CertificatesError) -> NodeCertificates {
        let folder = "\(path)/node-\(nodeID)"
        guard !Files.exists(folder) else {
            throw CertificatesError(
                file: folder, problem: "node \(nodeID) has certificates already",
                remedy: "Renew them, or remove the folder first if the node's hosts have changed")
        }
        var names = Self.localNames
        for host in hosts {
            let name = try SubjectName(host: host)
            if !names.contains(name) { names.append(name) }
        }
        let temporary = "\(path)/.node-\(nodeID).new"
        try? FileManager.default.removeItem(atPath: temporary)
        try Files.makeFolder(temporary)
        let files = NodeCertificates(folder: temporary)
        let peer = CertificateAuthority.Leaf(
            commonName: "Zonekeeper node \(nodeID)", names: [.node(nodeID)], usages: [.serverAuth, .clientAuth],
            lifetime: lifetime)
        try write(peer, by: peerAuthority, now: now, to: (files.peerCertificatePath, files.peerKeyPath))
        let server = CertificateAuthority.Leaf(
            commonName: "Zonekeeper node \(nodeID) client port", names: names, usages: [.serverAuth], lifetime: lifetime
        )
        try write(server, by: clientAuthority, now: now, to: (files.serverCertificatePath, files.serverKeyPath))
        try Files.moveFolder(temporary, to: folder)
        return node(nodeID)
    }

    /// Issues every node's certificates again, from the same authorities, for the same keys and names, with a new
    /// serial and validity. Only certificate files change, each atomically, so a crash half-way leaves every pair
    /// usable.
    /// - Returns: the paths of the new certificates, in node order.
    /// - Throws: `CertificatesError` at the first file that cannot be read or written; files before it are renewed, and
    ///   renewing again is harmless.
    @discardableResult
    package func renew(
        now: Date, lifetime: TimeInterval = CertificateAuthority.leafLifetimeSeconds
    ) throws(CertificatesError) -> [String] {
        var renewed: [String] = []
        for nodeID in try Self.nodeIDs(path: path) {
            let files = node(nodeID)
            let pairs: [(String, String, CertificateAuthority, [ExtendedKeyUsage.Usage])] = [
                (files.peerCertificatePath, files.peerKeyPath, peerAuthority, [.serverAuth, .clientAuth]),
                (files.serverCertificatePath, files.serverKeyPath, clientAuthority, [.serverAuth]),
            ]
            for (certificatePath, keyPath, authority, usages) in pairs {
                let old = try Files.readCertificate(certificatePath)
                let key = try Files.readKey(keyPath, for: old)
                let leaf = CertificateAuthority.Leaf(
                    commonName: old.subject.commonName, names: old.subjectNames, usages: usages, lifetime: lifetime)
                let certificate = try Files.pem(try authority.issue(leaf, for: key.publicKey, now: now))
                try Files.write(certificate, to: certificatePath, mode: Files.certificateMode)
                renewed.append(certificatePath)
            }
        }
        return renewed
    }

    static func nodeIDs(path: String) throws(CertificatesError) -> [UInt64] {
        guard let entries = try? FileManager.default.contentsOfDirectory(atPath: path) else {
            throw CertificatesError(
                file: path, problem: "the folder cannot be listed",
                remedy: "Make the certificates first, or check the path")
        }
        return entries.filter { $0.hasPrefix("node-") }.compactMap { UInt64($0.dropFirst(5)) }.sorted()
    }

    private func write(
        _ leaf: CertificateAuthority.Leaf, by authority: CertificateAuthority, now: Date,
        to paths: (certificate: String, key: String)
    ) throws(CertificatesError) {
        let key = P256.Signing.PrivateKey()
        let certificate = try Files.pem(try authority.issue(leaf, for: key.publicKey, now: now))
        try Files.write(key.pemRepresentation + "\n", to: paths.key, mode: Files.keyMode)
        try Files.write(certificate, to: paths.certificate, mode: Files.certificateMode)
    }
}

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
                    file: file, subject: certificate.subject.commonName, issuer: certificate.issuer.commonName,
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
    /// The subject alternative names of the kinds that we issue.
    var subjectNames: [SubjectName] {
        guard let names = try? extensions.subjectAlternativeNames else { return [] }
        return names.compactMap(SubjectName.init)
    }
}
