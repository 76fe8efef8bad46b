package import RaftCore

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
