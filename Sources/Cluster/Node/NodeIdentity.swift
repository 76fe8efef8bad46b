import Foundation
package import PeerTransport
import Storage

/// What a data folder says of itself, in `node.json`.
///
/// The incarnation is random and made with the folder; the boot counter grows with every start. Both are durable before the node
/// speaks to anyone, so that its peers can tell a folder that was lost, or an old image of it, from the one they know.
package struct NodeIdentity: Codable, Hashable, Sendable {
    package static let currentFormatVersion = 3

    package var clusterID: String
    package var nodeID: UInt64
    package var formatVersion: Int
    package var incarnation: UInt64
    package var bootCounter: UInt64

    /// Opens the folder for the node: makes it if it is new, checks that it is this node's, and counts the start.
    /// - Throws: `NodeStartError` that says what does not fit and what to do.
    package static func open(
        folder: String, clusterID: String, nodeID: NodeID, random: () -> UInt64 = { .random(in: 0 ... .max) }
    ) throws -> NodeIdentity {
        let path = folder + "/node.json"
        var identity: NodeIdentity
        if FileManager.default.fileExists(atPath: path) {
            do {
                identity = try JSONDecoder().decode(NodeIdentity.self, from: Data(contentsOf: URL(filePath: path)))
            } catch {
                throw NodeStartError(
                    "\(path) cannot be read: \(error). It says which node the folder belongs to; restore it from a backup"
                )
            }
            guard identity.formatVersion == currentFormatVersion else {
                throw NodeStartError(
                    "\(folder) has format \(identity.formatVersion), this program reads \(currentFormatVersion): "
                        + "use the version that wrote it")
            }
            guard identity.clusterID == clusterID, identity.nodeID == nodeID.rawValue else {
                throw NodeStartError(
                    "\(folder) belongs to node \(identity.nodeID) of cluster \(identity.clusterID), not to node \(nodeID) of "
                        + "\(clusterID): name the right folder, or another one for a new node")
            }
        } else {
            identity = NodeIdentity(
                clusterID: clusterID, nodeID: nodeID.rawValue, formatVersion: currentFormatVersion,
                incarnation: max(1, random() >> 1), bootCounter: 0)
        }
        // The low half is random, so that two starts with the same count, one of them from an old image, are told apart.
        identity.bootCounter = ((identity.bootCounter >> 32) + 1) << 32 | random() >> 32
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        try replaceFile(at: path, with: [UInt8](try encoder.encode(identity)))
        return identity
    }
}

/// Why a node cannot start, in words for its operator.
package struct NodeStartError: Error, CustomStringConvertible, Sendable {
    package var description: String
    package init(_ description: String) { self.description = description }
}
