package import RaftCore

/// Why a group did not do what it was asked.
package enum ReplicaError: Error, Hashable, Sendable {
    /// This node does not lead the group; nothing was appended.
    case notLeader(hint: ReplicaID?)
    /// The leader has as much waiting as it may; nothing was appended.
    case overloaded
    /// The leader's disk has no space; nothing was appended.
    case diskFull
    /// The leader cannot do its work at the moment; nothing was appended.
    case unavailable(String)
    /// Another leader's entry took the place of this one, so it will never be applied.
    case superseded
    /// The node is stopping, or lost track: the command may or may not be applied.
    case outcomeUnknown(String)
    /// The read was cancelled, or not done in time.
    case readEnded
    /// The read failed on this node's disk.
    case failed(String)
    /// The request or its answer is larger than nodes take.
    case tooLarge(Oversize)

    init(_ error: ProposalError) {
        switch error {
        case .notLeader(let hint): self = .notLeader(hint: hint)
        case .overloaded: self = .overloaded
        }
    }
}

/// What is called, once, with the encoded outcome of a command or a read.
package typealias Completion = @Sendable (Result<[UInt8], ReplicaError>) -> Void
