import Foundation
package import GRDB
import RecordModel
package import Wire

/// A search of an audit log, from the newest record back or from the oldest on.
package struct AuditSearch: Hashable, Sendable, WireMessage {
    /// Records that one search looks at, so that a rare word does not hold the node up.
    package static let examinedMax = 5_000

    /// The log.
    package var log: AuditLog
    /// Records with lower numbers only, the newest first; nil: those above `after`, the oldest first.
    package var before: UInt64?
    /// Records with higher numbers only.
    package var after: UInt64 = 0
    /// Records found at most; the limit of pages holds as well.
    package var limit: UInt64
    /// Whose records may be found at all; nil: everybody's.
    package var visibleActors: [String]?
    /// The actor, as a record names it; nil: any.
    package var actor: String?
    /// The action; nil: any.
    package var action: String?
    /// What a member of the record must contain, in any case; nil: anything.
    package var text: String?

    /// Creates a search for any record.
    package init(of log: AuditLog, before: UInt64? = nil, limit: UInt64) {
        self.log = log
        self.before = before
        self.limit = limit
    }

    /// Whether every record is found.
    package var isOfAll: Bool { visibleActors == nil && actor == nil && action == nil && text == nil }

    private func isFound(_ event: AuditEvent) -> Bool {
        if let visibleActors, !visibleActors.contains(event.origin.actor) { return false }
        if let actor, event.origin.actor != actor { return false }
        if let action, event.action != action { return false }
        guard let text = text?.lowercased() else { return true }
        let members = [
            event.origin.actor, event.action, event.subject, event.outcome, event.origin.address,
            event.origin.requestID,
        ]
        return members.contains { $0.lowercased().contains(text) }
    }

    /// Runs the search.
    package func findings(in db: Database) throws -> AuditFindings {
        var findings = AuditFindings()
        guard try db.tableExists(log.table) else { return findings }
        let base = try DirectoryTables.auditBase(of: log, in: db)
        let limit = Int(min(max(limit, 1), DirectoryTables.auditPageMax))
        let bounds = [max(after, base.sequence), before ?? UInt64(Int64.max)].map { Int64(clamping: $0) }
        let earlier = "SELECT hash FROM \(log.table) WHERE sequence < found.sequence ORDER BY sequence DESC LIMIT 1"
        let rows = try Row.fetchCursor(
            db,
            sql: """
                SELECT body, hash, sequence, (\(earlier)) FROM \(log.table) AS found
                WHERE sequence > ? AND sequence < ? ORDER BY sequence \(before == nil ? "ASC" : "DESC")
                """, arguments: StatementArguments(bounds))
        while let row = try rows.next() {
            if findings.records.count == limit || findings.span.count == Self.examinedMax {
                findings.span.isEnd = false
                break
            }
            let previousHash: Data? = try row.decode(atIndex: 3)
            let record = try DirectoryTables.auditRecord(row, following: previousHash.map { [UInt8]($0) } ?? base.hash)
            findings.span.take(record, at: try row.decode(atIndex: 2))
            if isFound(record.event) { findings.records.append(record) }
        }
        return findings
    }

    package static var blank: Self { AuditSearch(of: .changes, limit: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &log)
        try wire.field(2, &before)
        try wire.field(3, &after)
        try wire.field(4, &limit)
        try wire.field(5, &visibleActors, members: 6)
        try wire.field(7, &actor)
        try wire.field(8, &action)
        try wire.field(9, &text)
    }
}

/// What a search of an audit log found.
package struct AuditFindings: Hashable, Sendable, WireMessage {
    /// In the order of the search.
    package var records: [AuditRecord] = []
    /// What was looked at.
    package var span = AuditSpan()

    /// Nothing found in nothing.
    package init() {}

    package static var blank: Self { AuditFindings() }

    /// Distinct field numbers: nodes of earlier builds answer a search with the position of their log, which has other
    /// fields.
    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(21, &span)
        try wire.field(22, &records)
    }
}

/// The records that a search looked at, found or not; their hashes were computed.
package struct AuditSpan: Hashable, Sendable, WireMessage {
    /// How many.
    package var count = 0
    /// The lowest number; 0, as the highest, if empty.
    package var first: UInt64 = 0
    /// The highest number.
    package var last: UInt64 = 0
    /// The lowest number of a record that was changed or does not follow the one before it; nil if all are intact.
    package var firstBroken: UInt64?
    /// Whether no record is left on the search's way.
    package var isEnd = true

    fileprivate mutating func take(_ record: AuditRecord, at sequence: UInt64) {
        count += 1
        first = first == 0 ? sequence : min(first, sequence)
        last = max(last, sequence)
        guard record.sequence != sequence || record.hash != record.expectedHash else { return }
        firstBroken = min(firstBroken ?? .max, sequence)
    }

    package static var blank: Self { AuditSpan() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &count)
        try wire.field(2, &first)
        try wire.field(3, &last)
        try wire.field(4, &firstBroken)
        try wire.field(5, &isEnd)
    }
}

// The audit logs' rows. A record's body is what its hash is made of, with the hash of the record before it.
extension DirectoryTables {
    /// Records and tokens that one `purge` removes at most, of each.
    static let purgedMax = 500
    /// Records of a page at most.
    package static let auditPageMax: UInt64 = 1_000

    /// The number and the hash of a log's last record; they stand for all records before it.
    package static func auditTip(
        of log: AuditLog = .changes, in db: Database
    ) throws -> (sequence: UInt64, hash: [UInt8]) {
        let base = try auditBase(of: log, in: db)
        guard try db.tableExists(log.table) else { return base }
        let sql = "SELECT sequence, hash FROM \(log.table) ORDER BY sequence DESC LIMIT 1"
        return try Row.fetchOne(db, sql: sql).map(position) ?? base
    }

    /// The number and the hash of the last record past retention; 0 and zeros before the first.
    static func auditBase(
        of log: AuditLog, in db: Database
    ) throws -> (sequence: UInt64, hash: [UInt8]) {
        guard try db.tableExists(log.baseTable),
            let row = try Row.fetchOne(db, sql: "SELECT sequence, hash FROM \(log.baseTable)")
        else { return (0, AuditRecord.firstPreviousHash) }
        return try position(row)
    }

    private static func position(_ row: Row) throws -> (sequence: UInt64, hash: [UInt8]) {
        let hash: Data = try row.decode(atIndex: 1)
        return (try row.decode(atIndex: 0), [UInt8](hash))
    }

    static func auditBounds(of log: AuditLog, in db: Database) throws -> AuditBounds {
        AuditBounds(purged: try auditBase(of: log, in: db).sequence, last: try auditTip(of: log, in: db).sequence)
    }

    /// Makes the tables of a log that databases of earlier versions do not have. Every replica makes them with the same
    /// command.
    private static func createTables(of log: AuditLog, in db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE \(log.table) (
                    sequence INTEGER PRIMARY KEY, body BLOB NOT NULL, hash BLOB NOT NULL) STRICT;
                CREATE TABLE \(log.baseTable) (
                    id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
                """)
    }

    /// Appends a record for each event.
    static func appendAudit(_ events: [AuditEvent], to log: AuditLog, in db: Database) throws -> [DirectoryChange] {
        if events.isEmpty { return [] }
        if try !db.tableExists(log.table) { try createTables(of: log, in: db) }
        var (sequence, hash) = try auditTip(of: log, in: db)
        let base = try auditBase(of: log, in: db).sequence
        try Invariant.check(sequence >= base, "the audit log was purged to \(base), and ends at \(sequence)")
        let statement = try db.cachedStatement(
            sql: "INSERT INTO \(log.table) (sequence, body, hash) VALUES (?, ?, ?)")
        for event in events {
            sequence += 1
            let record = AuditRecord(event.bounded, sequence: sequence, previousHash: hash)
            hash = record.hash
            try statement.execute(arguments: [Int64(sequence), Data(record.content), Data(hash)])
        }
        return [.audit(log, AuditBounds(purged: base, last: sequence))]
    }

    /// A log's records with numbers above `after`, up to `limit` of them and 1,000.
    package static func auditPage(
        of log: AuditLog = .changes, after: UInt64, limit: UInt64, in db: Database
    ) throws -> AuditPage {
        let base = try auditBase(of: log, in: db)
        guard try db.tableExists(log.table) else {
            return AuditPage(
                records: [], moreComing: false, firstSequence: base.sequence + 1, firstPreviousHash: base.hash)
        }
        let after = min(after, UInt64(Int64.max - 1))
        var start = base
        if after > base.sequence,
            let row = try Row.fetchOne(
                db, sql: "SELECT sequence, hash FROM \(log.table) WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1",
                arguments: [Int64(after)])
        {
            start = try position(row)
        }
        let count = Int(min(max(limit, 1), auditPageMax))
        let rows = try Row.fetchAll(
            db, sql: "SELECT body, hash FROM \(log.table) WHERE sequence > ? ORDER BY sequence LIMIT ?",
            arguments: [Int64(max(after, base.sequence)), count + 1])
        var previousHash = start.hash
        var records: [AuditRecord] = []
        for row in rows.prefix(count) {
            let record = try auditRecord(row, following: previousHash)
            previousHash = record.hash
            records.append(record)
        }
        return AuditPage(
            records: records, moreComing: rows.count > count, firstSequence: start.sequence + 1,
            firstPreviousHash: start.hash)
    }

    /// A record's row knows nothing of the one before it: that it follows it is what its hash says.
    static func auditRecord(_ row: Row, following previousHash: [UInt8]) throws -> AuditRecord {
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

    static func purge(time: Int64, auditRecordsMax: UInt64, in db: Database) throws -> [DirectoryChange] {
        let rows = try Row.fetchAll(
            db, sql: "SELECT id, body FROM token WHERE expires <= ? ORDER BY expires, id LIMIT ?",
            arguments: [time, purgedMax])
        let expired = try rows.map { row in
            let (id, body): (String, Data) = try (row.decode(atIndex: 0), row.decode(atIndex: 1))
            try db.execute(sql: "DELETE FROM token WHERE id = ?", arguments: [id])
            try db.checkOneRow("the end of the expired session \(id)")
            return try Token(decoding: [UInt8](body))
        }
        var changes = try SessionTotals.changes(byRemoving: expired, in: db)
        for log in AuditLog.allCases {
            if let change = try purge(log, recordsMax: auditRecordsMax, in: db) { changes.append(change) }
        }
        return changes
    }

    private static func purge(_ log: AuditLog, recordsMax: UInt64, in db: Database) throws -> DirectoryChange? {
        let bounds = try auditBounds(of: log, in: db)
        guard bounds.count > recordsMax else { return nil }
        let purged = bounds.purged + min(bounds.count - recordsMax, UInt64(purgedMax))
        // Where somebody took records out, what is kept is of the one before the gap, so that the gap stays to be seen.
        let row = try Row.fetchOne(
            db, sql: "SELECT sequence, hash FROM \(log.table) WHERE sequence <= ? ORDER BY sequence DESC LIMIT 1",
            arguments: [Int64(purged)])
        let base = try row.map(position) ?? (sequence: purged, hash: auditBase(of: log, in: db).hash)
        try Invariant.check(
            base.sequence >= bounds.purged && base.sequence <= bounds.last,
            "the audit log was purged to \(bounds.purged), ends at \(bounds.last), and would be purged to \(base.sequence)"
        )
        try db.execute(sql: "DELETE FROM \(log.table) WHERE sequence <= ?", arguments: [Int64(purged)])
        try db.execute(
            sql: "INSERT OR REPLACE INTO \(log.baseTable) (id, sequence, hash) VALUES (1, ?, ?)",
            arguments: [Int64(base.sequence), Data(base.hash)])
        return .audit(log, AuditBounds(purged: base.sequence, last: bounds.last))
    }
}
