/// The number of a leader's reign; grows with every election. Term 0 is before any election.
public struct Term: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    /// The term as a number.
    public var rawValue: UInt64
    /// Creates a term from its number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Creates a term from its number.
    public init(_ value: UInt64) { rawValue = value }
    /// Orders terms by number.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The term after this one.
    public var next: Term { Term(rawValue + 1) }
    /// The number in decimal.
    public var description: String { String(rawValue) }
    /// Before any election.
    public static let zero = Term(0)
}

/// A position in a group's log. The first entry has index 1; index 0 is the empty log.
public struct LogIndex: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    /// The index as a number.
    public var rawValue: UInt64
    /// Creates an index from its number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Creates an index from its number.
    public init(_ value: UInt64) { rawValue = value }
    /// Orders indices by number.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The index after this one.
    public var next: LogIndex { LogIndex(rawValue + 1) }
    /// The index before this one; index 0 stays 0.
    public var previous: LogIndex { LogIndex(rawValue == 0 ? 0 : rawValue - 1) }
    /// The number in decimal.
    public var description: String { String(rawValue) }
    /// The empty log.
    public static let zero = LogIndex(0)
}

/// One replica of one group. A replica that lost its log comes back under a new id, so an id is never used twice.
public struct ReplicaID: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    /// The id as a number.
    public var rawValue: UInt64
    /// Creates an id from its number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Creates an id from its number.
    public init(_ value: UInt64) { rawValue = value }
    /// Orders ids by number.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The number in decimal.
    public var description: String { String(rawValue) }
}

/// One Raft group of a cluster of many.
public struct GroupID: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    /// The id as a number.
    public var rawValue: UInt64
    /// Creates an id from its number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Creates an id from its number.
    public init(_ value: UInt64) { rawValue = value }
    /// Orders ids by number.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The number in decimal.
    public var description: String { String(rawValue) }
}

/// A log entry's identity: index and term together name one entry for good.
public struct LogPosition: Hashable, Sendable, CustomStringConvertible {
    /// The entry's index.
    public var index: LogIndex
    /// The term of the leader that appended the entry.
    public var term: Term
    /// Creates a position from its parts.
    public init(index: LogIndex, term: Term) {
        self.index = index
        self.term = term
    }
    /// The position before the first entry.
    public static let zero = LogPosition(index: .zero, term: .zero)
    /// Index and term, as `7@2`.
    public var description: String { "\(index)@\(term)" }
    /// Whether a log that ends here is at least as up to date as one that ends at `other` (dissertation section 3.6.1).
    public func isAtLeastAsUpToDate(as other: LogPosition) -> Bool {
        (term, index) >= (other.term, other.index)
    }
}

/// A reading of a clock that never goes back.
///
/// Only differences mean anything; the shell picks the origin. The core never reads a clock.
public struct MonotonicTime: Comparable, Hashable, Sendable, CustomStringConvertible {
    /// Since the shell's origin.
    public var nanoseconds: UInt64

    /// Creates a time from nanoseconds since the shell's origin.
    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }
    /// Creates a time from milliseconds since the shell's origin.
    public init(milliseconds: UInt64) { nanoseconds = milliseconds * 1_000_000 }

    /// Orders times from earlier to later.
    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The shell's origin.
    public static let zero = MonotonicTime(nanoseconds: 0)

    /// The time this much later; the greatest time there is if that would overflow.
    public func adding(nanoseconds more: UInt64) -> MonotonicTime {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(more)
        return MonotonicTime(nanoseconds: overflow ? .max : sum)
    }

    /// The time this much later; the greatest time there is if that would overflow.
    public func adding(milliseconds more: UInt64) -> MonotonicTime {
        let (product, overflow) = more.multipliedReportingOverflow(by: 1_000_000)
        return adding(nanoseconds: overflow ? .max : product)
    }

    /// Whole milliseconds since the shell's origin, as `1500ms`.
    public var description: String { "\(nanoseconds / 1_000_000)ms" }
}

/// A small seeded generator: the same seed gives the same sequence on every machine.
///
/// It spreads election timeouts and is fit for nothing that must not be guessed.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
public struct SplitMix64: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    /// Creates a generator. Equal seeds give equal sequences.
    public init(seed: UInt64) { state = seed }

    /// The next number of the sequence.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
