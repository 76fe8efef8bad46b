import Authorization
package import GRDB
import RecordModel
import Wire

/// How long a request's repetition is recognised, in milliseconds.
private let rememberedMilliseconds: Int64 = 24 * 60 * 60 * 1000

/// What requests are remembered by, in a transaction.
struct IdempotencyTable: TransactionPart {
    let transaction: RecordTransaction

    /// The outcome of a request that must not be applied; nil if it must be.
    func earlierOutcome(of command: ModifyRecords) throws -> RecordOutcome? {
        guard let idempotency = command.idempotency else { return nil }
        let databaseID = try transaction.openDatabase(command.zone.database).row?.id
        let known = try databaseID.flatMap {
            try EarlierOutcomes(transaction.tables, in: db).find(command, databaseID: $0)
        }
        if let known { return known }
        return try refusal(
            of: idempotency, databaseID: databaseID, at: command.time,
            bytesMax: rememberedBytesMax(of: command.caller, command.quota)
        ).map(RecordOutcome.refused)
    }

    /// What the requests of a caller may be remembered by in a database. It counts in the database's quota, which
    /// nobody is to fill by requests that change nothing.
    private func rememberedBytesMax(of caller: Caller, _ quota: QuotaTerms?) -> Int64 {
        guard transaction.level >= .shortMemories else { return Limits.rememberedBytesMax }
        if caller.user == nil { return Limits.rememberedBytesMin }
        let share = (quota?.limit.bytes ?? .max) / 4
        return min(max(share, Limits.rememberedBytesMin), Limits.rememberedBytesMax)
    }

    /// The outcome of a request that must not be applied; nil if it must be.
    func earlierOutcome(of command: ModifyZone) throws -> RecordOutcome? {
        guard let idempotency = command.idempotency else { return nil }
        let databaseID = try transaction.openDatabase(command.zone.database).row?.id
        if let databaseID, let found = try RememberedOutcome.find(idempotency, databaseID: databaseID, in: db) {
            switch found {
            case .success(let remembered): return remembered.outcome
            case .failure(let error): return .refused(error)
            }
        }
        let isShare = transaction.level >= .zoneMemories
        return try refusal(
            of: idempotency, databaseID: databaseID, at: command.time,
            bytesMax: isShare ? rememberedBytesMax(of: command.caller, command.quota) : Limits.rememberedBytesMax
        ).map(RecordOutcome.refused)
    }

    /// Why a key that is not remembered may not be used; nil if it may.
    ///
    /// A key's age is judged by the clock of the command. Whether its outcome may have been forgotten is judged by what
    /// was forgotten: so no request is applied twice, however wrong the clocks were by which maintenance removed rows.
    private func refusal(
        of idempotency: IdempotencyKey, databaseID: Int64?, at now: Int64, bytesMax: Int64
    ) throws -> ServiceError? {
        if let made = idempotency.madeAt {
            if made <= transaction.forgotten || made < saturating(now, -rememberedMilliseconds) { return Self.tooOld }
            if made > saturating(now, rememberedMilliseconds) {
                return ServiceError(
                    .badRequest, "Idempotency-Key is dated more than 24 hours ahead: check the clock",
                    detail: .idempotencyKey)
            }
        }
        let used = try databaseID.flatMap { databaseID in
            try db.first(
                "SELECT bytes FROM idempotency_use WHERE database = ? AND caller = ?", databaseID, idempotency.caller
            ) { $0.integer(0) }
        }
        guard let used, used >= bytesMax else { return nil }
        return ServiceError(
            .quotaExceeded,
            """
            what this caller's requests of the last 24 hours are remembered by takes \(used) bytes, of at most \
            \(bytesMax): send the request without an Idempotency-Key, or later
            """)
    }

    private static let tooOld = ServiceError(
        .badRequest, "Idempotency-Key is older than 24 hours: read the records, then use a new key",
        detail: .idempotencyKey)

    /// Stores an outcome, for 24 hours from now or from the key's own time, whichever is later. Maintenance removes the
    /// row; from then on the key is too old.
    func remember(_ outcome: RememberedOutcome, of idempotency: IdempotencyKey, in database: DatabaseKey) throws {
        let expires = saturating(max(transaction.time, idempotency.madeAt ?? transaction.time), rememberedMilliseconds)
        let databaseID = try transaction.makeDatabase(database).id
        let bytes = outcome.encoded()
        try db.run(
            "INSERT INTO idempotency VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", databaseID, idempotency.caller,
            idempotency.key, idempotency.position, idempotency.bodyHash, bytes, expires)
        let rowBytes = RememberedOutcome.rowBytes(outcome: bytes, caller: idempotency.caller)
        if transaction.counted.contains(RowPlace(.idempotency, row: db.lastInsertedRowID)) {
            try transaction.count(rowBytes, databaseID: databaseID)
        }
        try db.run(
            """
            INSERT INTO idempotency_use VALUES (?, ?, ?)
            ON CONFLICT (database, caller) DO UPDATE SET bytes = bytes + excluded.bytes
            """, databaseID, idempotency.caller, rowBytes)
    }

    /// Removes what is remembered of requests whose keys are too old to be used again.
    func purge(budget: Int) throws -> Int {
        let old = try db.all(
            """
            SELECT id, database, caller, key, \(RememberedOutcome.rowBytes) FROM idempotency WHERE expires <= ?
            ORDER BY expires, id LIMIT ?
            """, transaction.time, budget
        ) { row in
            (
                id: row.integer(0), databaseID: row.integer(1),
                key: IdempotencyKey(key: row.bytes(3), bodyHash: [], caller: row.text(2)), bytes: row.integer(4)
            )
        }
        var count = 0
        // Rows of earlier versions may carry records; these rows have 4 MB of their own, whatever jobs read.
        var bytes: Int64 = 0
        var freed: [Int64: Int64] = [:]
        for row in old where bytes < Int64(RecordTransaction.partBytesMax) {
            try db.run("DELETE FROM idempotency WHERE id = ?", row.id)
            try db.checkOneRow("the end of answer \(row.id)")
            try db.run(
                "UPDATE idempotency_use SET bytes = bytes - ? WHERE database = ? AND caller = ?", row.bytes,
                row.databaseID, row.key.caller)
            try db.checkOneRow("\(row.bytes) bytes of answers to a caller of database \(row.databaseID)")
            try db.run(
                "DELETE FROM idempotency_use WHERE database = ? AND caller = ? AND bytes <= 0", row.databaseID,
                row.key.caller)
            if let made = row.key.madeAt { transaction.forgotten = max(transaction.forgotten, made) }
            if transaction.counted.contains(RowPlace(.idempotency, row: row.id)) {
                freed[row.databaseID, default: 0] += row.bytes
            }
            count += 1
            bytes += row.bytes
        }
        for (databaseID, bytes) in freed.sorted(by: { $0.key < $1.key }) {
            try transaction.count(0 - bytes, databaseID: databaseID)
        }
        return count
    }
}

/// A sum that stops at the ends of the range: commands may carry any time.
func saturating(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? (right > 0 ? Int64.max : Int64.min) : sum
}

extension IdempotencyKey {
    /// The time inside a UUIDv7 in milliseconds; nil for other keys.
    var madeAt: Int64? { UUIDv7.milliseconds(of: key) }
}

/// What is kept of a request that was answered, to answer it again: codes, change tags, names and times.
///
/// Values of records are not kept. A repeat is told what they are by then, as far as its caller may read them.
struct RememberedOutcome: WireCodable {
    var outcome: RecordOutcome
    /// The records that the outcome's items are about, in order: hashes of their names.
    private let marks: [UInt64]
    /// Their names, for a row of below `FeatureLevel.shortMemories`.
    private let names: [String]
    /// Whether the row was written before outcomes were kept without values. Its request had another hash then.
    let isEarlierFormat: Bool

    init(_ outcome: RecordOutcome, names: [String] = [], at level: FeatureLevel) {
        marks = names.map(Self.mark)
        self.names = level < .shortMemories ? names : []
        isEarlierFormat = false
        self.outcome =
            switch outcome {
            case .records(let items): .records(items.map(\.withoutValues))
            case .atomicFailure(let items): .atomicFailure(items.map(\.withoutValues))
            default: outcome
            }
    }

    /// What a row of `idempotency` counts for, beside its outcome and its caller.
    private static let rowBytesMin = 128
    /// What a row counts for, as SQL.
    static let rowBytes = "length(outcome) + length(CAST(caller AS BLOB)) + \(rowBytesMin)"

    static func rowBytes(outcome: [UInt8], caller: String) -> Int64 {
        Int64(outcome.count + caller.utf8.count + rowBytesMin)
    }

    /// The remembered outcome of the operation on a record, which was at `place` in the request.
    func item(_ name: String, at place: Int) -> ItemOutcome? {
        let items = outcome.performed
        if isEarlierFormat { return items.indices.contains(place) ? items[place] : nil }
        let mark = Self.mark(name)
        if marks.indices.contains(place), marks[place] == mark { return items[place] }
        return marks.firstIndex(of: mark).map { items[$0] }
    }

    private static func mark(_ name: String) -> UInt64 { fnv1a(Array(name.utf8)) }

    /// What is remembered under a key, or why the key may not be used; nil where nothing is remembered.
    static func find(
        _ idempotency: IdempotencyKey, databaseID: Int64, in db: Database
    ) throws -> Result<RememberedOutcome, ServiceError>? {
        let found = try db.first(
            "SELECT hash, outcome FROM idempotency WHERE database = ? AND caller = ? AND key = ? AND position = ?",
            databaseID, idempotency.caller, idempotency.key, idempotency.position
        ) { ($0.bytes(0), $0.bytes(1)) }
        guard let (hash, bytes) = found else { return nil }
        let remembered = try RememberedOutcome(decoding: bytes)
        if hash == idempotency.bodyHash { return .success(remembered) }
        return .failure(remembered.isEarlierFormat ? usedBeforeUpgrade : usedBefore)
    }

    private static let usedBefore = ServiceError(
        .badRequest, "Idempotency-Key was used before with another body: use a new key")
    private static let usedBeforeUpgrade = ServiceError(
        .badRequest,
        "Idempotency-Key was used already, before this server was upgraded: read the records, then use a new key")

    /// The outcome's own fields, then 20 the format, and 21 the names or 22 their hashes.
    func encode(to writer: inout WireWriter) {
        outcome.encode(to: &writer)
        writer.field(20, UInt64(1))
        for name in names { writer.field(21, name) }
        if names.isEmpty { for mark in marks { writer.field(22, mark) } }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var copy = reader
        outcome = try RecordOutcome(from: &copy)
        var (format, names, marks) = (UInt64(0), [String](), [UInt64]())
        while let field = try reader.nextField() {
            switch field {
            case 20: format = try reader.unsigned()
            case 21:
                names.append(try reader.string())
                marks.append(Self.mark(names[names.count - 1]))
            case 22: marks.append(try reader.unsigned())
            default: try reader.skip()
            }
        }
        (self.names, self.marks, isEarlierFormat) = (names, marks, format == 0)
        guard isEarlierFormat || marks.count == outcome.performed.count else { throw .invalidValue(field: 21) }
    }
}

extension RecordOutcome {
    /// What became of each operation; nothing where the outcome is not about operations.
    fileprivate var performed: [ItemOutcome] {
        switch self {
        case .records(let items), .atomicFailure(let items): items
        default: []
        }
    }
}

extension ItemOutcome {
    fileprivate var withoutValues: ItemOutcome {
        switch self {
        case .deleted: return self
        case .failed(let error, _): return .failed(error, serverRecord: nil)
        case .saved(var saved):
            saved.mergedFields = nil
            return .saved(saved)
        }
    }
}

/// What repeated requests are answered, as one connection's snapshot has it.
package struct EarlierOutcomes {
    private let reads: RecordReads
    private let db: Database

    /// - Parameter tables: those of the connection's database.
    package init(_ tables: RecordTables, in db: Database) {
        reads = RecordReads(tables, in: db)
        self.db = db
    }

    /// The outcome of a repeated request; nil if its key is unknown.
    ///
    /// Uses only the operations' record names and field names.
    package func find(_ command: ModifyRecords) throws -> RecordOutcome? {
        let rows = Rows(db: db)
        guard let schema = try rows.schema(command.zone.database),
            let id = try rows.databaseID(command.zone.database, schemaID: schema.id)
        else { return nil }
        return try find(command, databaseID: id)
    }

    /// The same where the database's row is known.
    func find(_ command: ModifyRecords, databaseID: Int64) throws -> RecordOutcome? {
        guard let idempotency = command.idempotency,
            let found = try RememberedOutcome.find(idempotency, databaseID: databaseID, in: db)
        else { return nil }
        switch found {
        case .failure(let error): return .refused(error)
        case .success(let remembered):
            switch remembered.outcome {
            case .records: return .records(try items(of: remembered, for: command))
            case .atomicFailure: return .atomicFailure(try items(of: remembered, for: command))
            default: return remembered.outcome
            }
        }
    }

    private static let notPerformed = ServiceError(
        .badRequest, "the operation was refused when the request came first: send it again under a new Idempotency-Key")

    private func items(of remembered: RememberedOutcome, for command: ModifyRecords) throws -> [ItemOutcome] {
        var bytesLeft = Batch.answerBytesMax
        return try command.operations.enumerated().map { place, operation in
            switch remembered.item(operation.recordName, at: place) {
            case nil: return .failed(Self.notPerformed, serverRecord: nil)
            case .deleted?: return .deleted
            case .saved(var saved)?:
                let record = try readable(operation.recordName, by: command, &bytesLeft)
                let sent = Set(operation.fields.map(\.name))
                // What was written later is not what this request saved.
                if let record, record.changeTag == saved.changeTag,
                    record.fields.all.contains(where: { !sent.contains($0.name) })
                {
                    saved.mergedFields = record.fields
                }
                return .saved(saved)
            case .failed(let error, _)?:
                guard error.code == .conflict || error.code == .exists else {
                    return .failed(error, serverRecord: nil)
                }
                let record = try readable(operation.recordName, by: command, &bytesLeft)
                return .failed(error, serverRecord: record)
            }
        }
    }

    /// The record as it is, where the caller may read it and there is room for it.
    private func readable(
        _ name: String, by command: ModifyRecords, _ bytesLeft: inout Int
    ) throws -> RecordModel.Record? {
        guard bytesLeft > 0,
            case .found(let items) = try reads.lookup([name], zone: command.zone, caller: command.caller),
            case .record(let record)? = items.first
        else { return nil }
        bytesLeft -= record.fields.sizeBytes
        return bytesLeft >= 0 ? record : nil
    }
}
