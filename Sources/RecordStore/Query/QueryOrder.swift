import RecordModel

/// The order of a query's records: some keys, and the record id as the tie break.
struct QueryOrder {
    struct Key {
        enum Kind {
            case values(InstalledIndex)
            /// By distance from a place.
            case distance(InstalledIndex, from: Place)
            /// By the first of a filter's rows that the record has: the order in which its index is read.
            case leastKey(EntrySource)
        }

        var kind: Kind
        var isAscending: Bool
        /// Whether records without a key come first: with values where they ascend, with distances where they descend.
        var missingFirst: Bool
    }

    /// Empty: by record id alone.
    var keys: [Key]
    /// Ties go the way of the last key, which is the way its index is read.
    var tiesAscend: Bool { keys.last?.isAscending ?? true }

    func keys(of record: inout KeyedRecord) -> [IndexKey?] {
        var keys: [IndexKey?] = []
        for key in self.keys { keys.append(key.key(of: &record)) }
        return keys
    }

    /// Whether a position at a record comes before another.
    func precedes(_ left: (keys: [IndexKey?], id: Int64), _ right: (keys: [IndexKey?], id: Int64)) -> Bool {
        for (offset, key) in keys.enumerated() {
            if let isBefore = key.precedes(left.keys[offset], right.keys[offset]) { return isBefore }
        }
        return tiesAscend ? left.id < right.id : left.id > right.id
    }

    /// Whether a record comes after a position.
    func isAfter(_ position: QueryPosition, keys recordKeys: [IndexKey?], id: Int64) -> Bool {
        for (offset, key) in position.keys.enumerated() {
            if let isBefore = keys[offset].precedes(key, recordKeys[offset]) { return isBefore }
        }
        guard let recordID = position.recordID else { return false }
        return tiesAscend ? recordID < id : recordID > id
    }

    /// Whether a position can be one of this order.
    func accepts(_ position: QueryPosition) -> Bool {
        guard position.keys.count <= keys.count else { return false }
        let fits = zip(position.keys, keys).allSatisfy { key, sort in
            switch key {
            case nil: true
            case .number: sort.keyClass == .number
            case .bytes: sort.keyClass == .bytes
            }
        }
        guard fits else { return false }
        return position.recordID == nil ? !position.keys.isEmpty : position.keys.count == keys.count
    }
}

extension QueryOrder.Key {
    func key(of record: inout KeyedRecord) -> IndexKey? {
        switch kind {
        case .values(let index): return record.keys(in: index).first
        case .distance(let index, let place):
            return record.record.place(in: index).map { .number(IndexKey.number(ordering: place.distance(to: $0))) }
        case .leastKey(let source):
            for (ordinal, index) in source.indexes.enumerated() {
                let keys = record.keys(in: index)
                for range in source.ranges {
                    record.charge(QueryCost.search(keys.count))
                    if let key = keys.first(in: range) { return source.orderKey(key, ordinal: ordinal) }
                }
            }
            return nil
        }
    }

    /// The class that the keys are of.
    var keyClass: IndexClass {
        switch kind {
        case .values(let index): index.indexClass
        case .distance: .number
        case .leastKey(let source): source.indexes.first?.indexClass ?? .bytes
        }
    }

    /// Whether records can be read in this order; `leastKey` and `values` through rows that are all there.
    var isReady: Bool {
        switch kind {
        case .values(let index), .distance(let index, _): index.isReady
        case .leastKey(let source): source.isReady
        }
    }

    /// The index of single values that is read in this order.
    var scannedIndex: InstalledIndex? { if case .values(let index) = kind { index } else { nil } }

    /// Whether one key comes before another; nil if they are the same.
    func precedes(_ left: IndexKey?, _ right: IndexKey?) -> Bool? {
        switch (left, right) {
        case (let left?, let right?): left == right ? nil : (left < right) == isAscending
        case (nil, nil): nil
        case (nil, _): missingFirst
        case (_, nil): !missingFirst
        }
    }
}

extension EntrySource {
    /// A row's key where rows of several indexes, all of bytes, follow one another.
    func orderKey(_ key: IndexKey, ordinal: Int) -> IndexKey {
        guard case .bytes(let bytes) = key, indexes.count > 1 else { return key }
        return .bytes([UInt8(ordinal)] + bytes)
    }
}

/// A position in a query's order: at a record, or after all records that begin with these keys.
struct QueryPosition: Hashable {
    /// The sort keys, nil for a missing value; where there is no record id, they may be fewer than the order has.
    var keys: [IndexKey?]
    /// Least or greatest for before or after all records with the keys.
    var recordID: Int64?
}
