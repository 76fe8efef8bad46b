package import RaftCore
import Wire

/// Whose copy of a group's state is damaged, judged by hashes of the same part at the same index. Pure.
package enum ScrubVerdict: Hashable, Sendable {
    /// All that answered have the same.
    case equal
    /// These differ from a majority of the group's voters, who have the same.
    case damaged([ReplicaID])
    /// Copies differ, and no majority says which is right: too few have answered, or all differ.
    case undecided

    /// - Parameters:
    ///   - hashes: of the replicas that had one at the index.
    ///   - voters: of the group.
    package init(_ hashes: [ReplicaID: [UInt8]], voters: [ReplicaID]) {
        var counts: [[UInt8]: Int] = [:]
        for (replica, hash) in hashes where voters.contains(replica) { counts[hash, default: 0] += 1 }
        if Set(hashes.values).count <= 1 {
            self = .equal
        } else if let right = counts.first(where: { 2 * $0.value > voters.count })?.key {
            self = .damaged(hashes.filter { $0.value != right }.keys.sorted())
        } else {
            self = .undecided
        }
    }
}

/// What a part of a scrub came to on the leader.
struct ScrubOutcome: Hashable, Sendable {
    /// The index of the command: the hash is of the state as it was there.
    var index: LogIndex
    var hash: [UInt8]
    /// Where the next part begins; empty when all was looked at.
    var cursor: [UInt8]
}

extension ScrubOutcome: WireMessage {
    static var blank: Self { ScrubOutcome(index: .zero, hash: [], cursor: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &index)
        try wire.field(2, &hash)
        try wire.field(3, &cursor)
    }
}
