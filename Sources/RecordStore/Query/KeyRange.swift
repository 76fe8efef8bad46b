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
struct KeyRange: Equatable {
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

    /// The key of a range of one.
    var pointKey: IndexKey? {
        guard let lower, let upper, lower.key == upper.key, self == .point(lower.key) else { return nil }
        return lower.key
    }

    /// What is in none of these ranges, which are ascending and without overlap.
    static func outside(_ ranges: [KeyRange]) -> [KeyRange] {
        var result: [KeyRange] = []
        var lower: KeyPosition?
        for range in ranges {
            if let end = range.lower { result.append(KeyRange(lower: lower, upper: end)) }
            guard let upper = range.upper else { return result }
            lower = upper
        }
        return result + [KeyRange(lower: lower, upper: nil)]
    }

    /// The union of these ranges, ascending and without overlap.
    static func union(_ ranges: [KeyRange]) -> [KeyRange] {
        func startsBefore(_ left: KeyRange, _ right: KeyRange) -> Bool {
            guard let rightLower = right.lower else { return false }
            return left.lower.map { $0 < rightLower } ?? true
        }
        var result: [KeyRange] = []
        for range in ranges.sorted(by: startsBefore) {
            guard var last = result.last else {
                result.append(range)
                continue
            }
            guard let end = last.upper else { break }
            if let lower = range.lower, lower >= end {
                result.append(range)
            } else {
                last.upper = range.upper.map { max($0, end) }
                result[result.count - 1] = last
            }
        }
        return result
    }

    /// The intersection of two lists of ascending, disjoint ranges.
    static func common(_ left: [KeyRange], _ right: [KeyRange]) -> [KeyRange] {
        var result: [KeyRange] = []
        var (first, second) = (0, 0)
        while first < left.count, second < right.count {
            if let both = left[first].intersection(right[second]) { result.append(both) }
            // The one that ends first has met all that it can meet.
            if left[first].ends(before: right[second]) { first += 1 } else { second += 1 }
        }
        return result
    }

    private func ends(before other: KeyRange) -> Bool {
        guard let upper else { return false }
        return other.upper.map { upper < $0 } ?? true
    }

    /// What comes after a position among the rows of several ranges; with an ordinal, of several indexes in order.
    func rest(from start: OrderLevel.Start?, ordinal: Int?) -> KeyRange? {
        guard let start, var key = start.key else { return self }
        if let ordinal {
            guard case .bytes(let bytes) = key, let first = bytes.first else { return self }
            if Int(first) != ordinal { return Int(first) < ordinal ? self : nil }
            key = .bytes(Array(bytes.dropFirst()))
        }
        return intersection(KeyRange(lower: KeyPosition(key: key, recordID: start.recordID), upper: nil))
    }
}
