import Directory
import Foundation
import PeerTransport
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
