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
        guard let row = try row(key, of: store, in: db) else {
            let isTooOld = try isTooOld(key, at: command.time, limits: limits, in: db)
            return isTooOld ? .refused(KeyValueRefusal(.idempotencyKeyTooOld)) : nil
        }
        guard row[0] == digest(of: command) else { return .refused(KeyValueRefusal(.idempotencyKeyReused)) }
        let outcome: KeyValueOutcome
        do {
            outcome = try KeyValueOutcome(decoding: row[1] as Data)
        } catch {
            throw KeyValueCorruption(message: "a stored answer cannot be read: \(error)")
        }
        guard case .conflict(let conflicts) = outcome else { return outcome }
        let batch = try KeyValueBatch(
            conflicts.map { KeyValueCommand.Write(key: $0.key, value: nil) }, store: store, in: db)
        return .conflict(try KeyValueBatch.conflicts(batch.slots, bytesMax: limits.conflictBytesMax, in: db))
    }

    private static func row(_ key: [UInt8], of store: StoreRow, in db: Database) throws -> Row? {
        guard let id = store.id else { return nil }
        let statement = try db.cachedStatement(sql: "SELECT digest, outcome FROM kv_answer WHERE store = ? AND key = ?")
        return try Row.fetchOne(statement, arguments: [id, Data(key)])
    }

    /// Whether the answer to a key may have been forgotten: by its age, or because that of a later key was.
    private static func isTooOld(
        _ key: [UInt8], at time: Int64, limits: KeyValueLimits, in db: Database
    ) throws -> Bool {
        guard let made = timeOfUUIDv7(key) else { return false }
        let (oldest, overflowed) = time.subtractingReportingOverflow(limits.idempotencyMilliseconds)
        if !overflowed, made < oldest { return true }
        let forgotten = try Int64.fetchOne(try db.cachedStatement(sql: "SELECT forgotten FROM kv_state"))
        return made <= forgotten ?? 0
    }

    /// Keeps an answer.
    /// - Parameter time: the shard's.
    static func save(
        _ outcome: KeyValueOutcome, for command: KeyValueCommand, key: [UInt8], store: inout StoreRow, at time: Int64,
        in db: Database
    ) throws {
        var kept = outcome
        if case .conflict(let conflicts) = outcome {
            kept = .conflict(conflicts.map { KeyValueConflict(key: $0.key, value: nil, version: nil) })
        }
        let id = try store.save(command.store, in: db)
        let insert = try db.cachedStatement(
            sql: "INSERT INTO kv_answer (store, key, time, digest, outcome) VALUES (?, ?, ?, ?, ?)")
        try insert.execute(
            arguments: [
                id, Data(key), max(time, timeOfUUIDv7(key) ?? time), digest(of: command), Data(kept.encoded()),
            ])
    }

    /// What tells one batch from another: FNV-1a over its writes. It guards a client from its own mistake only, so it
    /// need not resist an attack; the time and the device may differ between two sendings of one batch.
    static func digest(of command: KeyValueCommand) -> Int64 {
        var writer = WireWriter()
        for write in command.writes { writer.field(1) { write.encode(to: &$0) } }
        return Int64(bitPattern: fnv1a(writer.bytes))
    }

    /// The milliseconds in a UUID of version 7; nil for any other key.
    static func timeOfUUIDv7(_ key: [UInt8]) -> Int64? {
        guard key.count == 16, key[6] >> 4 == 7 else { return nil }
        return key[0..<6].reduce(0) { $0 << 8 | Int64($1) }
    }
}
