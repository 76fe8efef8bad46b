/// One entry of a group's log.
public struct Entry: Hashable, Sendable {
    public var index: LogIndex
    public var term: Term
    public var payload: Payload

    public init(index: LogIndex, term: Term, payload: Payload) {
        self.index = index
        self.term = term
        self.payload = payload
    }

    /// What an entry carries.
    public enum Payload: Hashable, Sendable {
        /// Nothing: a new leader's first entry, by which it learns what is committed (dissertation section 6.4).
        case empty
        /// Bytes for the state machine, which the core never reads.
        case command([UInt8])
        /// The group's members from this entry on (dissertation section 4).
        case configuration(Configuration)
    }

    public var position: LogPosition { LogPosition(index: index, term: term) }

    /// What the entry counts for against limits of memory and messages, in bytes.
    public var sizeBytes: Int {
        switch payload {
        case .empty: 32
        case .command(let bytes): 32 + bytes.count
        case .configuration(let configuration): 64 + 16 * configuration.all.count
        }
    }
}

extension Entry {
    /// The most bytes of one command, encoded. A larger one is refused before it is in any log.
    ///
    /// A command is kept whole and sent whole, so every node asserts this order when it starts: a command is smaller than the
    /// frame of the append that carries it, and that than the segment of the log that keeps it.
    package static let commandBytesMax = 6 << 20

    /// More than an entry's payload has around it in the frame of an append, in that of a forwarded request, or in a record of
    /// the log, in bytes. An append of several entries has no more around the sum of their `sizeBytes`.
    package static let overheadBytesMax = 1 << 10
}
