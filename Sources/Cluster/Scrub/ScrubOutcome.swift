import RaftCore
import Wire

/// What a part of a scrub came to on the leader.
struct ScrubOutcome: Hashable, Sendable {
    /// The index of the command: the hash is of the state as it was there.
    var index: LogIndex
    var hash: [UInt8]
    /// Where the next part begins; empty when all was looked at.
    var cursor: [UInt8]
}

extension ScrubOutcome: WireCodable {
    func encode(to writer: inout WireWriter) {
        writer.field(1, index.rawValue)
        writer.field(2, hash)
        writer.field(3, cursor)
    }

    init(from reader: inout WireReader) throws(WireError) {
        self.init(index: .zero, hash: [], cursor: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: index = LogIndex(try reader.unsigned())
            case 2: hash = try reader.array()
            case 3: cursor = try reader.array()
            default: try reader.skip()
            }
        }
    }
}
