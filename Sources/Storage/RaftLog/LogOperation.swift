import RaftCore
import Wire

/// One record's meaning and place: what the index learns from a write, and from reading the log back.
struct LogOperation {
    enum Change {
        case hardState(HardState)
        case entry(LogPosition, Configuration?)
        case trim(SnapshotMark)
        case reset(SnapshotMark)
        case carriedMark(SnapshotMark)
        case removal
        case watermark
    }

    var group: GroupID
    var change: Change
    var address: LogAddress
    var sizeBytes: Int

    /// Reads a record's body.
    /// - Throws: `WireError` if the body is not what its kind says.
    init(_ header: RecordHeader, body: ArraySlice<UInt8>) throws(WireError) {
        var reader = WireReader(body)
        group = GroupID(try reader.varint())
        address = header.address
        sizeBytes = header.sizeBytes
        switch header.kind {
        case .hardState: change = .hardState(try HardState(from: &reader))
        case .entry:
            let entry = try Entry(from: &reader)
            if case .configuration(let configuration) = entry.payload {
                change = .entry(entry.position, configuration)
            } else {
                change = .entry(entry.position, nil)
            }
        case .trim: change = .trim(try SnapshotMark(from: &reader))
        case .reset: change = .reset(try SnapshotMark(from: &reader))
        case .carriedMark: change = .carriedMark(try SnapshotMark(from: &reader))
        case .removal: change = .removal
        case .watermark: change = .watermark
        }
    }

    init(group: GroupID, change: Change, address: LogAddress, sizeBytes: Int) {
        self.group = group
        self.change = change
        self.address = address
        self.sizeBytes = sizeBytes
    }
}
