/// The number of a leader's reign; grows with every election. Term 0 is before any election.
public struct Term: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public init(_ value: UInt64) { rawValue = value }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The term after this one.
    public var next: Term { Term(rawValue + 1) }
    public var description: String { String(rawValue) }
    /// Before any election.
    public static let zero = Term(0)
}

/// A position in a group's log. The first entry has index 1; index 0 is the empty log.
public struct LogIndex: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public init(_ value: UInt64) { rawValue = value }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    /// The index after this one.
    public var next: LogIndex { LogIndex(rawValue + 1) }
    /// The index before this one; index 0 stays 0.
    public var previous: LogIndex { LogIndex(rawValue == 0 ? 0 : rawValue - 1) }
    public var description: String { String(rawValue) }
    /// The empty log.
    public static let zero = LogIndex(0)
}

/// One replica of one group. A replica that lost its log comes back under a new id, so an id is never used twice.
public struct ReplicaID: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public init(_ value: UInt64) { rawValue = value }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    public var description: String { String(rawValue) }
}

/// One Raft group of a cluster of many.
public struct GroupID: RawRepresentable, Comparable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public init(_ value: UInt64) { rawValue = value }
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    public var description: String { String(rawValue) }
}

/// A log entry's identity: index and term together name one entry for good.
public struct LogPosition: Hashable, Sendable, CustomStringConvertible {
    public var index: LogIndex
    public var term: Term
    public init(index: LogIndex, term: Term) {
        self.index = index
        self.term = term
    }
    /// The position before the first entry.
    public static let zero = LogPosition(index: .zero, term: .zero)
    public var description: String { "\(index)@\(term)" }
    /// Whether a log that ends here is at least as up to date as one that ends at `other` (dissertation section 3.6.1).
    public func isAtLeastAsUpToDate(as other: LogPosition) -> Bool {
        (term, index) >= (other.term, other.index)
    }
}
