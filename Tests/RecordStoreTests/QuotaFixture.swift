import Authorization
import GRDB
import RecordModel
import RecordStore

/// Short words for quotas.
extension Fixture {
    /// What a record of type Note with one text takes, its name included.
    static func size(_ name: String, _ text: String) -> Int64 {
        var fields = Fields()
        fields["plain"] = .string(text)
        return Int64(name.utf8.count + encodeBody(fields).count)
    }

    func usage(_ key: DatabaseKey = annsData) throws -> DatabaseUsage {
        try queue.read { try RecordTables.usage(of: key, recount: true, in: $0) }
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
        try queue.read { try RecordTables.ledger(of: key, in: $0) }
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
