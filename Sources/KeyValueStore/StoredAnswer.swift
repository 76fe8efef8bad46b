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
        guard try row.decode(atIndex: 0) == digest(of: command) else {
            return .refused(KeyValueRefusal(.idempotencyKeyReused))
        }
        let outcome: KeyValueOutcome
        do {
            outcome = try decode(Array(row.decode(Data.self, atIndex: 1)), for: command)
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
        guard let made = UUIDv7.milliseconds(of: key) else { return false }
        let (oldest, overflowed) = time.subtractingReportingOverflow(limits.idempotencyMilliseconds)
        if !overflowed, made < oldest { return true }
        let forgotten = try Int64.fetchOne(try db.cachedStatement(sql: "SELECT forgotten FROM kv_state"))
        return made <= forgotten ?? 0
    }

    /// Keeps an answer.
    /// - Parameter time: the shard's.
    static func save(
        _ outcome: KeyValueOutcome, for command: KeyValueCommand, key: [UInt8], store: inout StoreRow, at time: Int64,
        level: FeatureLevel, in db: Database
    ) throws {
        let id = try store.save(command.store, in: db)
        try db.run(
            "INSERT INTO kv_answer (store, key, time, digest, outcome) VALUES (?, ?, ?, ?, ?)",
            [
                id, Data(key), max(time, UUIDv7.milliseconds(of: key) ?? time), digest(of: command),
                Data(encode(outcome, for: command, at: level)),
            ])
    }

    /// What tells one batch from another: FNV-1a over its writes. It guards a client from its own mistake only, so it
    /// need not resist an attack; the time and the device may differ between two sendings of one batch.
    static func digest(of command: KeyValueCommand) -> Int64 {
        var writer = WireWriter()
        for write in command.writes { writer.field(1) { write.encode(to: &$0) } }
        return Int64(bitPattern: fnv1a(writer.bytes))
    }

    /// The field that holds `Places`; those of `KeyValueOutcome` have lower numbers.
    private static let placesField = 4

    private static func encode(
        _ outcome: KeyValueOutcome, for command: KeyValueCommand, at level: FeatureLevel
    ) -> [UInt8] {
        if level >= .shortAnswers, let places = Places(outcome, for: command) {
            var writer = WireWriter()
            writer.field(placesField) { places.encode(to: &$0) }
            return writer.bytes
        }
        guard case .conflict(let conflicts) = outcome else { return outcome.encoded() }
        return KeyValueOutcome.conflict(
            conflicts.map { KeyValueConflict(key: $0.key, value: nil, version: nil) }
        ).encoded()
    }

    /// - Returns: a conflict with keys alone.
    private static func decode(_ stored: [UInt8], for command: KeyValueCommand) throws(WireError) -> KeyValueOutcome {
        var reader = WireReader(stored)
        guard try reader.nextField() == placesField else { return try KeyValueOutcome(decoding: stored) }
        return try reader.message(Places.self).outcome(for: command)
    }
}

/// What an answer says beyond the batch that it is to, which comes again with its repeat: so an answer to 1,024 writes
/// takes some tens of bytes, and at most a bit for each write more.
private struct Places: WireMessage {
    /// How many writes the batch has.
    private var count = 0
    /// Writes, a bit for each, the first in the lowest bit: those that changed something, or whose keys conflict. Empty
    /// where all did.
    private var bits: [UInt8] = []
    private var isConflict = false
    /// The version that the first of the writes made; the next ones have the following sequences.
    private var first: ChangeTag?
    private var keys = 0
    private var bytes = 0

    /// Nil for a refusal, which is short as it is.
    init?(_ outcome: KeyValueOutcome, for command: KeyValueCommand) {
        count = command.writes.count
        switch outcome {
        case .refused: return nil
        case .applied(let versions, let usage):
            mark(versions.map { $0 != nil })
            first = versions.lazy.compactMap(\.self).first
            (keys, bytes) = (usage.keys, usage.bytes)
        case .conflict(let conflicts):
            // They are in the order of the writes.
            var rest = conflicts[...]
            mark(
                command.writes.map { write in
                    guard rest.first?.key.utf8.elementsEqual(write.key.utf8) == true else { return false }
                    rest.removeFirst()
                    return true
                })
            isConflict = true
        }
    }

    private init() {}

    private mutating func mark(_ places: [Bool]) {
        guard places.contains(false) else { return }
        bits = Array(repeating: 0, count: (places.count + 7) / 8)
        for (place, isMarked) in places.enumerated() where isMarked { bits[place / 8] |= 1 << (place % 8) }
    }

    private func isMarked(_ place: Int) -> Bool { bits.isEmpty || bits[place / 8] >> (place % 8) & 1 == 1 }

    /// The answer, of which the conflicts have keys alone.
    func outcome(for command: KeyValueCommand) -> KeyValueOutcome {
        // Another batch that happens to have the same digest.
        guard command.writes.count == count, bits.isEmpty || bits.count == (count + 7) / 8 else {
            return .refused(KeyValueRefusal(.idempotencyKeyReused))
        }
        let marked = command.writes.indices.filter(isMarked)
        if isConflict {
            return .conflict(
                marked.map { KeyValueConflict(key: command.writes[$0].key, value: nil, version: nil) })
        }
        var versions = [ChangeTag?](repeating: nil, count: count)
        for (offset, place) in marked.enumerated() {
            versions[place] = first.map {
                ChangeTag(incarnation: $0.incarnation, sequence: $0.sequence + UInt64(offset))
            }
        }
        return .applied(versions: versions, usage: KeyValueUsage(keys: keys, bytes: bytes))
    }

    static var blank: Self { Places() }

    mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &count)
        try wire.field(2, &bits)
        try wire.field(3, &isConflict)
        try wire.field(4, &first)
        try wire.field(5, &keys)
        try wire.field(6, &bytes)
    }
}
