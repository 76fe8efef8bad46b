/// A place between index entries: before, at or after a record's entry under a key.
struct KeyPosition: Comparable {
    var key: IndexKey
    /// Least for "before all entries of the key", greatest for "after all of them".
    var recordID: Int64

    static func < (left: KeyPosition, right: KeyPosition) -> Bool {
        left.key == right.key ? left.recordID < right.recordID : left.key < right.key
    }

    static func before(_ key: IndexKey) -> KeyPosition { KeyPosition(key: key, recordID: .min) }
    static func after(_ key: IndexKey) -> KeyPosition { KeyPosition(key: key, recordID: .max) }
}

/// The index entries strictly between two positions; nil is open.
struct KeyRange {
    var lower: KeyPosition?
    var upper: KeyPosition?

    static let all = KeyRange(lower: nil, upper: nil)

    static func point(_ key: IndexKey) -> KeyRange { KeyRange(lower: .before(key), upper: .after(key)) }

    /// The texts that begin with a prefix.
    static func prefix(_ prefix: [UInt8]) -> KeyRange {
        var end = prefix
        while let last = end.last, last == 0xFF { end.removeLast() }
        guard let last = end.popLast() else { return KeyRange(lower: .before(.bytes(prefix)), upper: nil) }
        end.append(last + 1)
        return KeyRange(lower: .before(.bytes(prefix)), upper: .before(.bytes(end)))
    }

    func contains(_ key: IndexKey) -> Bool {
        let position = KeyPosition(key: key, recordID: 0)
        if let lower, position <= lower { return false }
        if let upper, position >= upper { return false }
        return true
    }

    /// What both ranges hold; nil if nothing.
    func intersection(_ other: KeyRange) -> KeyRange? {
        let lower = [lower, other.lower].compactMap { $0 }.max()
        let upper = [upper, other.upper].compactMap { $0 }.min()
        if let lower, let upper, lower >= upper { return nil }
        return KeyRange(lower: lower, upper: upper)
    }
}
