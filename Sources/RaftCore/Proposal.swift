/// Entries that a leader has appended. They are committed if and when the entry at each index, with this term, is.
public struct Proposal: Hashable, Sendable {
    /// The first command's position; the others follow without a gap, all with this term.
    public var first: LogPosition
    /// How many of the proposed commands, from the first on.
    public var count: Int

    public init(first: LogPosition, count: Int) {
        self.first = first
        self.count = count
    }
}

/// Why a proposal was refused. Nothing was appended, so proposing again is safe.
public enum ProposalError: Error, Hashable, Sendable {
    /// This replica does not lead, or is handing over to `hint`. A retry helps, at `hint` if there is one.
    case notLeader(hint: ReplicaID?)
    /// Too much is proposed and not yet committed. A retry helps later.
    case overloaded(uncommittedBytes: Int, uncommittedBytesMax: Int)
}
