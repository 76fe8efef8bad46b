package import Directory
package import PeerTransport

/// What this node remembers of a peer's data folder.
package struct KnownPeer: Codable, Hashable, Sendable {
    package var incarnation: UInt64
    package var bootCounter: UInt64

    package init(incarnation: UInt64, bootCounter: UInt64) {
        self.incarnation = incarnation
        self.bootCounter = bootCounter
    }
}

extension Standing.Verdict {
    /// Judges a peer's data folder by the map and by what this node remembers of the peer. Pure.
    ///
    /// The map decides which folder counts. What is remembered tells an old copy of that folder from the folder: every
    /// start on it has a greater count, and two starts with one count differ in the lower half.
    package static func of(_ peer: PeerIdentity, map: ClusterMap?, known: KnownPeer?) -> Standing.Verdict {
        var incarnation: UInt64 = 0
        if let map {
            guard let node = map.node(peer.node.rawValue) else {
                return map.removed.contains(peer.node.rawValue) ? .removed : .stranger
            }
            incarnation = node.incarnation
        }
        if incarnation != 0, incarnation != peer.incarnation { return .otherFolder }
        guard let known else { return .welcome }
        guard known.incarnation == peer.incarnation else {
            // The map says that this one counts; where it says nothing, the first one does.
            return incarnation == 0 ? .otherFolder : .welcome
        }
        if known.bootCounter == peer.bootCounter { return .welcome }
        return known.bootCounter >> 32 < peer.bootCounter >> 32 ? .welcome : .outdated
    }

    /// Why the peer may not take part, for the log; nil if it may.
    package func objection(to node: NodeID) -> String? {
        switch self {
        case .welcome: nil
        case .outdated: "node \(node) comes with an old copy of its data folder; it is told to begin anew"
        case .otherFolder, .duplicate:
            "node \(node) comes with another data folder than the one that counts, so what it voted and acknowledged is lost; "
                + "it is told to join anew"
        case .removed: "node \(node) was removed from the cluster"
        case .stranger: "node \(node) is not in the cluster"
        case .undecided: "what the directory says of node \(node) cannot be known at the moment"
        }
    }
}
