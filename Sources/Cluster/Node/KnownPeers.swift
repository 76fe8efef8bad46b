import Foundation
import PeerTransport
import Storage
import Synchronization

/// What this node remembers of each peer's data folder, in `peers.json`, so that a peer which lost its folder, or came back with
/// an old image of it, is not taken for the one that voted and acknowledged.
final class KnownPeers: Sendable {
    private struct Known: Codable {
        var incarnation: UInt64
        var bootCounter: UInt64
    }

    private let path: String
    private let known: Mutex<[String: Known]>

    init(folder: String) throws {
        path = folder + "/peers.json"
        var known: [String: Known] = [:]
        if FileManager.default.fileExists(atPath: path) {
            known = try JSONDecoder().decode([String: Known].self, from: Data(contentsOf: URL(filePath: path)))
        }
        self.known = Mutex(known)
    }

    /// Why the peer may not take part, or nil. A peer that may is remembered durably before this returns.
    func objection(to node: NodeID, incarnation: UInt64, bootCounter: UInt64) -> String? {
        known.withLock { known in
            let key = node.description
            if let before = known[key] {
                guard before.incarnation == incarnation else {
                    return
                        "node \(node) comes with another data folder than before, so what it voted and acknowledged is lost: "
                        + "give it its folder back (replacing a node is not built yet)"
                }
                if before.bootCounter == bootCounter { return nil }
                guard before.bootCounter >> 32 < bootCounter >> 32 else {
                    return "node \(node) comes with an old copy of its data folder (start \(bootCounter), known is "
                        + "\(before.bootCounter)): give it the newest one"
                }
            }
            known[key] = Known(incarnation: incarnation, bootCounter: bootCounter)
            do {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
                try replaceFile(at: path, with: [UInt8](try encoder.encode(known)))
                return nil
            } catch {
                return "cannot remember node \(node) in \(path): \(error)"
            }
        }
    }
}
