import RaftCore
import Wire

/// A piece of a group's database on its way to a follower that the log cannot catch up.
struct SnapshotChunk: Sendable {
    var group: GroupID
    /// Random; chunks of different snapshots, or of different leaders, are never mixed.
    var snapshotID: UInt64
    /// The leader's term; a follower in a later one wants nothing of it.
    var term: Term
    var leader: ReplicaID
    var mark: SnapshotMark
    var offset: UInt64
    var totalBytes: UInt64
    /// SHA-256 of the whole file.
    var fileHash: [UInt8]
    var bytes: [UInt8]
}

/// A follower's answer to a chunk.
struct SnapshotProgress: Sendable {
    /// How much of the snapshot it has; all of it once it is installed.
    var receivedBytes: UInt64
}

extension SnapshotProgress: WireMessage {
    static var blank: Self { SnapshotProgress(receivedBytes: 0) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &receivedBytes)
    }
}

extension SnapshotChunk: WireMessage {
    static var blank: Self {
        SnapshotChunk(
            group: GroupID(0), snapshotID: 0, term: .zero, leader: ReplicaID(0),
            mark: SnapshotMark(position: .zero, configuration: Configuration(voters: [])), offset: 0, totalBytes: 0,
            fileHash: [], bytes: [])
    }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &group)
        try wire.field(2, &snapshotID)
        try wire.field(3, &term)
        try wire.field(4, &leader)
        try wire.field(5, nested: &mark)
        try wire.field(6, &offset)
        try wire.field(7, &totalBytes)
        try wire.field(8, &fileHash)
        try wire.field(9, &bytes)
    }

    func check() throws(WireError) {
        guard offset <= 1 << 50, totalBytes <= 1 << 50 else { throw .invalidValue(field: 6) }
    }
}
