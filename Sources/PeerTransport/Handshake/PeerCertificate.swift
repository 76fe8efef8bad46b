import NIOSSL

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
