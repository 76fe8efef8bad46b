import PeerTransport
import RaftCore
import Synchronization

/// What peers said, since the start, that replicas on this node acknowledged to them.
///
/// No replica is made twice under one name, so a folder that is about to make one which has acknowledged something is
/// an old copy.
final class Acknowledgements: Sendable {
    private struct Witness: Sendable {
        var node: NodeID
        var entry: Standing.Acknowledged
    }

    /// Of each group what tells of the latest replica: what is true of that is true of those before it.
    private let latest = Mutex<[GroupID: Witness]>([:])

    /// Remembers what a peer said.
    func note(_ entries: [Standing.Acknowledged], by node: NodeID) {
        latest.withLock { latest in
            for entry in entries where entry.index > .zero {
                if let known = latest[entry.group], known.entry.replica >= entry.replica { continue }
                latest[entry.group] = Witness(node: node, entry: entry)
            }
        }
    }

    /// - Parameter replica: of this node, about to be made.
    /// - Throws: `OldCopy` where it, or a later one, has acknowledged something.
    func requireNone(of replica: ReplicaID, in group: GroupID) throws(OldCopy) {
        guard let witness = latest.withLock({ $0[group] }), witness.entry.replica >= replica else { return }
        throw OldCopy(
            description:
                "node \(witness.node) knows that a replica of group \(group) on this node acknowledged entry \(witness.entry.index), and none was ever made here: the folder is an old copy"
        )
    }
}

/// The data folder is older than what it acknowledged.
struct OldCopy: Error, CustomStringConvertible {
    var description: String
}
