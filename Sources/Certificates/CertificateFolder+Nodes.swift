import Crypto
package import Foundation
import X509

/// Where a node's certificates are.
package struct NodeCertificates: Hashable, Sendable {
    /// Shown to peers, and its key.
    package var peerCertificatePath: String
    package var peerKeyPath: String
    /// Shown to clients, and its key.
    package var serverCertificatePath: String
    package var serverKeyPath: String

    /// The four files of a node's folder.
    package init(folder: String) {
        peerCertificatePath = folder + "/peer.pem"
        peerKeyPath = folder + "/peer.key"
        serverCertificatePath = folder + "/server.pem"
        serverKeyPath = folder + "/server.key"
    }
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
        try write(peer, by: peerAuthority, to: (files.peerCertificatePath, files.peerKeyPath), now: now)
        let server = CertificateAuthority.Leaf(
            commonName: "Zonekeeper node \(nodeID) client port", names: names, usages: [.serverAuth], lifetime: lifetime
        )
        try write(server, by: clientAuthority, to: (files.serverCertificatePath, files.serverKeyPath), now: now)
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
            let pairs = [
                (files.peerCertificatePath, files.peerKeyPath, peerAuthority, [.serverAuth, .clientAuth]),
                (
                    files.serverCertificatePath, files.serverKeyPath, clientAuthority,
                    [ExtendedKeyUsage.Usage.serverAuth]
                ),
            ]
            for (certificatePath, keyPath, authority, usages) in pairs {
                let old = try Files.readCertificate(certificatePath)
                let key = try Files.readKey(keyPath, for: old)
                let leaf = CertificateAuthority.Leaf(
                    commonName: old.commonName, names: old.subjectNames, usages: usages, lifetime: lifetime)
                let certificate = try Files.pem(try authority.issue(leaf, for: key.publicKey, now: now))
                try Files.write(certificate, to: certificatePath, mode: Files.certificateMode)
                renewed.append(certificatePath)
            }
        }
        return renewed
    }

    /// The nodes that have a folder, ascending.
    static func nodeIDs(path: String) throws(CertificatesError) -> [UInt64] {
        let entries: [String]
        do { entries = try FileManager.default.contentsOfDirectory(atPath: path) } catch {
            throw CertificatesError(
                file: path, problem: "the folder cannot be listed",
                remedy: "Make the certificates first, or check the path")
        }
        return entries.filter { $0.hasPrefix("node-") }.compactMap { UInt64($0.dropFirst(5)) }.sorted()
    }

    private func write(
        _ leaf: CertificateAuthority.Leaf, by authority: CertificateAuthority,
        to paths: (certificate: String, key: String),
        now: Date
    ) throws(CertificatesError) {
        let key = P256.Signing.PrivateKey()
        let certificate = try Files.pem(try authority.issue(leaf, for: key.publicKey, now: now))
        try Files.write(key.pemRepresentation + "\n", to: paths.key, mode: Files.keyMode)
        try Files.write(certificate, to: paths.certificate, mode: Files.certificateMode)
    }
}
