/// What a replica must not forget between two starts, besides its log (dissertation figure 3.1).
public struct HardState: Hashable, Sendable {
    public var term: Term
    /// Whom this replica voted for in `term`, if it did.
    public var vote: ReplicaID?

    public init(term: Term = .zero, vote: ReplicaID? = nil) {
        self.term = term
        self.vote = vote
    }
}

/// Where a snapshot stands: it holds the effect of every entry up to `position`, and this was the configuration then.
public struct SnapshotMark: Hashable, Sendable {
    public var position: LogPosition
    public var configuration: Configuration

    public init(position: LogPosition, configuration: Configuration) {
        self.position = position
        self.configuration = configuration
    }
}
