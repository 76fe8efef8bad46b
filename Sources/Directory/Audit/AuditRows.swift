import Foundation
package import GRDB
import RecordModel
import Wire

/// The rows of an audit log. A record's body is what its hash is made of, with the hash of the record before it.
package struct AuditRows {
    /// Records of a page at most.
    package static let pageMax: UInt64 = 1_000

    private let log: AuditLog
    private let db: Database

    /// Those of a log in group 0's database.
    package init(of log: AuditLog = .changes, in db: Database) {
        self.log = log
        self.db = db
    }

    /// The number and the hash of the log's last record; they stand for all records before it.
    package var tip: (sequence: UInt64, hash: [UInt8]) {
        get throws { try (isThere ? last(upTo: .max) : nil) ?? base }
    }

    /// The number and the hash of the last record past retention; 0 and zeros before the first.
    var base: (sequence: UInt64, hash: [UInt8]) {
        get throws {
            guard try db.tableExists(log.baseTable),
                let row = try Row.fetchOne(db, sql: "SELECT sequence, hash FROM \(log.baseTable)")
            else { return (0, AuditRecord.firstPreviousHash) }
            return try position(row)
        }
    }

    private var isThere: Bool { get throws { try db.tableExists(log.table) } }

    /// The last record with a number up to this one.
    private func last(upTo sequence: Int64) throws -> (sequence: UInt64, hash: [UInt8])? {
        try Row.fetchOne(
            db, sql: "SELECT sequence, hash FROM \(log.table) WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1",
            arguments: [sequence]
        ).map(position)
    }

    private func position(_ row: Row) throws -> (sequence: UInt64, hash: [UInt8]) {
        let hash: Data = try row.decode(atIndex: 1)
        return (try row.decode(atIndex: 0), [UInt8](hash))
    }

    var bounds: AuditBounds { get throws { AuditBounds(purged: try base.sequence, last: try tip.sequence) } }

    /// Makes the tables of a log that databases of earlier versions do not have. Every replica makes them with the same
    /// command.
    private func createTables() throws {
        try db.execute(
            sql: """
                CREATE TABLE \(log.table) (
                    sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, hash BLOB NOT NULL) STRICT;
                CREATE TABLE \(log.baseTable) (
                    id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
                """)
    }

    /// Appends a record for each event.
    func append(_ events: [AuditEvent]) throws -> [DirectoryChange] {
        if events.isEmpty { return [] }
        if try !isThere { try createTables() }
        var (sequence, hash) = try tip
        let base = try base.sequence
        try Invariant.check(sequence >= base, "the audit log was purged to \(base), and ends at \(sequence)")
        for event in events {
            sequence += 1
            let record = AuditRecord(event.bounded, sequence: sequence, previousHash: hash)
            hash = record.hash
            try db.run(
                "INSERT INTO \(log.table) (sequence, body, hash) VALUES (?, ?, ?)",
                [Int64(sequence), Data(record.content), Data(hash)])
        }
        return [.audit(log, AuditBounds(purged: base, last: sequence))]
    }

    /// Records with numbers above `after`, up to `limit` of them and 1,000.
    package func page(after: UInt64, limit: UInt64) throws -> AuditPage {
        let base = try base
        guard try isThere else {
            return AuditPage(
                records: [], moreComing: false, firstSequence: base.sequence + 1, firstPreviousHash: base.hash)
        }
        let after = min(after, UInt64(Int64.max - 1))
        let start = after > base.sequence ? try last(upTo: Int64(after)) ?? base : base
        let count = Int(min(max(limit, 1), Self.pageMax))
        let rows = try Row.fetchAll(
            db, sql: "SELECT body, hash FROM \(log.table) WHERE sequence > ? ORDER BY sequence LIMIT ?",
            arguments: [Int64(max(after, base.sequence)), count + 1])
        var previousHash = start.hash
        var records: [AuditRecord] = []
        for row in rows.prefix(count) {
            let record = try Self.record(row, following: previousHash)
            previousHash = record.hash
            records.append(record)
        }
        return AuditPage(
            records: records, moreComing: rows.count > count, firstSequence: start.sequence + 1,
            firstPreviousHash: start.hash)
    }

    /// A record's row knows nothing of the one before it: that it follows it is what its hash says.
    static func record(_ row: Row, following previousHash: [UInt8]) throws -> AuditRecord {
        let (body, hash): (Data, Data) = try (row.decode(atIndex: 0), row.decode(atIndex: 1))
        var reader = WireReader([UInt8](body))
        var sequence: UInt64 = 0
        var event: AuditEvent?
        while let field = try reader.nextField() {
            switch field {
            case 1: sequence = try reader.unsigned()
            case 2: event = try reader.message()
            default: try reader.skip()
            }
        }
        guard let event else { throw WireError.missingField(2) }
        return AuditRecord(sequence: sequence, previousHash: previousHash, event: event, hash: [UInt8](hash))
    }

    /// Removes records past retention.
    /// - Parameter countMax: records removed at most.
    func purge(recordsMax: UInt64, countMax: Int) throws -> [DirectoryChange] {
        let bounds = try bounds
        guard bounds.count > recordsMax else { return [] }
        let purged = bounds.purged + min(bounds.count - recordsMax, UInt64(countMax))
        // Where somebody took records out, what is kept is of the one before the gap, so that the gap stays to be seen.
        let base = try last(upTo: Int64(purged)) ?? (sequence: purged, hash: base.hash)
        try Invariant.check(
            base.sequence >= bounds.purged && base.sequence <= bounds.last,
            "the audit log was purged to \(bounds.purged), ends at \(bounds.last), and would be purged to \(base.sequence)"
        )
        try db.run("DELETE FROM \(log.table) WHERE sequence <= ?", [Int64(purged)])
        try db.run(
            "INSERT OR REPLACE INTO \(log.baseTable) (id, sequence, hash) VALUES (1, ?, ?)",
            [Int64(base.sequence), Data(base.hash)])
        return [.audit(log, AuditBounds(purged: base.sequence, last: bounds.last))]
    }
}
