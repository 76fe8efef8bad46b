package import GRDB
import RecordModel
import Wire

/// What is kept of a request that was answered, to answer it again: codes, change tags, names and times.
///
/// Values of records are not kept. A repeat is told what they are by then, as far as its caller may read them.
struct RememberedOutcome {
    var outcome: RecordOutcome
    /// The records that the outcome's items are about, in order.
    var names: [String]
    /// Whether the row was written before outcomes were kept without values. Its request had another hash then.
    let isEarlierFormat: Bool

    init(_ outcome: RecordOutcome, names: [String] = []) {
        self.names = names
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

    /// What became of the operation on a record, which stood at a place of the request; nil where none was performed.
    func item(_ name: String, at place: Int) -> ItemOutcome? {
        let items = outcome.performed
        if isEarlierFormat { return items.indices.contains(place) ? items[place] : nil }
        if names.indices.contains(place), names[place].utf8.elementsEqual(name.utf8) { return items[place] }
        return names.firstIndex { $0.utf8.elementsEqual(name.utf8) }.map { items[$0] }
    }

    /// What is remembered under a key, or why the key may not be used; nil where nothing is remembered.
    static func find(
        _ idempotency: IdempotencyKey, databaseID: Int64, in db: Database
    ) throws -> Result<RememberedOutcome, ServiceError>? {
        let found = try SQLStatement(
            cached: """
                SELECT hash, outcome FROM idempotency WHERE database = ? AND caller = ? AND key = ? AND position = ?
                """, in: db
        ).first(
            .integer(databaseID), .text(idempotency.caller), .blob(idempotency.key),
            .integer(Int64(bitPattern: idempotency.position))
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
}

extension RememberedOutcome: WireCodable {
    /// The outcome's own fields, then 20 the format and 21 the names.
    func encode(to writer: inout WireWriter) {
        outcome.encode(to: &writer)
        writer.field(20, UInt64(1))
        for name in names { writer.field(21, name) }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var copy = reader
        outcome = try RecordOutcome(from: &copy)
        var format: UInt64 = 0
        names = []
        while let field = try reader.nextField() {
            switch field {
            case 20: format = try reader.unsigned()
            case 21: names.append(try reader.string())
            default: try reader.skip()
            }
        }
        isEarlierFormat = format == 0
        guard isEarlierFormat || names.count == outcome.performed.count else { throw .invalidValue(field: 21) }
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

extension RecordTables {
    /// What a request that comes again is told; nil where its key is not remembered, or it has none.
    ///
    /// Also for requests that are not sent any more: of the operations only names and fields' names are looked at.
    package func earlierOutcome(of command: ModifyRecords, in db: Database) throws -> RecordOutcome? {
        let rows = Rows(db: db)
        guard let schema = try rows.schema(command.zone.database),
            let id = try rows.databaseID(command.zone.database, schemaID: schema.id)
        else { return nil }
        return try earlierOutcome(of: command, databaseID: id, in: db)
    }

    func earlierOutcome(of command: ModifyRecords, databaseID: Int64, in db: Database) throws -> RecordOutcome? {
        guard let idempotency = command.idempotency,
            let found = try RememberedOutcome.find(idempotency, databaseID: databaseID, in: db)
        else { return nil }
        switch found {
        case .failure(let error): return .refused(error)
        case .success(let remembered):
            switch remembered.outcome {
            case .records: return .records(try items(of: remembered, for: command, in: db))
            case .atomicFailure: return .atomicFailure(try items(of: remembered, for: command, in: db))
            default: return remembered.outcome
            }
        }
    }

    private static let notPerformed = ServiceError(
        .badRequest, "the operation was refused when the request came first: send it again under a new Idempotency-Key")

    private func items(
        of remembered: RememberedOutcome, for command: ModifyRecords, in db: Database
    ) throws -> [ItemOutcome] {
        var bytesLeft = Batch.answerBytesMax
        return try command.operations.enumerated().map { place, operation in
            switch remembered.item(operation.recordName, at: place) {
            case nil: return .failed(Self.notPerformed, serverRecord: nil)
            case .deleted?: return .deleted
            case .saved(var saved)?:
                let record = try readable(operation.recordName, by: command, &bytesLeft, in: db)
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
                let record = try readable(operation.recordName, by: command, &bytesLeft, in: db)
                return .failed(error, serverRecord: record)
            }
        }
    }

    /// The record as it is, where the caller may read it and there is room for it.
    private func readable(
        _ name: String, by command: ModifyRecords, _ bytesLeft: inout Int, in db: Database
    ) throws -> RecordModel.Record? {
        guard bytesLeft > 0,
            case .found(let items) = try lookup([name], zone: command.zone, caller: command.caller, in: db),
            case .record(let record)? = items.first
        else { return nil }
        bytesLeft -= record.fields.sizeBytes
        return bytesLeft >= 0 ? record : nil
    }
}
