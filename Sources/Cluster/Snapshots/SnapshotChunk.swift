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

extension SnapshotProgress: WireCodable {
    func encode(to writer: inout WireWriter) { writer.field(1, receivedBytes) }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(receivedBytes: 0)
        while let field = try reader.nextField() {
            if field == 1 { receivedBytes = try reader.unsigned() } else { try reader.skip() }
        }
    }
}

extension SnapshotChunk: WireCodable {
    func encode(to writer: inout WireWriter) {
        writer.field(1, group.rawValue)
        writer.field(2, snapshotID)
        writer.field(3, term.rawValue)
        writer.field(4, leader.rawValue)
        writer.field(5) { mark.encode(to: &$0) }
        writer.field(6, offset)
        writer.field(7, totalBytes)
        writer.field(8, fileHash)
        writer.field(9, bytes)
    }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(
            group: GroupID(0), snapshotID: 0, term: .zero, leader: ReplicaID(0),
            mark: SnapshotMark(position: .zero, configuration: Configuration(voters: [])), offset: 0, totalBytes: 0,
            fileHash: [], bytes: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: group = GroupID(try reader.unsigned())
            case 2: snapshotID = try reader.unsigned()
            case 3: term = Term(try reader.unsigned())
            case 4: leader = ReplicaID(try reader.unsigned())
            case 5: mark = try reader.message()
            case 6: offset = try reader.unsigned()
            case 7: totalBytes = try reader.unsigned()
            case 8: fileHash = try reader.array()
            case 9: bytes = try reader.array()
            default: try reader.skip()
            }
        }
        guard offset <= 1 << 50, totalBytes <= 1 << 50 else { throw .invalidValue(field: 6) }
    }
}
