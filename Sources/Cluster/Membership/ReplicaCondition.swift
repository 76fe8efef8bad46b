package import RaftCore
package import Wire

/// What a node says of its replica of a group to another one, whose own is damaged.
package struct ReplicaCondition: Hashable, Sendable {
    package var replica: ReplicaID
    package var applied: LogIndex
    /// Whether the last entry that it was given could be applied.
    package var applies: Bool
    /// Whether something of it was found to be damaged.
    package var isDamaged: Bool
    /// Whether it votes, so that it has, or will have, everything that was acknowledged.
    package var isVoter: Bool

    /// Whether others may rely on it.
    package var isSound: Bool { applies && !isDamaged && isVoter }

    package init(
        _ replica: ReplicaID, applied: LogIndex, applies: Bool = true, isDamaged: Bool = false, isVoter: Bool = true
    ) {
        self.replica = replica
        self.applied = applied
        self.applies = applies
        self.isDamaged = isDamaged
        self.isVoter = isVoter
    }
}

extension ReplicaCondition: WireMessage {
    package static var blank: Self { ReplicaCondition(ReplicaID(0), applied: .zero, applies: false, isVoter: false) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &replica)
        try wire.field(2, &applied)
        try wire.field(3, &applies)
        try wire.field(4, &isDamaged)
        try wire.field(5, &isVoter)
    }
}

/// Damage to a replica on this node.
///
/// It votes and acknowledges until a committed configuration is without it: the directory gives its node a later
/// replica, and the group's leader exchanges them. Only then it is given up. So nothing that was acknowledged depends
/// on what is lost, however many replicas are damaged at the same time. And it is exchanged only where another one is
/// known to be sound: were all, for a fault that they share, nothing would be left.
package struct ReplicaDamage: Sendable {
    package var error: any Error
    /// What the replica cannot do.
    package var kind: Kind
    /// Of the replica. A later one is not damaged by this.
    package var generation: UInt64
    /// Whether it was said that no better copy is known.
    package var isTold = false

    /// Ascending by what is left of it.
    package enum Kind: Int, Sendable {
        /// Read its log back for a follower. Its database is sound.
        case loading
        /// Apply the entry after the last that it applied.
        case applying
        /// Be read, or agree with the others.
        case reading
        /// Be opened; it takes no part.
        case opening
    }

    package init(_ error: any Error, _ kind: Kind, generation: UInt64) {
        self.error = error
        self.kind = kind
        self.generation = generation
    }

    /// What becomes of the replica.
    package enum Verdict: Hashable, Sendable {
        case exchange
        /// It went on by itself.
        case recovered
        /// No other replica is known to be better.
        case keep
    }

    /// Pure.
    /// - Parameters:
    ///   - own: the replica here; nil where it is not open.
    ///   - others: what the other nodes say of theirs, as far as they answered.
    package func verdict(own: ReplicaCondition?, others: [ReplicaCondition]) -> Verdict {
        let sound = others.filter(\.isSound)
        guard kind == .applying, let own else { return sound.isEmpty ? .keep : .exchange }
        if own.applies { return .recovered }
        // An entry that nobody applies is at fault itself.
        return sound.contains { $0.applied > own.applied } ? .exchange : .keep
    }
}
