import RaftCore

/// Looks at the maps of the cluster that nodes go by: one that a node knows is only replaced by a newer one, and no
/// leader changes members by one that is older than it may be, or that it could not ask about for longer than it may
/// rely on it.
struct MapWatch {
    /// For how long a node that relies on the directory may not know of a newer map, in nanoseconds: the lease, and
    /// what it takes until a change of members is seen.
    static let outdatedMax = 18 * World.second

    /// For how long a leader that hears nothing of the directory may change members: the lease, and what it takes until
    /// that is seen.
    static let apartMax = 10 * World.second

    /// What the process of a node knew last.
    private var known: [Int: (life: Int, epoch: UInt64)] = [:]
    /// When each map was first seen at any node, by its epoch.
    private var firstSeen: [UInt64: UInt64] = [:]
    /// The last change of members that was seen in a group.
    private var changes: [GroupID: LogPosition] = [:]

    /// Whether the process of a node goes by another map than when it was looked at last.
    func isNew(_ epoch: UInt64, of node: Int, life: Int) -> Bool {
        guard let known = known[node] else { return true }
        return known.life != life || known.epoch != epoch
    }

    /// Looks at a node that sends a message.
    /// - Returns: what is wrong; nil if nothing is.
    mutating func judge(_ node: Int, life: Int, epoch: UInt64, at now: UInt64) -> String? {
        let before = known.updateValue((life, epoch), forKey: node)
        if firstSeen[epoch] == nil { firstSeen[epoch] = now }
        guard let before, before.life == life, before.epoch > epoch else { return nil }
        return "node \(node) goes back from map \(before.epoch) to map \(epoch)"
    }

    /// Looks at a replica that sends a message.
    /// - Parameters:
    ///   - epoch: of the map of its node.
    ///   - apart: for how long its node and the one that leads the directory have not heard each other.
    mutating func judge(_ raft: Raft, of group: GroupID, epoch: UInt64, apart: UInt64, at now: UInt64) -> String? {
        let inspector = RaftInspector(raft)
        guard raft.role == .leader, let last = inspector.configurations.last, last.index > raft.snapshotPosition.index,
            inspector.term(at: last.index) == raft.term
        else { return nil }
        let position = LogPosition(index: last.index, term: raft.term)
        guard changes.updateValue(position, forKey: group) != position else { return nil }
        // The second step of a change follows by itself.
        let isProposed = inspector.configurations.dropLast().last?.configuration.isJoint == false
        guard isProposed else { return nil }
        if apart > Self.apartMax {
            return "group \(group): \(raft.id) changes members, and has not heard of the directory for \(apart) ns"
        }
        let newer = firstSeen.filter { $0.key > epoch }.map(\.value).min()
        guard let newer, newer + Self.outdatedMax < now else { return nil }
        return "group \(group): \(raft.id) changes members by map \(epoch), and a newer one came \(now - newer) ns ago"
    }
}
