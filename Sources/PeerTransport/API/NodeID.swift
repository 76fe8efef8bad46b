/// One node of a cluster. Ids are given once and never used again; 0 is no node.
package struct NodeID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    package var rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ value: UInt64) { rawValue = value }
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    package var description: String { String(rawValue) }
}

/// What a connection between two nodes carries. Each pair of nodes has one connection per direction and channel, so
/// that bulk never delays heartbeats.
package enum PeerChannel: UInt8, CaseIterable, Hashable, Sendable {
    /// Raft messages, one way; they may be lost.
    case raft = 1
    /// Forwarded operations: requests of the dialling side, responses of the other.
    case request = 2
    /// Snapshots and assets, as requests and responses.
    case bulk = 3
}

/// Who a peer is, once its certificate and its hello agree.
package struct PeerIdentity: Hashable, Sendable {
    package var node: NodeID
    /// The random number of the peer's data folder; another one means that the folder was lost.
    package var incarnation: UInt64
    /// How often the peer has started on that folder; a smaller one means an old image of the disk.
    package var bootCounter: UInt64
    /// The program that it runs.
    package var build: PeerBuild

    package init(
        node: NodeID, incarnation: UInt64, bootCounter: UInt64, build: PeerBuild = PeerBuild(levels: nil)
    ) {
        self.node = node
        self.incarnation = incarnation
        self.bootCounter = bootCounter
        self.build = build
    }
}
