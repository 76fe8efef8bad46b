import NIOCore
package import NIOSSL

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The TLS contexts of peer connections, made of the certificate files and made again when those change.
///
/// `certs renew`, or whatever else replaces the files, is thereby enough for a running node: the next connection in
/// either direction is made with what the files say. The authority's file may hold several authorities, which is how
/// one is replaced by another without a moment in which nodes do not trust each other.
struct PeerCertificates: Sendable {
    private let files: PeerTLS
    private let node: NodeID
    private var backed: FileBacked<TLSContexts>

    /// Reads the files.
    /// - Throws: `PeerTransportError.badCertificate` naming the file.
    init(_ configuration: PeerTransportConfiguration) throws(PeerTransportError) {
        let (files, node) = (configuration.tls, configuration.nodeID)
        self.files = files
        self.node = node
        backed = try FileBacked(
            paths: [files.authorityPath, files.certificatePath, files.keyPath],
            interval: configuration.certificateCheckInterval, now: .now()
        ) { () throws(PeerTransportError) in try TLSContexts(files, node: node) }
    }

    var contexts: TLSContexts { backed.value }

    /// Reads the files again if they have changed. What has expired already is of no use.
    mutating func refresh(now: NIODeadline) -> FileBacked<TLSContexts>.Outcome {
        backed.refresh(now: now) { [files, node] in
            let contexts = try TLSContexts(files, node: node)
            if let problem = CertificateValidity.problem(of: contexts.certificate) {
                throw PeerTransportError.badCertificate(path: files.certificatePath, problem: problem)
            }
            return contexts
        }
    }
}

/// What a peer's certificate says about who it is.
enum PeerCertificate {
    /// What stands before the node id in the SAN URI.
    static let nodePrefix = "zonekeeper://node/"

    /// The nodes that a certificate names, in its order. Text that is not exactly a number after the prefix is no node.
    static func nodes(of certificate: NIOSSLCertificate) -> [NodeID] {
        var nodes: [NodeID] = []
        for name in certificate._subjectAlternativeNames() where name.nameType == .uri {
            guard let node = node(inURI: String(decoding: name.contents, as: UTF8.self)) else { continue }
            nodes.append(node)
        }
        return nodes
    }

    static func node(inURI uri: String) -> NodeID? {
        guard uri.hasPrefix(nodePrefix) else { return nil }
        let digits = uri.dropFirst(nodePrefix.count)
        // UInt64(_:) also takes a sign and leading zeros, and one node must have one name only.
        guard let id = UInt64(digits), String(id) == digits else { return nil }
        return NodeID(id)
    }
}

/// Whether a certificate is of use at the moment.
package enum CertificateValidity {
    /// What is wrong with the time for which a certificate was issued; nil if it holds now.
    package static func problem(of certificate: NIOSSLCertificate) -> String? {
        problem(from: certificate.notValidBefore, to: certificate.notValidAfter, now: time(nil))
    }

    /// - Parameters: seconds since 1970.
    static func problem(from: time_t, to end: time_t, now: time_t) -> String? {
        if end < now { return "it expired \((now - end) / 60) minutes ago" }
        if from > now { return "it is not valid for another \((from - now) / 60 + 1) minutes" }
        return nil
    }
}
