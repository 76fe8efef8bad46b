import Foundation
package import GRDB
import RecordModel
import Wire

extension KeyValueTables {
    /// Begins another life of every store of the shard, after a restore: tokens and versions that were given before,
    /// and may be of changes that the restore undid, are told from those given from now on.
    ///
    /// - Returns: false, and nothing is changed, if the value is not above every incarnation the shard has had.
    package static func startNewIncarnation(_ value: UInt64, in db: Database) throws -> Bool {
        guard value > (try StoreRow.shardIncarnation(in: db)) else { return false }
        let column = Int64(bitPattern: value)
        try db.execute(sql: "UPDATE kv_shard SET incarnation = ?", arguments: [column])
        try db.execute(sql: "UPDATE kv_store SET incarnation = ?", arguments: [column])
        return true
    }

    /// Brings tables that an earlier version made to what `create` makes; does nothing where they are.
    package static func upgrade(in db: Database) throws {
        guard try !db.tableExists("kv_state") else { return }
        try recount(in: db)
        try db.execute(sql: "DROP INDEX IF EXISTS kv_answer_store_age")
        try create(in: db)
    }

    /// Counts every value by the rule of `PropertyValue.sizeBytes`: empty members were free once.
    private static func recount(in db: Database) throws {
        let update = try db.cachedStatement(sql: "UPDATE kv_pair SET bytes = ? WHERE id = ?")
        var last: Int64 = 0
        while true {
            let rows = try Row.fetchAll(
                db, sql: "SELECT id, value FROM kv_pair WHERE id > ? AND value IS NOT NULL ORDER BY id LIMIT 16",
                arguments: [last])
            for row in rows {
                last = row[0]
                try update.execute(arguments: [try propertyValue(row[1]).sizeBytes, last])
            }
            if rows.isEmpty { break }
        }
        try db.execute(
            sql: """
                UPDATE kv_store
                SET bytes = (SELECT coalesce(sum(bytes), 0) FROM kv_pair WHERE kv_pair.store = kv_store.id)
                """)
    }

    /// Answers are kept for so much longer than they count, as nodes' clocks differ.
    private static let clockLeewayMilliseconds: Int64 = 3_600_000

    /// Forgets a few rows of any store of the shard that are past their time: part of every command, so that it is the same
    /// on every replica, takes no turn of its own, and keeps up with whatever makes such rows.
    /// - Parameter time: the shard's.
    static func forgetOld(at time: Int64, limits: KeyValueLimits, in db: Database) throws {
        let deleted = time.subtractingReportingOverflow(limits.tombstoneMilliseconds)
        let kept = limits.idempotencyMilliseconds.addingReportingOverflow(clockLeewayMilliseconds)
        let answered = time.subtractingReportingOverflow(kept.partialValue)
        if !deleted.overflow { try forgetTombstones(before: deleted.partialValue, limit: limits.forgottenMax, in: db) }
        if !kept.overflow, !answered.overflow {
            try forgetAnswers(before: answered.partialValue, limit: limits.forgottenMax, in: db)
        }
    }

    /// Forgets deletions from before a time and raises the floor of their stores to the last one forgotten.
    /// - Returns: how many, at most `limit`.
    @discardableResult
    static func forgetTombstones(before time: Int64, limit: Int, in db: Database) throws -> Int {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, store, sequence FROM kv_pair WHERE value IS NULL AND modified < ?
                ORDER BY modified, store, sequence LIMIT ?
                """)
        let rows = try Row.fetchAll(statement, arguments: [time, limit])
        if rows.isEmpty { return 0 }
        let removal = try db.cachedStatement(sql: "DELETE FROM kv_pair WHERE id = ?")
        let floor = try db.cachedStatement(
            sql: "UPDATE kv_store SET tombstones = tombstones - 1, floor = max(floor, ?) WHERE id = ?")
        for row in rows {
            try removal.execute(arguments: [row[0] as Int64])
            try floor.execute(arguments: [row[2] as Int64, row[1] as Int64])
        }
        return rows.count
    }

    /// Forgets answers to idempotency keys from before a time. A key that is no later than one of them is too old from
    /// now on, whatever clocks say: a batch is never performed twice because its answer was forgotten early.
    /// - Returns: how many, at most `limit`.
    @discardableResult
    static func forgetAnswers(before time: Int64, limit: Int, in db: Database) throws -> Int {
        let statement = try db.cachedStatement(
            sql: "SELECT id, key FROM kv_answer WHERE time < ? ORDER BY time, id LIMIT ?")
        let rows = try Row.fetchAll(statement, arguments: [time, limit])
        if rows.isEmpty { return 0 }
        let removal = try db.cachedStatement(sql: "DELETE FROM kv_answer WHERE id = ?")
        for row in rows { try removal.execute(arguments: [row[0] as Int64]) }
        if let last = rows.compactMap({ StoredAnswer.timeOfUUIDv7(Array($0[1] as Data)) }).max() {
            let floor = try db.cachedStatement(sql: "UPDATE kv_state SET forgotten = max(forgotten, ?)")
            try floor.execute(arguments: [last])
        }
        return rows.count
    }

    /// Gives every row to a hash function, in one order on every replica. Replicas that applied the same commands
    /// give it the same bytes.
    package static func stateHash(in db: Database, into hash: (UnsafeRawBufferPointer) -> Void) throws {
        let queries = [
            "SELECT id, incarnation FROM kv_shard ORDER BY id", "SELECT id, sizes, forgotten FROM kv_state ORDER BY id",
            """
            SELECT id, container, environment, user, incarnation, sequence, floor, keys, bytes, tombstones, modified
            FROM kv_store ORDER BY id
            """,
            """
            SELECT id, store, key, incarnation, sequence, modified, bytes, device, value FROM kv_pair
            ORDER BY store, sequence
            """,
            "SELECT id, store, key, time, digest, outcome FROM kv_answer ORDER BY id",
        ]
        for (table, sql) in queries.enumerated() {
            let rows = try Row.fetchCursor(try db.cachedStatement(sql: sql))
            while let row = try rows.next() {
                var writer = WireWriter(capacity: 256)
                writer.varint(UInt64(table))
                for (_, value) in row { writer.column(value) }
                writer.bytes.withUnsafeBytes(hash)
            }
        }
    }
}

extension WireWriter {
    /// A column's value such that different ones have different bytes.
    fileprivate mutating func column(_ value: DatabaseValue) {
        switch value.storage {
        case .null: varint(0)
        case .int64(let number): field(1, signed: number)
        case .double(let number): field(2, double: number)
        case .string(let text): field(3, text)
        case .blob(let data): field(4, data)
        }
    }
}
