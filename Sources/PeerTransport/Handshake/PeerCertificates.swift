import NIOCore

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
