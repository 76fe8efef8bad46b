import RecordModel
import Wire

/// What a page of a query has cost and may cost, in steps of about a tenth of a microsecond: an index entry read, a row
/// counted, a key made or compared. One page has one, also where it is read from many zones.
///
/// Steps are counted and never timed, so that the same page of the same records ends at the same place on every node. A
/// page ends at the first record after its work is spent; so it exceeds its bound by a record or two.
final class QueryWork {
    private let bound: Int
    /// Where what is done at the moment has to end; at most `bound`.
    private var ceiling: Int
    private(set) var spent = 0

    init(bound: Int) {
        self.bound = bound
        ceiling = bound
    }

    var isSpent: Bool { spent >= ceiling }
    var left: Int { max(ceiling - spent, 0) }

    func charge(_ steps: Int) { spent += steps }

    /// Does something that must not use more than a share of what is left.
    func within<Result>(_ share: Int, _ body: () throws -> Result) rethrows -> Result {
        let outer = ceiling
        ceiling = min(outer, spent + share)
        defer { ceiling = outer }
        return try body()
    }

    /// Does something that no part of may be left undone, with all that the page has left.
    func withAll<Result>(_ body: () throws -> Result) rethrows -> Result {
        let outer = ceiling
        ceiling = bound
        defer { ceiling = outer }
        return try body()
    }
}

/// What things cost, in steps.
enum QueryCost {
    /// A look-up of one row, and what a statement costs before its first row.
    static let probe = 6
    static let statement = 2
    /// Reading a record by its id, without its body.
    static let record = 30

    /// Copying, decoding or comparing bytes, beside what else is counted.
    static func bytes(_ count: Int) -> Int { count / 64 }
    /// Decoding a stored body, whose values are a few bytes each.
    static func body(_ count: Int) -> Int { count / 8 }
    /// Splitting text into words.
    static func words(_ count: Int) -> Int { count / 4 }
    /// Making the keys of a list and putting them in order.
    static func members(_ count: Int) -> Int { 4 * count }
    /// Searching sorted keys.
    static func search(_ count: Int) -> Int { Int.bitWidth - count.leadingZeroBitCount + 1 }
}

/// A record that is being judged, with its keys in each index made once, however many filters ask for them.
struct KeyedRecord {
    let record: IndexedRecord
    private let work: QueryWork
    private var made: [Int64: [IndexKey]] = [:]

    init(_ record: IndexedRecord, work: QueryWork) {
        self.record = record
        self.work = work
    }

    /// The record's keys in an index, ascending, without duplicates.
    mutating func keys(in index: InstalledIndex) -> [IndexKey] {
        if let keys = made[index.id] { return keys }
        let keys = record.keys(in: index)
        work.charge(1 + cost(in: index))
        made[index.id] = keys
        return keys
    }

    func charge(_ steps: Int) { work.charge(steps) }

    private func cost(in index: InstalledIndex) -> Int {
        switch (index.purpose, record.fields[index.name]) {
        case (.tokens, .string(let text)): QueryCost.words(text.utf8.count)
        case (.tokens, .list(_, let members)):
            members.reduce(members.count) { sum, member in
                guard case .string(let text) = member else { return sum }
                return sum + QueryCost.words(text.utf8.count)
            }
        case (.values, .list(_, let members)): QueryCost.members(members.count)
        default: 0
        }
    }
}

extension [IndexKey] {
    /// The number of keys before the first that is behind a position; the keys are ascending.
    private func count(through position: KeyPosition) -> Int {
        prefixEnd { KeyPosition(key: $0, recordID: 0) <= position }
    }

    /// The least key in a range; the keys are ascending.
    func first(in range: KeyRange) -> IndexKey? {
        let place = range.lower.map { count(through: $0) } ?? 0
        guard place < count, range.contains(self[place]) else { return nil }
        return self[place]
    }

    /// Whether a key is among these, which are ascending.
    func holds(_ key: IndexKey) -> Bool { first(in: .point(key)) != nil }
}
