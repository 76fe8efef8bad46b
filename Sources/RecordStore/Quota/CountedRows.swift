package import RecordModel
import Wire

/// What a row counts for in quotas, in bytes, beside what it holds; since `FeatureLevel.countedRows`.
enum RowBytes {
    /// A record or a tombstone, beside its name and body.
    static let record: Int64 = 64
    /// An earlier version of a record, beside its name and body.
    static let version: Int64 = 128
    /// A row of an index, beside its key. A row that says that a record lacks the field has no key.
    static let index: Int64 = 16
    /// The key of an index of numbers.
    static let number: Int64 = 8
}

extension IndexKey {
    /// What a row of an index with this key counts for.
    var rowBytes: Int64 {
        switch self {
        case .number: RowBytes.index + RowBytes.number
        case .bytes(let bytes): RowBytes.index + Int64(bytes.count)
        }
    }

    /// What a record's rows in one index count for; no keys are a row that says so.
    static func rowBytes(_ keys: [IndexKey]) -> Int64 {
        keys.isEmpty ? RowBytes.index : keys.reduce(0) { $0 + $1.rowBytes }
    }
}

/// Which rows of a shard count in quotas, beside the names and bodies of live records, which always do.
///
/// Shards from before `FeatureLevel.countedRows` have rows that were never counted. A job (`Job.recountID`) goes
/// through them in the order of `RowPlace`: what it has passed counts, and what lies ahead does not yet. So what is
/// added or removed while it runs is counted once, and counters equal a recount at every moment.
struct CountedRows: Equatable {
    /// The last place that counts; nil where nothing or all counts.
    private(set) var last: RowPlace?
    private let isAll: Bool

    static let none = CountedRows(last: nil, isAll: false)
    static let all = CountedRows(last: nil, isAll: true)
    static func upTo(_ place: RowPlace) -> CountedRows { CountedRows(last: place, isAll: false) }

    private init(last: RowPlace?, isAll: Bool) {
        self.last = last
        self.isAll = isAll
    }

    /// What a shard counts at a level, as far as its job has come.
    /// - Parameter job: the body of the job that goes through its rows; nil where no such job waits.
    /// - Throws: `WireError` if the body is damaged.
    init(at level: FeatureLevel, job: [UInt8]?) throws {
        if level < .countedRows {
            self = .none
        } else if let job {
            self = job.isEmpty ? .none : .upTo(try RowPlace(decoding: job))
        } else {
            self = .all
        }
    }

    /// Whether nothing counts but names and bodies of live records.
    var isNone: Bool { !isAll && last == nil }

    func contains(_ place: RowPlace) -> Bool {
        if isAll { return true }
        guard let last else { return false }
        return place <= last
    }

    func containsRecord(_ id: Int64) -> Bool { isAll || contains(RowPlace(.record, row: id)) }

    /// The bytes that a row of a record counts for, beside the name and body of a live one.
    func extraBytes(of row: RecordRow) -> Int64 {
        guard containsRecord(row.id) else { return 0 }
        return RowBytes.record + (row.isDeleted ? Int64(row.name.utf8.count) : 0)
    }

    /// What a row of a record counts for; it must have been read with its body.
    func size(of row: RecordRow, _ assets: [AssetReference]) -> QuotaAmounts {
        var size = row.size(assets)
        size.bytes += extraBytes(of: row)
        return size
    }
}

/// The place of a row among all rows of a shard that quotas count: by table, then by its key.
struct RowPlace: Comparable, WireMessage {
    enum Table: UInt64, Comparable, WireValue {
        case record = 1
        case indexNumber = 2
        case indexBytes = 3
        case indexMissing = 4
        case idempotency = 5

        static func < (left: Table, right: Table) -> Bool { left.rawValue < right.rawValue }
        var next: Table? { Table(rawValue: rawValue + 1) }
    }

    var table: Table
    /// The index and the zone; 0 in tables of rows that have numbers.
    var field: Int64
    var zone: Int64
    var key: IndexKey?
    /// The row's number, or its record's.
    var row: Int64

    init(_ table: Table, field: Int64 = 0, zone: Int64 = 0, key: IndexKey? = nil, row: Int64) {
        self.table = table
        self.field = field
        self.zone = zone
        self.key = key
        self.row = row
    }

    /// Before every row of a table; numbers begin with 1.
    init(before table: Table) { self.init(table, row: 0) }

    static func < (left: RowPlace, right: RowPlace) -> Bool {
        if left.table != right.table { return left.table < right.table }
        if left.field != right.field { return left.field < right.field }
        if left.zone != right.zone { return left.zone < right.zone }
        if let one = left.key, let other = right.key, one != other { return one < other }
        return left.row < right.row
    }

    static var blank: Self { RowPlace(before: .record) }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &table)
        try wire.field(2, &field)
        try wire.field(3, &zone)
        try wire.field(4, &key.number)
        try wire.field(5, &key.bytes)
        try wire.field(6, &row)
    }
}

/// How many rows a request writes, by its operations and the schema alone: what it costs of its container's rate.
///
/// A save is a row, and what it sets in an index a row for each member of a list, each six bytes of text (about a
/// word), and else one. A save that may make a record writes a row in every index of its type. What a save or a
/// deletion removes is not known here and costs nothing.
package struct WrittenRows: Hashable, Sendable {
    /// Rows of records and of indexes; 0 for a request that only deletes.
    package private(set) var count = 0
    private let operations: Int

    /// The request's cost: one token for each started batch of rows.
    package var tokens: Int { max(count + Limits.rowsPerToken - 1, Limits.rowsPerToken) / Limits.rowsPerToken }

    /// Why a request writes too many rows; nil if it may. Apply checks again against what is stored.
    package var refusal: ServiceError? {
        count <= Limits.rowsPerRequestMax || operations == 1 ? nil : Self.tooMany
    }

    static let tooMany = tooMany("rows in indexes")
    static let tooManyWithFiles = tooMany("rows in indexes and files")

    private static func tooMany(_ what: String) -> ServiceError {
        ServiceError(
            .badRequest,
            """
            the records of the request have more than \(Limits.rowsPerRequestMax) \(what) together: send them in \
            several requests
            """)
    }

    /// About a word and the space behind it.
    private static let bytesPerWord = 6

    package init(_ changes: [RecordChange], schema: Schema) {
        operations = changes.count
        var types: [String: (all: Int, byField: [String: [IndexDesign]])] = [:]
        for change in changes where change.kind != .delete && change.kind != .forceDelete {
            count += 1
            guard let name = change.recordType else { continue }
            if types[name] == nil {
                let designs = schema.type(named: name).map { IndexDesign.all(of: $0) } ?? []
                types[name] = (designs.count, Dictionary(grouping: designs, by: \.name))
            }
            guard let type = types[name] else { continue }
            let isWhole = change.kind != .update
            if isWhole { count += type.all }
            for field in change.fields {
                for design in type.byField[field.name] ?? [] {
                    count += Self.rows(of: field.value, in: design) - (isWhole ? 1 : 0)
                }
            }
        }
    }

    private static func rows(of value: FieldValue?, in design: IndexDesign) -> Int {
        switch value {
        case .string(let text)? where design.purpose == .tokens:
            min(max(text.utf8.count / bytesPerWord, 1), Tokenizer.tokensMax)
        case .list(_, let members)?:
            min(max(members.reduce(0) { $0 + rows(of: $1, in: design) }, 1), Limits.indexRowsPerRecordMax)
        default: 1
        }
    }
}
