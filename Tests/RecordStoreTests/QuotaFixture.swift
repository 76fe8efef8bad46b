import Authorization
import GRDB
import RecordModel
import RecordStore

/// Short words for quotas.
extension Fixture {
    /// What a record of type Note with one text takes, its name and its index rows included.
    static func size(_ name: String, _ text: String, by user: String = "_ann") -> Int64 {
        var fields = Fields()
        fields["plain"] = .string(text)
        return 64 + Int64(name.utf8.count + encodeBody(fields).count)
            + IndexBytes(name: name, creator: user, modifier: user).of(fields, type: note)
    }

    /// What is left of a deleted record takes.
    static func tombstone(_ name: String) -> Int64 { 64 + Int64(name.utf8.count) }

    func usage(_ key: DatabaseKey = annsData) throws -> DatabaseUsage {
        try queue.read { try UsageCounts.database(key, recount: true, in: $0) }
    }

    /// What is used, where the counters equal a recount; else nil.
    func used(_ key: DatabaseKey = annsData) throws -> QuotaAmounts? {
        let usage = try usage(key)
        guard usage.recount == usage.used, usage.zones.allSatisfy({ $0.recount == $0.used }) else { return nil }
        return usage.used
    }

    @discardableResult
    func credit(_ bytes: Int64, _ records: Int64 = 1000, epoch: UInt64 = 1, of key: DatabaseKey = annsData) throws
        -> RecordOutcome
    {
        let cumulative = QuotaAmounts(bytes: bytes, records: records)
        return try apply(.quota(.credit(QuotaCredit(database: key, cumulative: cumulative, epoch: epoch))))
    }

    func save(
        _ zone: ZoneKey, final: Bool = false, atomic: Bool = false, epoch: UInt64 = 1, limit: QuotaAmounts = .unlimited,
        idempotency: IdempotencyKey? = nil, _ operations: RecordChange...
    ) throws -> RecordOutcome {
        try apply(
            .modifyRecords(
                ModifyRecords(
                    zone: zone, schemaVersion: 1, caller: Self.ann, time: 1000, isAtomic: atomic,
                    idempotency: idempotency, quota: QuotaTerms(epoch: epoch, isFinal: final, limit: limit),
                    operations: operations)))
    }

    func ledger(_ key: DatabaseKey = annsData) throws -> LedgerState {
        try queue.read { try LedgerState(of: key, in: $0) }
    }
}

/// What index rows count for, told naively: 16 bytes for each, and its key.
struct IndexBytes {
    var name: String
    var creator: String
    var modifier: String

    func of(_ fields: Fields, type: RecordType) -> Int64 {
        type.fields.reduce(0) { $0 + of($1, fields) }
    }

    /// The rows of one field.
    func of(_ field: FieldDefinition, _ fields: Fields) -> Int64 {
        if field.indexes.isEmpty || field.type.isEncrypted { return 0 }
        switch field.name {
        case "___recordID": return 16 + Int64(name.utf8.count)
        case "___createTime", "___modTime", "___etag": return 16 + 8
        case "___createdBy": return 16 + Int64(creator.utf8.count)
        case "___modifiedBy": return 16 + Int64(modifier.utf8.count)
        default: break
        }
        let values: [FieldValue] =
            switch fields[field.name] {
            case nil: []
            case .list(_, let members)?: members
            case let value?: [value]
            }
        let keys = Set(values.map(key))
        return keys.isEmpty ? 16 : keys.reduce(0) { $0 + 16 + $1.size }
    }

    private struct Key: Hashable {
        var text: [UInt8] = []
        var number = 0.0
        var size: Int64
    }

    private func key(_ value: FieldValue) -> Key {
        switch value {
        case .string(let text): Key(text: Array(text.utf8), size: Int64(text.utf8.count))
        case .bytes(let bytes): Key(text: bytes, size: Int64(bytes.count))
        case .reference(let reference):
            Key(text: Array(reference.recordName.utf8), size: Int64(reference.recordName.utf8.count))
        case .int64(let number), .timestamp(let number): Key(number: Double(number), size: 8)
        case .double(let number): Key(number: number, size: 8)
        default: Key(size: 0)
        }
    }
}

extension RecordChange {
    /// A record of type Note with one text.
    static func note(_ kind: Kind, _ name: String, _ text: String = "") -> Self {
        make(kind, name, [("plain", .string(text))])
    }
}

extension RecordOutcome {
    var need: QuotaNeed? { if case .needsAllotment(let need) = self { need } else { nil } }
    var quota: QuotaOutcome? { if case .quota(let outcome) = self { outcome } else { nil } }
}
