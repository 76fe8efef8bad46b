import Foundation
import GRDB
import RecordModel
import Wire

/// The answers to idempotency keys: a batch that comes twice is performed once.
///
/// Refusals are kept as well: a copy of a request that comes late must not do what the client was told had failed. Of a
/// conflict the keys are kept and not the values; a repeat is told what these keys are by then.
enum StoredAnswer {
    /// The answer that was given before, or the refusal of a key that is misused; nil for a key that is new.
    static func find(
        for command: KeyValueCommand, key: [UInt8], store: StoreRow, limits: KeyValueLimits, in db: Database
    ) throws -> KeyValueOutcome? {
        let oldest = oldestKept(store: store, limits: limits)
        let tooOld = KeyValueOutcome.refused(KeyValueRefusal(.idempotencyKeyTooOld))
        if let made = timeOfUUIDv7(key), made < oldest { return tooOld }
        guard let id = store.id else { return nil }
        let statement = try db.cachedStatement(
            sql: "SELECT time, digest, outcome FROM kv_answer WHERE store = ? AND key = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id, Data(key)]) else { return nil }
        let time: Int64 = row[0]
        if time < oldest { return tooOld }
        guard row[1] == digest(of: command) else { return .refused(KeyValueRefusal(.idempotencyKeyReused)) }
        let outcome: KeyValueOutcome
        do {
            outcome = try KeyValueOutcome(decoding: row[2] as Data)
        } catch {
            throw KeyValueCorruption(message: "a stored answer cannot be read: \(error)")
        }
        guard case .conflict(let conflicts) = outcome else { return outcome }
        let writes = conflicts.map { KeyValueCommand.Write(key: $0.key, value: nil) }
        return .conflict(
            try KeyValueBatch(writes, store: store, in: db).slots.map { slot in
                KeyValueConflict(
                    key: slot.write.key, value: try slot.current.flatMap { try KeyValueBatch.value(id: $0.id, in: db) },
                    version: slot.current?.version)
            })
    }

    /// Keeps an answer, and removes a few of this store that are past their time.
    static func save(
        _ outcome: KeyValueOutcome, for command: KeyValueCommand, key: [UInt8], store: inout StoreRow,
        limits: KeyValueLimits, in db: Database
    ) throws {
        var kept = outcome
        if case .conflict(let conflicts) = outcome {
            kept = .conflict(conflicts.map { KeyValueConflict(key: $0.key, value: nil, version: nil) })
        }
        let id = try store.save(command.store, in: db)
        let oldest = oldestKept(store: store, limits: limits)
        let removal = try db.cachedStatement(
            sql: """
                DELETE FROM kv_answer WHERE id IN
                    (SELECT id FROM kv_answer WHERE store = ? AND time < ? ORDER BY time, id LIMIT 4)
                """)
        try removal.execute(arguments: [id, oldest])
        let insert = try db.cachedStatement(
            sql: "INSERT INTO kv_answer (store, key, time, digest, outcome) VALUES (?, ?, ?, ?, ?)")
        try insert.execute(
            arguments: [id, Data(key), store.modified, digest(of: command), Data(kept.encoded())])
    }

    /// What tells one batch from another: FNV-1a over its writes. It guards a client from its own mistake only, so it
    /// need not resist an attack; the time and the device may differ between two sendings of one batch.
    static func digest(of command: KeyValueCommand) -> Int64 {
        var writer = WireWriter()
        for write in command.writes { writer.field(1) { write.encode(to: &$0) } }
        return Int64(bitPattern: fnv1a(writer.bytes))
    }

    /// Answers from before this time are forgotten.
    private static func oldestKept(store: StoreRow, limits: KeyValueLimits) -> Int64 {
        let (oldest, overflowed) = store.modified.subtractingReportingOverflow(limits.idempotencyMilliseconds)
        return overflowed ? .min : oldest
    }

    /// The milliseconds in a UUID of version 7; nil for any other key.
    private static func timeOfUUIDv7(_ key: [UInt8]) -> Int64? {
        guard key.count == 16, key[6] >> 4 == 7 else { return nil }
        return key[0..<6].reduce(0) { $0 << 8 | Int64($1) }
    }
}
