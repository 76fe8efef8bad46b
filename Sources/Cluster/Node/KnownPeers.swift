package import Directory
import Foundation
package import PeerTransport
import Storage
import Synchronization

/// What this node remembers of each peer's data folder, in `peers.json`, so that a peer which lost its folder, or came
/// back with an old image of it, is not taken for the one that voted and acknowledged.
final class KnownPeers: Sendable {
    private let path: String
    private let disk: any LogDisk
    private let known: Mutex<[String: KnownPeer]>

    init(folder: String, on disk: any LogDisk) throws {
        self.disk = disk
        path = folder + "/peers.json"
        var known: [String: KnownPeer] = [:]
        if FileManager.default.fileExists(atPath: path) {
            do {
                known = try JSONDecoder().decode([String: KnownPeer].self, from: Data(contentsOf: URL(filePath: path)))
            } catch {
                throw NodeStartError(
                    "\(path) cannot be read: \(error). It says how often each peer was started; restore it from a backup, or "
                        + "remove it if no other node was put back to an older state")
            }
        }
        self.known = Mutex(known)
    }

    /// What to think of a peer. One that is welcome is remembered durably before this returns.
    /// - Throws: `DiskError` when it cannot be remembered; then nothing of it may count.
    func judge(_ peer: PeerIdentity, by map: ClusterMap?) throws -> Standing.Verdict {
        try known.withLock { known in
            let key = peer.node.description
            let verdict = Standing.Verdict.of(peer, map: map, known: known[key])
            let present = KnownPeer(incarnation: peer.incarnation, bootCounter: peer.bootCounter)
            guard verdict == .welcome, known[key] != present else { return verdict }
            var new = known
            new[key] = present
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try replaceFile(at: path, with: [UInt8](try encoder.encode(new)), on: disk)
            known = new
            return verdict
        }
    }
}

/// Where this node reaches the others. Pure.
///
/// The configuration file's address of a node holds until the map has another one than when this node was started: so a
/// cluster can be moved by new files, and a node that runs follows one that moved.
package struct PeerBook: Hashable, Sendable {
    private let node: UInt64
    private let configured: [ClusterMap.Node]
    private let first: [ClusterMap.Node]

    /// - Parameters:
    ///   - configured: the nodes of the configuration file.
    ///   - map: as it was known at the start, if it was.
    package init(node: UInt64, configured: [ClusterMap.Node], map: ClusterMap?) {
        self.node = node
        self.configured = configured
        first = map?.nodes ?? []
    }

    /// The peers to dial, by a map, or by the configuration before there is one. A map of this node alone may be older
    /// than the others: then those of the configuration are dialled as well.
    /// - Parameter heard: the map of a peer that connected to this node. If it is newer, its nodes are dialled, too, at
    ///   its addresses: all those of an old map or file may be gone.
    package func addresses(by map: ClusterMap?, heard: ClusterMap? = nil) -> [PeerAddress] {
        var nodes = heard.flatMap { $0.epoch > map?.epoch ?? 0 ? $0.nodes : nil } ?? []
        func add(_ more: [ClusterMap.Node]) {
            nodes += more.filter { other in !nodes.contains { $0.id == other.id } }
        }
        add(map?.nodes ?? [])
        if !nodes.contains(where: { $0.id != node }) || map == nil {
            add(configured.filter { map?.removed.contains($0.id) != true })
        }
        return nodes.filter { $0.id != node }.map { present in
            let hasMoved = first.first { $0.id == present.id }.map { !$0.hasPeerAddress(of: present) } ?? false
            let entry = hasMoved ? present : configured.first { $0.id == present.id } ?? present
            return PeerAddress(node: NodeID(rawValue: entry.id), host: entry.peerHost, port: entry.peerPort)
        }
    }

    /// This node as its own file has it, where the map says otherwise: what the directory should be told.
    package func correction(to map: ClusterMap) -> ClusterMap.Node? {
        guard let own = configured.first(where: { $0.id == node }), let entry = map.node(node) else { return nil }
        return own.hasPeerAddress(of: entry) && own.clientURL == entry.clientURL ? nil : own
    }
}

extension ClusterMap.Node {
    fileprivate func hasPeerAddress(of other: ClusterMap.Node) -> Bool {
        (peerHost, peerPort) == (other.peerHost, other.peerPort)
    }
}
