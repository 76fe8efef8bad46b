import Directory
import Foundation
import RaftCore

/// What a data folder says of itself, in `node.json`.
///
/// The incarnation is random and made with the folder; the boot counter grows with every start. Both are durable before
/// the node speaks to anyone, so that its peers can tell a folder that was lost, or an old image of it, from the one
/// they know.
package struct NodeIdentity: Codable, Hashable, Sendable {
    package static let currentFormatVersion = 6
    /// The last format that knew nothing of generations: its replicas are those that the cluster was made with.
    static let formatBeforeGenerations = 3

    package var clusterID: String
    package var nodeID: UInt64
    package var formatVersion: Int
    package var incarnation: UInt64
    package var bootCounter: UInt64
    /// The map that this node last promised to found a cluster by, encoded; it goes when the cluster is founded.
    var promise: Data?
    /// The map by which this node founded the cluster, encoded; none where it joined later.
    var founding: Data?
    /// The replicas that are here, or were, by the group's number.
    var replicas: [String: HeldReplica]?
    /// The highest feature level of anything here; nil in a folder from before there were levels. No build that cannot
    /// follow it may open anything.
    package var featureLevel: UInt64?
    /// When a replica was last given up here, in milliseconds since 1970, or in the future where the time was not
    /// known: its files may still be on their way to where it is now.
    var gaveUpAt: Int64?
    /// Set when the data are to be given up: the next start moves them aside, and begins anew.
    var discard: Discard?

    /// The last replica of a group on this folder.
    struct HeldReplica: Codable, Hashable, Sendable {
        var generation: UInt64
        /// It was given up; nothing is opened under its generation again.
        var isGone: Bool?
    }

    /// Why the data are given up, and the folder that they are moved to.
    struct Discard: Codable, Hashable, Sendable {
        var reason: String
        var folder: String
    }

    /// Whether the folder has taken part in anything, so that its loss counts.
    var hasTakenPart: Bool {
        formatVersion == Self.formatBeforeGenerations || founding != nil || replicas?.isEmpty == false
    }
}

/// Why a node cannot start, in words for its operator.
package struct NodeStartError: Error, CustomStringConvertible, Sendable {
    package var description: String
    package init(_ description: String) { self.description = description }
}
