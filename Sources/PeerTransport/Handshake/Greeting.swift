import Wire

/// Judges a peer's hello against its certificate and what this node is and expects. Pure.
struct Greeting {
    /// This node.
    var node: NodeID
    var clusterID: String
    /// The versions of the protocol this node speaks.
    var versions: ClosedRange<UInt64> = Hello.versions
    /// The program that this node runs.
    var build: PeerBuild
    /// Whom this node dialled and for what; nil on an incoming connection.
    var dialled: (node: NodeID, channel: PeerChannel)?

    /// Why the peer is refused, in words that have "it" for the peer; nil if it is welcome.
    /// - Parameter certificateNodes: the nodes that the peer's verified certificate names.
    func refusal(of hello: Hello, certificateNodes: [NodeID]) -> String? {
        // The certificate comes first: nothing else in the hello is worth a word until we know who says it.
        guard !certificateNodes.isEmpty else {
            return "its certificate names no node (a SAN URI \(PeerCertificate.nodePrefix)<id> is needed)"
        }
        guard certificateNodes.contains(hello.node) else {
            let names = certificateNodes.map(\.description).joined(separator: " and ")
            return "its certificate names node \(names), but it says that it is node \(hello.node)"
        }
        if let dialled, dialled.node != hello.node {
            return "it is node \(hello.node), but node \(dialled.node) was dialled"
        }
        guard hello.node != node else {
            return "it says that it is node \(node), which is this node: two nodes share an id, or the address is wrong"
        }
        guard hello.clusterID == clusterID else {
            return "it belongs to cluster \"\(hello.clusterID)\", and this node to \"\(clusterID)\""
        }
        guard hello.versionMin <= versions.upperBound, hello.versionMax >= versions.lowerBound else {
            return "it speaks versions \(hello.versionMin) to \(hello.versionMax) of the peer protocol, and this node "
                + "\(versions.lowerBound) to \(versions.upperBound)"
        }
        if let refusal = build.refusal(of: hello.build) { return refusal }
        if let dialled, dialled.channel != hello.channel {
            return "it answered for channel \(hello.channel), but \(dialled.channel) was dialled"
        }
        return nil
    }
}
