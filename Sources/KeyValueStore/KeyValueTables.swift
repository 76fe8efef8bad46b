import Foundation
package import GRDB
package import RecordModel
import Wire

/// The key-value stores of one shard, as tables of its database.
///
/// Commands change them, one at a time and in the order of the log; what each does depends on the tables and the
/// command and on nothing else, so replicas that applied the same commands have the same rows, integer ids included.
/// Reads run on any connection. Nothing is kept in memory between calls.
package enum KeyValueTables {
    /// As `expectedVersion`: the key must have no value.
    package static let absent = ChangeTag(incarnation: 0, sequence: 0)

    /// Makes the tables, empty; does nothing where they are.
    ///
    /// Names, keys and values are blobs: they are compared byte by byte, and a NUL in them ends nothing.
    /// `kv_state.sizes` is the rule by which values are counted, `forgotten` the time of the last dated key whose
    /// answer was forgotten. `kv_removed` has containers that were removed, each with the least incarnation of the
    /// stores that it may have later; from `FeatureLevel.removedContainers` on.
    package static func create(in db: Database) throws { try db.execute(sql: schema) }

    private static let schema = """
        CREATE TABLE IF NOT EXISTS kv_shard (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            incarnation INTEGER NOT NULL
        ) STRICT;
        INSERT OR IGNORE INTO kv_shard (id, incarnation) VALUES (1, 1);
        CREATE TABLE IF NOT EXISTS kv_removed (
            container BLOB PRIMARY KEY,
            incarnation INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE IF NOT EXISTS kv_state (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            sizes INTEGER NOT NULL,
            forgotten INTEGER NOT NULL
        ) STRICT;
        INSERT OR IGNORE INTO kv_state (id, sizes, forgotten) VALUES (1, 2, 0);
        CREATE TABLE IF NOT EXISTS kv_store (
            id INTEGER PRIMARY KEY,
            container BLOB NOT NULL,
            environment INTEGER NOT NULL,
            user BLOB NOT NULL,
            incarnation INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            floor INTEGER NOT NULL,
            keys INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            tombstones INTEGER NOT NULL,
            modified INTEGER NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX IF NOT EXISTS kv_store_name ON kv_store (container, environment, user);
        CREATE TABLE IF NOT EXISTS kv_pair (
            id INTEGER PRIMARY KEY,
            store INTEGER NOT NULL,
            key BLOB NOT NULL,
            incarnation INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            device BLOB,
            value BLOB
        ) STRICT;
        CREATE UNIQUE INDEX IF NOT EXISTS kv_pair_key ON kv_pair (store, key);
        CREATE UNIQUE INDEX IF NOT EXISTS kv_pair_feed ON kv_pair (store, sequence);
        CREATE INDEX IF NOT EXISTS kv_tombstone ON kv_pair (store, sequence) WHERE value IS NULL;
        CREATE INDEX IF NOT EXISTS kv_tombstone_age ON kv_pair (modified, store, sequence) WHERE value IS NULL;
        CREATE TABLE IF NOT EXISTS kv_answer (
            id INTEGER PRIMARY KEY,
            store INTEGER NOT NULL,
            key BLOB NOT NULL,
            time INTEGER NOT NULL,
            digest INTEGER NOT NULL,
            outcome BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX IF NOT EXISTS kv_answer_key ON kv_answer (store, key);
        CREATE INDEX IF NOT EXISTS kv_answer_age ON kv_answer (time, id);
        """
}

/// Rows that cannot be what was written: the database is damaged. Nothing may be answered from it; a retry does not
/// help.
package struct KeyValueCorruption: Error, Hashable, Sendable {
    /// What was wrong.
    package var message: String
}

extension KeyValueTables {
    /// Performs a command in the transaction that is open on this connection.
    ///
    /// A pure function of the tables and the command. Whatever may be wrong with the command is an outcome; what is
    /// thrown is `DatabaseError` or `KeyValueCorruption`, after which the caller must stop applying and not skip the
    /// command.
    /// - Parameter time: the shard's, which the command moved already (`ShardClock`): what is forgotten is old by this.
    package static func apply(
        _ command: KeyValueCommand, at time: Int64, level: FeatureLevel = FeatureLevel.supported.upperBound,
        limits: KeyValueLimits = .standard, in db: Database
    ) throws -> KeyValueOutcome {
        if let refusal = limits.problem(with: command) { return .refused(refusal) }
        let outcome = try answer(to: command, at: time, level: level, limits: limits, in: db)
        try forgetOld(at: time, limits: limits, in: db)
        return outcome
    }

    private static func answer(
        to command: KeyValueCommand, at time: Int64, level: FeatureLevel, limits: KeyValueLimits, in db: Database
    ) throws -> KeyValueOutcome {
        var store = try StoreRow.find(command.store, in: db)
        store.modified = ShardClock.stamp(of: command.time, notBefore: store.modified)
        guard let key = command.idempotencyKey else {
            return try perform(command, on: &store, limits: limits, in: db)
        }
        if let earlier = try StoredAnswer.find(for: command, key: key, store: store, limits: limits, in: db) {
            return earlier
        }
        let outcome = try perform(command, on: &store, limits: limits, in: db)
        try StoredAnswer.save(outcome, for: command, key: key, store: &store, at: time, level: level, in: db)
        return outcome
    }

    private static func perform(
        _ command: KeyValueCommand, on store: inout StoreRow, limits: KeyValueLimits, in db: Database
    ) throws -> KeyValueOutcome {
        let batch = try KeyValueBatch(command.writes, store: store, in: db)
        let conflicts = try batch.conflicts(bytesMax: limits.conflictBytesMax, in: db)
        if !conflicts.isEmpty { return .conflict(conflicts) }
        let before = store.usage
        let after = batch.usage(after: before)
        if let refusal = limits.problem(before: before, after: after) { return .refused(refusal) }
        guard batch.changesAnything else {
            return .applied(versions: Array(repeating: nil, count: command.writes.count), usage: before)
        }
        // A store's id is given with its first row, which the pairs refer to.
        let id = try store.id ?? store.save(command.store, in: db)
        let versions = try batch.write(into: &store, id: id, device: command.device, in: db)
        try Invariant.check(
            versions.count == command.writes.count,
            "a batch of \(command.writes.count) writes has \(versions.count) versions")
        store.usage = after
        if store.tombstones > limits.tombstonesMax {
            try forgetOlderTombstones(of: &store, id: id, keeping: limits.tombstonesMax / 2, in: db)
        }
        _ = try store.save(command.store, in: db)
        return .applied(versions: versions, usage: after)
    }

    /// Removes all but the last tombstones of a store and raises its floor to the last one removed.
    private static func forgetOlderTombstones(
        of store: inout StoreRow, id: Int64, keeping count: Int, in db: Database
    ) throws {
        let last = try db.cachedStatement(
            sql: """
                SELECT sequence FROM kv_pair WHERE store = ? AND value IS NULL ORDER BY sequence DESC LIMIT 1 OFFSET ?
                """)
        guard let sequence = try Int64.fetchOne(last, arguments: [id, count]) else { return }
        try db.run("DELETE FROM kv_pair WHERE store = ? AND value IS NULL AND sequence <= ?", [id, sequence])
        let removed = db.changesCount
        try Invariant.check(
            removed <= store.tombstones - count,
            "store \(id) counts \(store.tombstones) tombstones, and \(removed) before the last \(count) were removed")
        store.tombstones -= removed
        store.floor = UInt64(bitPattern: sequence)
    }
}

extension KeyValueLimits {
    /// What is wrong with a command whatever the store holds; nil if nothing.
    ///
    /// The edge asks before it sends a command on, so that what can only be refused is not logged; apply asks again.
    package func problem(with command: KeyValueCommand) -> KeyValueRefusal? {
        problemWithNames(of: command) ?? problemWithWrites(of: command)
    }

    private func problemWithNames(of command: KeyValueCommand) -> KeyValueRefusal? {
        let names = [("container", command.store.container), ("user", command.store.user)]
        for (what, name) in names where !(1...Limits.nameLengthMax).contains(name.utf8.count) {
            return KeyValueRefusal(.name, key: what, actual: name.utf8.count, max: Limits.nameLengthMax)
        }
        if let device = command.device, !(1...Limits.nameLengthMax).contains(device.utf8.count) {
            return KeyValueRefusal(.name, key: "device", actual: device.utf8.count, max: Limits.nameLengthMax)
        }
        if let key = command.idempotencyKey, !(1...64).contains(key.count) {
            return KeyValueRefusal(.name, key: "idempotency key", actual: key.count, max: 64)
        }
        return nil
    }

    /// A batch whose own values exceed the limit of a store fits no store.
    private func problemWithWrites(of command: KeyValueCommand) -> KeyValueRefusal? {
        if command.writes.count > writesMax {
            return KeyValueRefusal(.writes, actual: command.writes.count, max: writesMax)
        }
        // By bytes, as the tables compare: Swift takes two spellings of one letter for the same key.
        var seen: Set<[UInt8]> = []
        var sum = KeyValueUsage()
        for write in command.writes {
            let length = write.key.utf8.count
            guard (1...keyBytesMax).contains(length) else {
                return KeyValueRefusal(.keyBytes, key: write.key, actual: length, max: keyBytesMax)
            }
            guard seen.insert(Array(write.key.utf8)).inserted else {
                return KeyValueRefusal(.duplicateKey, key: write.key, actual: 2, max: 1)
            }
            guard let value = write.value else { continue }
            if let refusal = problem(with: value, of: write.key) { return refusal }
            sum.keys += 1
            sum.bytes += value.sizeBytes
        }
        return problem(before: KeyValueUsage(), after: sum)
    }

    private func problem(with value: PropertyValue, of key: String) -> KeyValueRefusal? {
        if value.depth > PropertyValue.depthMax {
            return KeyValueRefusal(.valueDepth, key: key, actual: value.depth, max: PropertyValue.depthMax)
        }
        if value.memberCount > valueMembersMax {
            return KeyValueRefusal(.valueMembers, key: key, actual: value.memberCount, max: valueMembersMax)
        }
        if value.sizeBytes > valueBytesMax {
            return KeyValueRefusal(.valueBytes, key: key, actual: value.sizeBytes, max: valueBytesMax)
        }
        return nil
    }

    /// The limit that a store would exceed after a batch; nil if it stays within all, or the batch does not make it
    /// worse. Only the final state counts, so a batch may delete and set in any order.
    func problem(before: KeyValueUsage, after: KeyValueUsage) -> KeyValueRefusal? {
        if after.keys > keysMax, after.keys > before.keys {
            return KeyValueRefusal(.keys, actual: after.keys, max: keysMax)
        }
        if after.bytes > storeBytesMax, after.bytes > before.bytes {
            return KeyValueRefusal(.storeBytes, actual: after.bytes, max: storeBytesMax)
        }
        return nil
    }
}

/// A command's writes, each beside what its key is now.
struct KeyValueBatch {
    /// A key's row without its value.
    struct Current: Hashable {
        var id: Int64
        var version: ChangeTag
        var bytes: Int
        /// How long the encoded value is; nil for a tombstone.
        var storedBytes: Int?

        func check(in store: StoreRow) throws(InvariantViolation) {
            try Invariant.check(
                version.sequence > 0 && version.sequence <= store.sequence,
                "pair \(id) changed at \(version.sequence), and its store is at \(store.sequence)")
            try Invariant.check(
                version.incarnation <= store.incarnation,
                "pair \(id) is of incarnation \(version.incarnation), and its store of \(store.incarnation)")
            try Invariant.check(
                bytes >= 0 && (isLive || bytes == 0), "pair \(id) counts \(bytes) bytes, stored as \(storedBytes ?? 0)")
            try Invariant.check(
                isLive || store.tombstones > 0, "pair \(id) is a tombstone, and its store counts none of them")
            try Invariant.check(
                !isLive || store.usage.keys > 0 && bytes <= store.usage.bytes,
                "pair \(id) has \(bytes) bytes, and its store \(store.usage.bytes) in \(store.usage.keys) keys")
        }

        /// Whether the key has a value; if not, the row is a tombstone.
        var isLive: Bool { storedBytes != nil }
    }

    struct Slot {
        var write: KeyValueCommand.Write
        /// Of the new value; nil for a deletion.
        var sizeBytes: Int?
        var current: Current?

        var isLive: Bool { current?.isLive ?? false }
        /// Whether there is anything to do: deleting what is not there is not.
        var changesAnything: Bool { write.value != nil || isLive }

        /// Whether the key is what the writer expects it to be.
        var isAsExpected: Bool {
            guard let expected = write.expectedVersion else { return true }
            if expected == KeyValueTables.absent { return !isLive }
            return expected == current?.version
        }
    }

    private(set) var slots: [Slot] = []

    init(_ writes: [KeyValueCommand.Write], store: StoreRow, in db: Database) throws {
        slots.reserveCapacity(writes.count)
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, incarnation, sequence, bytes, length(value) FROM kv_pair WHERE store = ? AND key = ?
                """)
        for write in writes {
            var slot = Slot(write: write, sizeBytes: write.value?.sizeBytes, current: nil)
            if let id = store.id, let row = try Row.fetchOne(statement, arguments: [id, blob(write.key)]) {
                let current = try Current(
                    id: row.decode(atIndex: 0), version: ChangeTag(row, at: 1), bytes: row.decode(atIndex: 3),
                    storedBytes: row.decode(atIndex: 4))
                try current.check(in: store)
                slot.current = current
            }
            slots.append(slot)
        }
    }

    var changesAnything: Bool { slots.contains(where: \.changesAnything) }

    /// The keys that are not as their writers expect, with what they hold.
    func conflicts(bytesMax: Int, in db: Database) throws -> [KeyValueConflict] {
        try Self.conflicts(slots.filter { !$0.isAsExpected }, bytesMax: bytesMax, in: db)
    }

    /// What keys hold: of the first ones, as many as have no more than `bytesMax` bytes together, and at least one.
    static func conflicts(_ slots: [Slot], bytesMax: Int, in db: Database) throws -> [KeyValueConflict] {
        var conflicts: [KeyValueConflict] = []
        var bytes = 0
        for slot in slots {
            bytes += slot.current?.storedBytes ?? 0
            if bytes > bytesMax, !conflicts.isEmpty { break }
            conflicts.append(
                KeyValueConflict(
                    key: slot.write.key, value: try slot.current.flatMap { try value(id: $0.id, in: db) },
                    version: slot.current?.version))
        }
        return conflicts
    }

    /// What the store will hold, from what it holds.
    func usage(after usage: KeyValueUsage) -> KeyValueUsage {
        slots.reduce(into: usage) { usage, slot in
            usage.keys += (slot.write.value == nil ? 0 : 1) - (slot.isLive ? 1 : 0)
            usage.bytes += (slot.sizeBytes ?? 0) - (slot.current?.bytes ?? 0)
        }
    }

    /// Writes the rows, each under a sequence of its own, and returns the new versions.
    func write(into store: inout StoreRow, id: Int64, device: String?, in db: Database) throws -> [ChangeTag?] {
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO kv_pair (store, key, incarnation, sequence, modified, bytes, device, value)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """)
        let update = try db.cachedStatement(
            sql: """
                UPDATE kv_pair SET incarnation = ?, sequence = ?, modified = ?, bytes = ?, device = ?, value = ?
                WHERE id = ?
                """)
        var versions: [ChangeTag?] = []
        versions.reserveCapacity(slots.count)
        for slot in slots {
            guard slot.changesAnything else {
                versions.append(nil)
                continue
            }
            store.sequence += 1
            let version = ChangeTag(incarnation: store.incarnation, sequence: store.sequence)
            versions.append(version)
            let (incarnation, sequence) = (Int64(bitPattern: version.incarnation), Int64(bitPattern: version.sequence))
            let value = slot.write.value.map { Data($0.encoded()) }
            let bytes = slot.sizeBytes ?? 0
            if let current = slot.current {
                try update.execute(
                    arguments: [incarnation, sequence, store.modified, bytes, device.map(blob), value, current.id])
                try Invariant.check(db.changesCount == 1, "pair \(current.id) has \(db.changesCount) rows")
            } else {
                try insert.execute(
                    arguments: [
                        id, blob(slot.write.key), incarnation, sequence, store.modified, bytes, device.map(blob), value,
                    ])
            }
            let wasTombstone = slot.current.map { !$0.isLive } ?? false
            store.tombstones += (value == nil ? 1 : 0) - (wasTombstone ? 1 : 0)
        }
        return versions
    }

    /// The value of a row; nil for a tombstone.
    private static func value(id: Int64, in db: Database) throws -> PropertyValue? {
        let statement = try db.cachedStatement(sql: "SELECT value FROM kv_pair WHERE id = ?")
        guard let row = try Row.fetchOne(statement, arguments: [id]),
            let stored = try row.decode(Data?.self, atIndex: 0)
        else { return nil }
        return try propertyValue(stored)
    }
}
