/// What one replica of a group tells another. Messages may be lost, repeated, delayed and reordered.
public struct Message: Hashable, Sendable {
    /// The sender.
    public var from: ReplicaID
    /// The receiver. A replica ignores messages for another one.
    public var to: ReplicaID
    /// The sender's term. In a pre-vote request it is the term that the sender would campaign in.
    public var term: Term
    /// What the message says.
    public var body: Body

    /// Creates a message from its parts.
    public init(from: ReplicaID, to: ReplicaID, term: Term, body: Body) {
        self.from = from
        self.to = to
        self.term = term
        self.body = body
    }

    /// What a message says.
    public enum Body: Hashable, Sendable {
        /// Would you vote for me? Changes no one's term (dissertation section 9.6).
        case preVoteRequest(lastLog: LogPosition)
        case preVoteResponse(granted: Bool)
        /// `isTransfer`: the old leader asked for this election, so a voter does not wait out its own leader.
        case voteRequest(lastLog: LogPosition, isTransfer: Bool)
        case voteResponse(granted: Bool)
        case appendRequest(AppendRequest)
        case appendResponse(AppendResponse)
        /// Keeps followers from campaigning. `commit` never exceeds what the receiver is known to have; `round` grows
        /// with each round of heartbeats and comes back in the response (ReadIndex, dissertation section 6.4).
        case heartbeatRequest(commit: LogIndex, round: UInt64)
        case heartbeatResponse(round: UInt64)
        /// The leader hands over: campaign at once (dissertation section 3.10).
        case timeoutNow
    }
}

/// Entries after `previous`, which the receiver must have (dissertation section 3.5).
public struct AppendRequest: Hashable, Sendable {
    /// The position of the entry before the first one sent.
    public var previous: LogPosition
    /// The entries, without a gap; empty if the leader only asks where the logs agree.
    public var entries: [Entry]
    /// The leader's commit index, which may lie beyond the entries sent.
    public var commit: LogIndex

    /// Creates a request from its parts.
    public init(previous: LogPosition, entries: [Entry], commit: LogIndex) {
        self.previous = previous
        self.entries = entries
        self.commit = commit
    }
}

/// The answer to an append.
public enum AppendResponse: Hashable, Sendable {
    /// The receiver has durably what the leader has up to this index.
    case accepted(match: LogIndex)
    /// The receiver's log does not match at `previous`. The leader should try again at or before `hint`, the greatest
    /// position at which the logs may agree.
    case rejected(previous: LogIndex, hint: LogPosition)
}

/// One entry of a group's log.
public struct Entry: Hashable, Sendable {
    /// The entry's index.
    public var index: LogIndex
    /// The term of the leader that appended the entry.
    public var term: Term
    /// What the entry carries.
    public var payload: Payload

    /// Creates an entry from its parts.
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

    /// Index and term, which identify the entry.
    public var position: LogPosition { LogPosition(index: index, term: term) }

    /// What the entry counts for against limits of memory and messages, in bytes.
    public var sizeBytes: Int {
        switch payload {
        case .empty: 32
        case .command(let bytes): 32 + bytes.count
        case .configuration(let configuration): 64 + 16 * configuration.all.count
        }
    }

    /// The most bytes of one command, encoded. A larger one is refused before it is in any log.
    ///
    /// A command is kept whole and sent whole, so every node asserts this order when it starts: a command is smaller
    /// than the frame of the append that carries it, and that than the segment of the log that keeps it.
    package static let commandBytesMax = 6 << 20

    /// More than an entry's payload has around it in the frame of an append, in that of a forwarded request, or in a
    /// record of the log, in bytes. An append of several entries has no more around the sum of their `sizeBytes`.
    package static let overheadBytesMax = 1 << 10
}
