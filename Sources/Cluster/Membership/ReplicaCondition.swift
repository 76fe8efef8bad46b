package import RaftCore
package import Wire

/// What a node says of its replica of a group to another one, whose own is damaged.
package struct ReplicaCondition: Hashable, Sendable {
    package var applied: LogIndex
    /// Whether the last entry that it was given could be applied.
    package var applies: Bool
    /// Whether something of it was found to be damaged.
    package var isDamaged: Bool

    package var isSound: Bool { applies && !isDamaged }

    package init(applied: LogIndex, applies: Bool = true, isDamaged: Bool = false) {
        self.applied = applied
        self.applies = applies
        self.isDamaged = isDamaged
    }
}

extension ReplicaCondition: WireCodable {
    /// 1 applied, 2 applies, 3 damaged.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, applied.rawValue)
        writer.field(2, applies)
        writer.field(3, isDamaged)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(applied: .zero, applies: false)
        while let field = try reader.nextField() {
            switch field {
            case 1: applied = LogIndex(try reader.unsigned())
            case 2: applies = try reader.bool()
            case 3: isDamaged = try reader.bool()
            default: try reader.skip()
            }
        }
    }
}

/// Damage to a replica on this node, which is given up only where a better one is known. Were all given up, for a fault that all of them
/// share, nothing would be left.
package struct ReplicaDamage: Sendable {
    package var error: any Error
    /// What the replica cannot do.
    package var kind: Kind
    /// Whether it was said that no better copy is known.
    package var isTold = false

    package enum Kind: Hashable, Sendable {
        /// Be opened.
        case opening
        /// Apply the entry after the last that it applied.
        case applying
        /// Be read, or agree with the others.
        case reading
    }

    package init(_ error: any Error, _ kind: Kind) {
        self.error = error
        self.kind = kind
    }

    /// What becomes of the replica. Pure.
    package enum Verdict: Hashable, Sendable {
        case giveUp
        /// It went on by itself.
        case recovered
        /// No other replica is known to be better.
        case keep
    }

    /// - Parameters:
    ///   - own: the replica here; nil where it is not open.
    ///   - others: what the other nodes say of theirs, as far as they answered.
    ///   - isLed: whether a leader has just shown that it is one; it has everything that was acknowledged.
    package func verdict(own: ReplicaCondition?, others: [ReplicaCondition], isLed: Bool) -> Verdict {
        guard let own else { return isLed && others.contains(where: \.isSound) ? .giveUp : .keep }
        if kind == .applying, own.applies { return .recovered }
        let needed = kind == .applying ? own.applied.next : own.applied
        return others.contains { $0.isSound && $0.applied >= needed } ? .giveUp : .keep
    }
}
