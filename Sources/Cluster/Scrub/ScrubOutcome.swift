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

extension ScrubOutcome: WireMessage {
    static var blank: Self { ScrubOutcome(index: .zero, hash: [], cursor: []) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &index)
        try wire.field(2, &hash)
        try wire.field(3, &cursor)
    }
}
