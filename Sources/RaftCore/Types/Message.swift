/// What one replica of a group tells another. Messages may be lost, repeated, delayed and reordered.
public struct Message: Hashable, Sendable {
    public var from: ReplicaID
    public var to: ReplicaID
    /// The sender's term. In a pre-vote request it is the term that the sender would campaign in.
    public var term: Term
    public var body: Body

    public init(from: ReplicaID, to: ReplicaID, term: Term, body: Body) {
        self.from = from
        self.to = to
        self.term = term
        self.body = body
    }

    public enum Body: Hashable, Sendable {
        /// Would you vote for me? Changes no one's term (dissertation section 9.6).
        case preVoteRequest(lastLog: LogPosition)
        case preVoteResponse(granted: Bool)
        /// `isTransfer`: the old leader asked for this election, so a voter does not wait out its own leader.
        case voteRequest(lastLog: LogPosition, isTransfer: Bool)
        case voteResponse(granted: Bool)
        case appendRequest(AppendRequest)
        case appendResponse(AppendResponse)
        /// Keeps followers from campaigning. `commit` never exceeds what the receiver is known to have; `round` grows with
        /// each round of heartbeats and comes back in the response (ReadIndex, dissertation section 6.4).
        case heartbeatRequest(commit: LogIndex, round: UInt64)
        case heartbeatResponse(round: UInt64)
        /// The leader hands over: campaign at once (dissertation section 3.10).
        case timeoutNow
    }
}

/// Entries after `previous`, which the receiver must have (dissertation section 3.5).
public struct AppendRequest: Hashable, Sendable {
    public var previous: LogPosition
    public var entries: [Entry]
    /// The leader's commit index, which may lie beyond the entries sent.
    public var commit: LogIndex

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
    /// The receiver has another entry, or none, at `previous`. The leader should try again at or before `hint`, the greatest
    /// position at which the logs may agree.
    case rejected(previous: LogIndex, hint: LogPosition)
}
