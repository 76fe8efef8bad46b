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
        let base = try AuditRows(of: log, in: db).base
        let limit = Int(min(max(limit, 1), AuditRows.pageMax))
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
            let record = try AuditRows.record(row, following: previousHash.map { [UInt8]($0) } ?? base.hash)
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
