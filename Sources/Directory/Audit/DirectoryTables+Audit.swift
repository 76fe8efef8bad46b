import Foundation
package import GRDB
import Wire

// The audit log's rows. A record's body is what its hash is made of, with the hash of the record before it.
extension DirectoryTables {
    /// Records and tokens that one `purge` removes at most, of each.
    static let purgedMax = 500
    /// Records of a page at most.
    package static let auditPageMax: UInt64 = 1_000

    /// The number and the hash of the last record; they stand for all records before it.
    package static func auditTip(in db: Database) throws -> (sequence: UInt64, hash: [UInt8]) {
        let sql = "SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1"
        guard let row = try Row.fetchOne(db, sql: sql) else { return try auditBase(in: db) }
        return position(row)
    }

    /// The number and the hash of the last record past retention; 0 and zeros if there is none.
    private static func auditBase(in db: Database) throws -> (sequence: UInt64, hash: [UInt8]) {
        guard let row = try Row.fetchOne(db, sql: "SELECT sequence, hash FROM audit_base") else {
            return (0, AuditRecord.firstPreviousHash)
        }
        return position(row)
    }

    private static func position(_ row: Row) -> (sequence: UInt64, hash: [UInt8]) {
        let hash: Data = row[1]
        return (UInt64(row[0] as Int64), [UInt8](hash))
    }

    static func auditBounds(in db: Database) throws -> AuditBounds {
        AuditBounds(purged: try auditBase(in: db).sequence, last: try auditTip(in: db).sequence)
    }

    /// Appends a record for each event.
    static func appendAudit(_ events: [AuditEvent], in db: Database) throws -> DirectoryChange? {
        if events.isEmpty { return nil }
        var (sequence, hash) = try auditTip(in: db)
        let statement = try db.cachedStatement(sql: "INSERT INTO audit (sequence, body, hash) VALUES (?, ?, ?)")
        for event in events {
            sequence += 1
            let record = AuditRecord(event.bounded, sequence: sequence, previousHash: hash)
            hash = record.hash
            try statement.execute(arguments: [Int64(sequence), Data(record.content), Data(hash)])
        }
        return .audit(AuditBounds(purged: try auditBase(in: db).sequence, last: sequence))
    }

    /// The records with numbers above `after`, up to `limit` of them and 1,000.
    package static func auditPage(after: UInt64, limit: UInt64, in db: Database) throws -> AuditPage {
        let base = try auditBase(in: db)
        let after = min(after, UInt64(Int64.max - 1))
        var start = base
        if after > base.sequence,
            let row = try Row.fetchOne(
                db, sql: "SELECT sequence, hash FROM audit WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1",
                arguments: [Int64(after)])
        {
            start = position(row)
        }
        let count = Int(min(max(limit, 1), auditPageMax))
        let rows = try Row.fetchAll(
            db, sql: "SELECT body, hash FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?",
            arguments: [Int64(max(after, base.sequence)), count + 1])
        var previousHash = start.hash
        var records: [AuditRecord] = []
        for row in rows.prefix(count) {
            let record = try record(row, following: previousHash)
            previousHash = record.hash
            records.append(record)
        }
        return AuditPage(
            records: records, moreComing: rows.count > count, firstSequence: start.sequence + 1,
            firstPreviousHash: start.hash)
    }

    /// A record's row knows nothing of the one before it: that it follows it is what its hash says.
    private static func record(_ row: Row, following previousHash: [UInt8]) throws -> AuditRecord {
        let (body, hash): (Data, Data) = (row[0], row[1])
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

    static func purge(time: Int64, auditRecordsMax: UInt64, in db: Database) throws -> [DirectoryChange] {
        var changes: [DirectoryChange] = []
        let expired = try Row.fetchAll(
            db, sql: "SELECT id, body FROM token WHERE expires <= ? ORDER BY expires, id LIMIT ?",
            arguments: [time, purgedMax])
        for row in expired {
            let (id, body): (String, Data) = (row[0], row[1])
            try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
            changes.append(.tokenRemoved(try Token(decoding: [UInt8](body))))
        }
        if !expired.isEmpty { changes.append(try firstExpiry(in: db)) }
        if let change = try purgeAudit(recordsMax: auditRecordsMax, in: db) { changes.append(change) }
        return changes
    }

    private static func purgeAudit(recordsMax: UInt64, in db: Database) throws -> DirectoryChange? {
        let bounds = try auditBounds(in: db)
        guard bounds.count > recordsMax else { return nil }
        let purged = bounds.purged + min(bounds.count - recordsMax, UInt64(purgedMax))
        // Where somebody took records out, what is kept is of the one before the gap, so that the gap stays to be seen.
        let row = try Row.fetchOne(
            db, sql: "SELECT sequence, hash FROM audit WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1",
            arguments: [Int64(purged)])
        let base = try row.map { position($0) } ?? (sequence: purged, hash: auditBase(in: db).hash)
        try db.execute(sql: "DELETE FROM audit WHERE sequence <= ?", arguments: [Int64(purged)])
        try db.execute(
            sql: "INSERT OR REPLACE INTO audit_base (id, sequence, hash) VALUES (1, ?, ?)",
            arguments: [Int64(base.sequence), Data(base.hash)])
        return .audit(AuditBounds(purged: base.sequence, last: bounds.last))
    }
}
