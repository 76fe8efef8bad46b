import Cluster
import Foundation
import PeerTransport
import Storage

/// Looks at whom nodes take part with: nodes whose programs follow no common feature level have nothing to do with
/// each other; and a node sends nothing of Raft to a peer before it has on its disk which start of the peer's folder
/// that is.
struct PeerWatch {
    private struct Pair: Hashable {
        var node: Int
        var life: Int
        var peer: NodeID
    }

    /// Who peers said they are, at their last connection.
    private var known: [Pair: PeerIdentity] = [:]
    /// Of these, the starts that were looked for on the disk.
    private var found: [Pair: UInt64] = [:]

    /// A process takes a connection with a peer.
    /// - Parameter build: the program that it says it runs itself.
    mutating func met(_ peer: PeerIdentity, by process: ProcessLife, _ build: PeerBuild) -> String? {
        known[Pair(node: process.node, life: process.life, peer: peer.node)] = peer
        guard let own = build.levels, let other = peer.build.levels, !own.overlaps(other) else { return nil }
        return "node \(process.node), which follows levels \(own), takes a connection with node \(peer.node), "
            + "which follows \(other)"
    }

    /// Judges a process that sends a message to a peer.
    /// - Parameter folder: where it keeps its data.
    mutating func judge(_ process: ProcessLife, in folder: String, sendingTo peer: NodeID) -> String? {
        let pair = Pair(node: process.node, life: process.life, peer: peer)
        guard let identity = known[pair], found.updateValue(identity.bootCounter, forKey: pair) != identity.bootCounter
        else { return nil }
        let bytes = (try? readWholeFile(at: folder + "/peers.json")) ?? []
        let kept = (try? JSONDecoder().decode([String: KnownPeer].self, from: Data(bytes)))?[peer.description]
        if let kept, kept.incarnation == identity.incarnation, kept.bootCounter >> 32 >= identity.bootCounter >> 32 {
            return nil
        }
        return "node \(process.node) takes part with node \(peer), and does not have on its disk which start that is"
    }
}
