import Foundation
package import GRDB
package import RecordModel
import Wire

extension KeyValueTables {
    /// Begins another life of every store of the shard, after a restore: tokens and versions that were given before,
    /// and may be of changes that the restore undid, are told from those given from now on.
    ///
    /// - Returns: false, and nothing is changed, if the value is not above every incarnation the shard has had.
    package static func startNewIncarnation(_ value: UInt64, in db: Database) throws -> Bool {
        guard try value > newestIncarnation(in: db) else { return false }
        let column = Int64(bitPattern: value)
        try db.execute(sql: "UPDATE kv_shard SET incarnation = ?", arguments: [column])
        try Invariant.check(db.changesCount == 1, "the shard has \(db.changesCount) incarnations")
        try db.execute(sql: "UPDATE kv_store SET incarnation = ?", arguments: [column])
        return true
    }

    /// The greatest incarnation of all stores here, and of those that are to come.
    package static func newestIncarnation(in db: Database) throws -> UInt64 {
        let removed = try Int64.fetchOne(db, sql: "SELECT max(incarnation) FROM kv_removed") ?? 0
        return max(try StoreRow.shardIncarnation(in: db), UInt64(bitPattern: removed))
    }

    /// Brings tables that an earlier version made to what `create` makes; does nothing where they are.
    package static func upgrade(in db: Database) throws {
        if try !db.tableExists("kv_state") {
            try recount(in: db)
            try db.execute(sql: "DROP INDEX IF EXISTS kv_answer_store_age")
        } else if try db.tableExists("kv_removed") {
            return
        }
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
                last = try row.decode(atIndex: 0)
                try update.execute(arguments: [try propertyValue(row.decode(atIndex: 1)).sizeBytes, last])
            }
            if rows.isEmpty { break }
        }
        try db.execute(
            sql: """
                UPDATE kv_store
                SET bytes = (SELECT coalesce(sum(bytes), 0) FROM kv_pair WHERE kv_pair.store = kv_store.id)
                """)
    }

    /// Answers are kept this much longer than they count, as nodes' clocks differ.
    private static let clockLeewayMilliseconds: Int64 = 3_600_000

    /// Forgets a few rows of any store of the shard that are past their time: part of every command, so that it is the
    /// same on every replica, takes no turn of its own, and keeps up with whatever makes such rows.
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
        for row in rows {
            let (id, store, sequence): (Int64, Int64, Int64) = try (
                row.decode(atIndex: 0), row.decode(atIndex: 1), row.decode(atIndex: 2)
            )
            try db.run("DELETE FROM kv_pair WHERE id = ?", [id])
            try db.run(
                """
                UPDATE kv_store SET tombstones = tombstones - 1, floor = max(floor, ?1)
                WHERE id = ?2 AND tombstones > 0 AND sequence >= ?1
                """, [sequence, store])
            try Invariant.check(
                db.changesCount == 1,
                "store \(store) counts no tombstone or is not that far, and one at \(sequence) goes")
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
        for row in rows { try db.run("DELETE FROM kv_answer WHERE id = ?", [try row.decode(Int64.self, atIndex: 0)]) }
        if let last = rows.compactMap({ UUIDv7.milliseconds(of: Array($0[1] as Data)) }).max() {
            try db.run("UPDATE kv_state SET forgotten = max(forgotten, ?)", [last])
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
            "SELECT container, incarnation FROM kv_removed ORDER BY container",
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

/// The row of one store: its counters, which are read once and written once a command.
struct StoreRow: Hashable {
    /// Nil until the store's first row was written.
    var id: Int64?
    var incarnation: UInt64
    /// Of the last change; 0 before the first.
    var sequence: UInt64 = 0
    /// Of the last tombstone that was removed: a token from before it may have missed a deletion.
    var floor: UInt64 = 0
    var usage = KeyValueUsage()
    var tombstones = 0
    /// The stamp of the last command.
    var modified: Int64 = .min

    /// The store's row, or the one it would begin with.
    static func find(_ key: StoreKey, in db: Database) throws -> StoreRow {
        let statement = try db.cachedStatement(
            sql: """
                SELECT id, incarnation, sequence, floor, keys, bytes, tombstones, modified FROM kv_store
                WHERE container = ? AND environment = ? AND user = ?
                """)
        let row = try Row.fetchOne(
            statement, arguments: [blob(key.container), key.environment.column, blob(key.user)])
        guard let row else { return StoreRow(id: nil, incarnation: try incarnation(ofNew: key, in: db)) }
        let store = try StoreRow(
            id: row.decode(atIndex: 0), incarnation: UInt64(bitPattern: row.decode(atIndex: 1)),
            sequence: UInt64(bitPattern: row.decode(atIndex: 2)), floor: UInt64(bitPattern: row.decode(atIndex: 3)),
            usage: KeyValueUsage(keys: row.decode(atIndex: 4), bytes: row.decode(atIndex: 5)),
            tombstones: row.decode(atIndex: 6), modified: row.decode(atIndex: 7))
        try store.check()
        return store
    }

    /// What holds of every store, before and after a command.
    private func check() throws(InvariantViolation) {
        let name = id.map { "\($0)" } ?? "new"
        try Invariant.check(incarnation > 0, "store \(name) has incarnation \(incarnation)")
        try Invariant.check(
            sequence <= UInt64(Int64.max) && floor <= sequence,
            "store \(name) forgot deletions up to \(floor), and is at \(sequence)")
        try Invariant.check(
            usage.keys >= 0 && usage.bytes >= 0, "store \(name) holds \(usage.keys) keys of \(usage.bytes) bytes")
        try Invariant.check(
            usage.keys > 0 || usage.bytes == 0, "store \(name) has no key, and counts \(usage.bytes) bytes")
        try Invariant.check(tombstones >= 0, "store \(name) counts \(tombstones) tombstones")
        // Each row of the store has a sequence of its own.
        try Invariant.check(
            UInt64(usage.keys) + UInt64(tombstones) <= sequence,
            "store \(name) has \(usage.keys) keys and \(tombstones) tombstones, and is at \(sequence)")
    }

    /// The incarnation that a store is born with: greater than any that its container had before it was removed.
    private static func incarnation(ofNew key: StoreKey, in db: Database) throws -> UInt64 {
        let statement = try db.cachedStatement(sql: "SELECT incarnation FROM kv_removed WHERE container = ?")
        let removed = try Int64.fetchOne(statement, arguments: [blob(key.container)]) ?? 0
        return max(UInt64(bitPattern: removed), try shardIncarnation(in: db))
    }

    /// The incarnation that new stores are born with.
    static func shardIncarnation(in db: Database) throws -> UInt64 {
        let statement = try db.cachedStatement(sql: "SELECT incarnation FROM kv_shard WHERE id = 1")
        guard let value = try Int64.fetchOne(statement) else { throw KeyValueCorruption(message: "kv_shard is empty") }
        try Invariant.check(value != 0, "the shard's stores are born with incarnation 0")
        return UInt64(bitPattern: value)
    }

    /// Writes the row; a new one gets its id.
    mutating func save(_ key: StoreKey, in db: Database) throws -> Int64 {
        try check()
        if let id {
            try db.run(
                """
                UPDATE kv_store SET sequence = ?, floor = ?, keys = ?, bytes = ?, tombstones = ?, modified = ?
                WHERE id = ?
                """,
                [
                    Int64(bitPattern: sequence), Int64(bitPattern: floor), usage.keys, usage.bytes, tombstones,
                    modified, id,
                ])
            try Invariant.check(db.changesCount == 1, "store \(id) has \(db.changesCount) rows")
            return id
        }
        try db.run(
            """
            INSERT INTO kv_store
                (container, environment, user, incarnation, sequence, floor, keys, bytes, tombstones, modified)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                blob(key.container), key.environment.column, blob(key.user), Int64(bitPattern: incarnation),
                Int64(bitPattern: sequence), Int64(bitPattern: floor), usage.keys, usage.bytes, tombstones, modified,
            ])
        id = db.lastInsertedRowID
        return db.lastInsertedRowID
    }
}

extension Environment {
    /// As the tables have it.
    var column: Int64 { self == .production ? 1 : 0 }
}

extension Database {
    /// Runs a constant statement.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }
}

/// Text as a blob.
func blob(_ text: String) -> Data { Data(text.utf8) }

/// A blob as text.
func text(_ blob: Data) throws -> String {
    guard let text = String(validating: blob, as: UTF8.self) else {
        throw KeyValueCorruption(message: "a name or key is not UTF-8")
    }
    return text
}

extension ChangeTag {
    /// A stored version: an incarnation, and a sequence in the column after it.
    init(_ row: Row, at column: Int) throws {
        self.init(
            incarnation: UInt64(bitPattern: try row.decode(atIndex: column)),
            sequence: UInt64(bitPattern: try row.decode(atIndex: column + 1)))
    }
}

/// A stored value.
func propertyValue(_ blob: Data) throws -> PropertyValue {
    do {
        return try PropertyValue(decoding: blob)
    } catch {
        throw KeyValueCorruption(message: "a stored value cannot be read: \(error)")
    }
}

extension KeyValueTables {
    /// Removes a part of a container's stores; repeated until nothing is left of them. A store that is made later has a
    /// greater incarnation than any that went, and those of other containers keep theirs: below the level, stores that
    /// are still empty do not.
    /// - Parameter rowsMax: rows that one part removes.
    /// - Returns: whether nothing is left.
    package static func removeContainer(
        _ container: String, rowsMax: Int = 500, level: FeatureLevel = FeatureLevel.supported.upperBound,
        in db: Database
    ) throws -> Bool {
        let find = try db.cachedStatement(
            sql: "SELECT id, incarnation FROM kv_store WHERE container = ? ORDER BY environment, user LIMIT 1")
        var budget = rowsMax
        while let row = try Row.fetchOne(find, arguments: [blob(container)]) {
            let (id, incarnation): (Int64, Int64) = try (row.decode(atIndex: 0), row.decode(atIndex: 1))
            for (table, order) in [("kv_pair", "sequence"), ("kv_answer", "key")] {
                try db.run(
                    """
                    DELETE FROM \(table) WHERE id IN
                        (SELECT id FROM \(table) WHERE store = ? ORDER BY \(order) LIMIT ?)
                    """, [id, budget])
                budget -= db.changesCount
            }
            guard budget > 0 else { return false }
            budget -= 1
            if level < .removedContainers {
                try db.run("UPDATE kv_shard SET incarnation = max(incarnation, ?)", [incarnation + 1])
            } else {
                try db.run(
                    """
                    INSERT INTO kv_removed VALUES (?, ?)
                    ON CONFLICT DO UPDATE SET incarnation = max(incarnation, excluded.incarnation)
                    """, [blob(container), incarnation + 1])
            }
            try db.run("DELETE FROM kv_store WHERE id = ?", [id])
        }
        return true
    }
}
