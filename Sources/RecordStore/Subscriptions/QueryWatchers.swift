import RecordModel
import Wire

/// The subscriptions to queries of one record type.
///
/// A subscription is found by what a record must have for it (`Filing`), so those that do not match cost next to
/// nothing. Which ones are found counts: matching ends a part by it, so all replicas must find the same.
struct QueryWatchers: Sendable {
    private var entries: [Int64: WatcherEntry] = [:]
    /// Where each is filed for each event that it fires on.
    private var files: [Match.Event: WatcherFile] = [:]

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }

    subscript(_ row: Int64) -> WatcherEntry? { entries[row] }

    /// Those that pass a test, in any order.
    func filter(_ isWanted: (WatcherEntry) -> Bool) -> [WatcherEntry] { entries.values.filter(isWanted) }

    mutating func add(_ entry: WatcherEntry) {
        entries[entry.id] = entry
        for event in entry.events { files[event, default: WatcherFile()].add(entry.id, entry.filing) }
    }

    /// - Returns: whether the row was there.
    mutating func remove(_ id: Int64) -> Bool {
        guard let entry = entries.removeValue(forKey: id) else { return false }
        for event in entry.events { files[event]?.remove(id, entry.filing) }
        return true
    }

    /// The first rows of those that may match, ascending.
    func candidates(
        for record: inout KeyedRecord, _ event: Match.Event, after: Int64 = 0, through last: Int64 = .max, limit: Int
    ) -> [Int64] {
        files[event]?.candidates(for: &record, after: after, through: last, limit: limit) ?? []
    }
}

/// By what a subscription is found: of the conditions that a record must meet, the one that fewest are thought to.
enum Filing: Sendable {
    /// No record matches.
    case nowhere
    /// By each record.
    case everywhere
    /// By records that a user made.
    case creator(String)
    /// By records with one of some keys.
    case keys(InstalledIndex, [IndexKey])
    /// By records with a key in one of some ranges, in one of the indexes; or, of one index, by those with no key.
    case ranges([InstalledIndex], [KeyRange], orNone: Bool = false)

    /// Keys or ranges that a subscription is filed under at most, in each index; one with more is looked at for each
    /// record.
    private static let placesMax = 1_000
    /// Ranges beside unwanted keys that a subscription is filed under at most.
    private static let rangesBesideMax = 16

    /// - Parameters:
    ///   - conditions: nil: nothing matches.
    ///   - owner: whose the subscription is, where the user may hear of own records only.
    init(_ conditions: [Condition]?, owner: String?, at level: FeatureLevel) {
        guard let conditions else {
            self = .nowhere
            return
        }
        guard level >= .filedSubscriptions else {
            self = conditions.first(where: \.isOfSomeKeys)?.filing ?? .everywhere
            return
        }
        if let owner {
            self = .creator(owner)
            return
        }
        var (best, least) = (Filing.everywhere, Int.max)
        for filing in Self.joined(conditions, at: level) {
            let rank = filing.rank
            if rank < least { (best, least) = (filing, rank) }
        }
        self = best
    }

    /// What the conditions come to, where ranges of one field's only value are one.
    private static func joined(_ conditions: [Condition], at level: FeatureLevel) -> [Filing] {
        var filings: [Filing] = []
        var bounds: [Int64: KeyRange] = [:]
        for condition in conditions {
            guard case .within(let range) = condition.test, !condition.index.type.isList else {
                if let filing = condition.filing ?? (level < .filedNegations ? nil : condition.negation) {
                    filings.append(filing)
                }
                continue
            }
            guard let both = range.intersection(bounds[condition.index.id] ?? .all) else { return [.nowhere] }
            bounds[condition.index.id] = both
            filings.append(.ranges([condition.index], [both]))
        }
        return filings
    }

    /// The less, the fewer records are thought to lead to it.
    private var rank: Int {
        switch self {
        case .nowhere: -1
        case .creator: 0
        case .keys(_, let keys): keys.count > Self.placesMax ? .max : keys.count
        case .ranges(let indexes, let ranges, let orNone):
            if indexes.count * ranges.count > Self.placesMax {
                .max
            } else if orNone {
                // Most records are in one of them: finding it there is worth little.
                ranges.count > Self.rangesBesideMax ? .max : 30_000 + ranges.count
            } else if ranges.contains(where: { $0.lower == nil || $0.upper == nil }) {
                20_000
            } else {
                10_000 + ranges.count
            }
        case .everywhere: .max
        }
    }
}

extension Condition {
    fileprivate var isOfSomeKeys: Bool { if case .any = test { indexes.count == 1 } else { false } }

    /// What records that meet the condition have; nil where that says little.
    fileprivate var filing: Filing? {
        switch test {
        case .any(let keys) where indexes.count == 1: .keys(index, keys)
        case .all(let keys): keys.first.map { .keys(index, [$0]) }
        case .within(let range): .ranges(indexes, [range])
        case .near(_, _, let covering): .ranges(indexes, covering)
        case .words(let ranges, let all):
            .ranges(indexes, all ? [Self.longest(of: ranges)] : KeyRange.union(ranges))
        case .any, .none, .notAll, .without: nil
        }
    }

    /// What records that meet a negative condition have: another key, or none.
    fileprivate var negation: Filing? {
        switch test {
        case .none(let keys) where indexes.count == 1:
            .ranges(indexes, KeyRange.outside(keys.map(KeyRange.point)), orNone: true)
        case .without(let range) where indexes.count == 1: .ranges(indexes, KeyRange.outside([range]), orNone: true)
        default: nil
        }
    }

    /// The first of the longest words.
    private static func longest(of words: [KeyRange]) -> KeyRange {
        func bytes(_ word: KeyRange) -> Int { word.lower?.key.byteCount ?? 0 }
        return words.reduce(words[0]) { bytes($1) > bytes($0) ? $1 : $0 }
    }
}

/// Rows of subscriptions under what records must have for them.
private struct WatcherFile: Sendable {
    /// Those that are filed by one index.
    private struct Drawer: Sendable {
        var index: InstalledIndex
        /// Ascending.
        var rows: [IndexKey: [Int64]] = [:]
        var ranges = RangeTree()
        /// Of those that are found by records with no key, ascending.
        var keyless: [Int64] = []
        var isEmpty: Bool { rows.isEmpty && ranges.isEmpty && keyless.isEmpty }
    }

    /// Ascending.
    private var everywhere: [Int64] = []
    /// Ascending, by who made the record.
    private var creators: [String: [Int64]] = [:]
    private var drawers: [Drawer] = []

    mutating func add(_ row: Int64, _ filing: Filing) {
        switch filing {
        case .nowhere: break
        case .everywhere: everywhere.insertSorted(row)
        case .creator(let user): creators[user, default: []].insertSorted(row)
        case .keys(let index, let keys):
            let place = place(of: index)
            for key in keys { drawers[place].rows[key, default: []].insertSorted(row) }
        case .ranges(let indexes, let ranges, let orNone):
            for place in indexes.map({ self.place(of: $0) }) {
                for range in ranges { drawers[place].ranges.insert(range, row) }
                if orNone { drawers[place].keyless.insertSorted(row) }
            }
        }
    }

    mutating func remove(_ row: Int64, _ filing: Filing) {
        switch filing {
        case .nowhere: break
        case .everywhere: everywhere.removeSorted(row)
        case .creator(let user): creators.remove(row, of: user)
        case .keys(let index, let keys):
            let place = place(of: index)
            for key in keys { drawers[place].rows.remove(row, of: key) }
        case .ranges(let indexes, let ranges, let orNone):
            for place in indexes.map({ self.place(of: $0) }) {
                for range in ranges { drawers[place].ranges.remove(range, row) }
                if orNone { drawers[place].keyless.removeSorted(row) }
            }
        }
        drawers.removeAll(where: \.isEmpty)
    }

    private mutating func place(of index: InstalledIndex) -> Int {
        if let place = drawers.firstIndex(where: { $0.index.id == index.id }) { return place }
        drawers.append(Drawer(index: index))
        return drawers.count - 1
    }

    func candidates(
        for record: inout KeyedRecord, after: Int64, through last: Int64, limit: Int
    ) -> [Int64] {
        var found = Array(everywhere.part(after: after, through: last, limit: limit))
        let sorted = found.count
        if let rows = creators[record.record.created.user] {
            found += rows.part(after: after, through: last, limit: limit)
        }
        for drawer in drawers {
            let keys = record.keys(in: drawer.index)
            if keys.isEmpty { found += drawer.keyless.part(after: after, through: last, limit: limit) }
            for key in keys {
                if let rows = drawer.rows[key] { found += rows.part(after: after, through: last, limit: limit) }
                drawer.ranges.forEach(holding: key) { row in
                    if row > after, row <= last { found.append(row) }
                }
            }
        }
        if found.count == sorted { return found }
        found.sort()
        // A record may have several of the keys.
        var rows: [Int64] = []
        for row in found where rows.last != row {
            guard rows.count < limit else { break }
            rows.append(row)
        }
        return rows
    }
}

extension Dictionary where Value == [Int64] {
    /// Removes a row from those of a key, which goes with the last one.
    fileprivate mutating func remove(_ row: Int64, of key: Key) {
        self[key]?.removeSorted(row)
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}

// Ascending rows.
extension [Int64] {
    private func place(of row: Int64) -> Int { prefixEnd { $0 < row } }

    fileprivate mutating func insertSorted(_ row: Int64) {
        let place = place(of: row)
        if place == count || self[place] != row { insert(row, at: place) }
    }

    fileprivate mutating func removeSorted(_ row: Int64) {
        let place = place(of: row)
        if place < count && self[place] == row { remove(at: place) }
    }

    fileprivate func part(after: Int64, through last: Int64, limit: Int) -> ArraySlice<Int64> {
        let begin = place(of: after &+ 1)
        let end = last == .max ? count : place(of: last + 1)
        return begin < end ? self[begin..<Swift.min(end, begin + limit)] : []
    }
}
