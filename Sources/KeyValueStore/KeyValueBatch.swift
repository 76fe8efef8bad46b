import Foundation
import GRDB
import RecordModel
import Wire

/// A command's writes, each beside what its key is now.
struct KeyValueBatch {
    /// A key's row without its value.
    struct Current: Hashable {
        var id: Int64
        var version: ChangeTag
        var bytes: Int
        /// How long the encoded value is; nil for a tombstone.
        var storedBytes: Int?

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
                slot.current = Current(
                    id: row[0],
                    version: ChangeTag(incarnation: UInt64(bitPattern: row[1]), sequence: UInt64(bitPattern: row[2])),
                    bytes: row[3], storedBytes: row[4])
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
            let value = slot.write.value.map { Data($0.encoded()) }
            let incarnation = Int64(bitPattern: version.incarnation)
            let sequence = Int64(bitPattern: version.sequence)
            let bytes = slot.sizeBytes ?? 0
            if let current = slot.current {
                try update.execute(
                    arguments: [
                        incarnation, sequence, store.modified, bytes, device.map(blob), value, current.id,
                    ])
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
        guard let row = try Row.fetchOne(statement, arguments: [id]), let stored = row[0] as Data? else { return nil }
        return try propertyValue(stored)
    }
}
