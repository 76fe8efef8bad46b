import Crypto
package import Wire

/// One link of the audit log's chain.
///
/// The hash is SHA-256 of the hash of the record before it, this record's number and its event; so none can be changed,
/// left out or moved without breaking the chain there. Who can write to every node's disk can make a whole new chain:
/// keep the newest hash elsewhere from time to time, and look for it later.
package struct AuditRecord: Hashable, Sendable {
    /// From 1, without a gap.
    package var sequence: UInt64
    /// 32 bytes; zeros before the first record.
    package var previousHash: [UInt8]
    package var event: AuditEvent
    package var hash: [UInt8]

    /// What the first record follows.
    package static let firstPreviousHash = [UInt8](repeating: 0, count: SHA256.byteCount)

    package init(sequence: UInt64, previousHash: [UInt8], event: AuditEvent, hash: [UInt8]) {
        self.sequence = sequence
        self.previousHash = previousHash
        self.event = event
        self.hash = hash
    }

    /// The record of an event that follows another record.
    package init(_ event: AuditEvent, sequence: UInt64, previousHash: [UInt8]) {
        self.init(sequence: sequence, previousHash: previousHash, event: event, hash: [])
        hash = expectedHash
    }

    /// The hash that the record must have.
    package var expectedHash: [UInt8] {
        var hasher = SHA256()
        hasher.update(data: previousHash)
        hasher.update(data: content)
        return Array(hasher.finalize())
    }

    /// 1 sequence, 2 event.
    var content: [UInt8] {
        var writer = WireWriter()
        writer.field(1, sequence)
        writer.field(2) { event.encode(to: &$0) }
        return writer.bytes
    }

    /// The number of the first record that is not what it was, or does not follow the one before it; nil if all do.
    /// - Parameters:
    ///   - records: as they were read, in order.
    ///   - previous: the record before them; nil where the first one's own word is taken for what it follows.
    package static func verify(_ records: [AuditRecord], following previous: AuditRecord? = nil) -> UInt64? {
        var previous = previous
        for record in records {
            if let previous {
                guard record.sequence == previous.sequence &+ 1 else { return previous.sequence &+ 1 }
                guard record.previousHash == previous.hash else { return record.sequence }
            }
            guard record.hash == record.expectedHash else { return record.sequence }
            previous = record
        }
        return nil
    }
}

extension AuditRecord: WireMessage {
    package static var blank: Self { AuditRecord(sequence: 0, previousHash: [], event: .blank, hash: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &sequence)
        try wire.field(2, &previousHash)
        try wire.required(3, &event)
        try wire.field(4, &hash)
    }
}

/// Which audit log. Each is a chain of hashes of its own and keeps its own newest records, so that what anybody can
/// cause never pushes out what administrators did.
package enum AuditLog: String, Hashable, Sendable, CaseIterable {
    /// What administrators did or tried, who signed in, and what nodes found out, such as the copy of a token.
    case changes
    /// What anybody can have written, within `AuditBudgets`: failed sign-ins, refusals, and schemas that grew by saves.
    case requests

    /// That of `requests` is made with its first record.
    var table: String {
        switch self {
        case .changes: "audit"
        case .requests: "audit_request"
        }
    }

    /// The number and hash of the last record past retention.
    var baseTable: String { table + "_base" }
}

extension AuditLog: WireValue {}

/// Some records of the audit log, one after the other.
package struct AuditPage: Hashable, Sendable {
    package var records: [AuditRecord]
    /// Whether more follow.
    package var moreComing: Bool
    /// The number that the first record must have: records before it were read before, or are past retention.
    package var firstSequence: UInt64
    /// The hash that the first record must follow, taken from the record before it, or from what is kept of the last
    /// one past retention.
    package var firstPreviousHash: [UInt8]

    package init(records: [AuditRecord], moreComing: Bool, firstSequence: UInt64, firstPreviousHash: [UInt8]) {
        self.records = records
        self.moreComing = moreComing
        self.firstSequence = firstSequence
        self.firstPreviousHash = firstPreviousHash
    }

    /// The number of the first record of the page that breaks the chain; nil if none does.
    package var firstBroken: UInt64? {
        guard let first = records.first else { return nil }
        if first.sequence != firstSequence || first.previousHash != firstPreviousHash { return firstSequence }
        return AuditRecord.verify(records)
    }
}

extension AuditPage: WireMessage {
    package static var blank: Self {
        AuditPage(records: [], moreComing: false, firstSequence: 0, firstPreviousHash: [])
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &records)
        try wire.field(2, &moreComing)
        try wire.field(3, &firstSequence)
        try wire.field(4, &firstPreviousHash)
    }
}
