import Crypto
import RecordModel
package import Wire

/// One link of the audit log's chain.
///
/// The hash is SHA-256 of the hash of the record before it, this record's number and its event; so none can be changed,
/// left out or moved without breaking the chain there. Who can write to every node's disk can make a whole new chain:
/// keep the newest hash elsewhere from time to time, and look for it later.
package struct AuditRecord: Hashable, Sendable, WireMessage {
    /// From 1, without a gap.
    package var sequence: UInt64
    /// 32 bytes; zeros before the first record.
    package var previousHash: [UInt8]
    /// What the record tells, with texts no longer than the log keeps.
    package var event: AuditEvent
    /// 32 bytes; equal to `expectedHash` unless the chain is broken at this record.
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
package enum AuditLog: String, Hashable, Sendable, CaseIterable, WireValue {
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

/// Some records of the audit log, one after the other.
package struct AuditPage: Hashable, Sendable, WireMessage {
    /// Ascending by number; empty where the log has no later record.
    package var records: [AuditRecord]
    /// Whether more follow.
    package var moreComing: Bool
    /// The number that the first record must have: records before it were read before, or are past retention.
    package var firstSequence: UInt64
    /// The hash that the first record must follow, taken from the record before it, or from what is kept of the last
    /// one past retention.
    package var firstPreviousHash: [UInt8]

    /// The number of the first record of the page that breaks the chain.
    package var firstBroken: UInt64? {
        guard let first = records.first else { return nil }
        if first.sequence != firstSequence || first.previousHash != firstPreviousHash { return firstSequence }
        return AuditRecord.verify(records)
    }

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

/// Who asked for something, by which request, from where and when.
package struct AuditOrigin: Hashable, Sendable, WireMessage {
    /// Such as `administrator`, `administrator grace`, `user ada`, `key 1f..` or `node 2`; never a secret.
    package var actor: String
    /// By which the logs of every node that the request crossed name it.
    package var requestID: String
    /// The client's address, or empty.
    package var address: String
    /// Milliseconds since 1970, by the clock of the node that was asked.
    package var time: Int64

    /// The actor of administration by the token that every node has in a file.
    package static let administrator = "administrator"
    /// The actor of requests without a credential.
    package static let anonymous = "anonymous"

    /// The actor of administration by an administrator's own token.
    package static func administrator(named name: String) -> String { "\(administrator) \(name)" }

    /// A node that acts by itself.
    package static func node(_ id: some CustomStringConvertible, at time: Int64) -> AuditOrigin {
        AuditOrigin(actor: "node \(id)", requestID: "", address: "", time: time)
    }

    /// Whether an administrator asks. No other actor begins with this word.
    package var isAdministrator: Bool {
        actor == Self.administrator || actor.hasPrefix(Self.administrator(named: ""))
    }

    package init(actor: String, requestID: String, address: String, time: Int64) {
        self.actor = actor
        self.requestID = requestID
        self.address = address
        self.time = time
    }

    package static var blank: Self { AuditOrigin(actor: "", requestID: "", address: "", time: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &actor)
        try wire.field(2, &requestID)
        try wire.field(3, &address)
        try wire.field(4, &time)
    }
}

/// Something that was done or refused, as the audit log shows it, without secrets.
package struct AuditEvent: Hashable, Sendable, WireMessage {
    /// Who caused it, with the request, the address and the time.
    package var origin: AuditOrigin
    /// Such as `token.create` or `sign-in`.
    package var action: String
    /// What it was done to.
    package var subject: String
    /// `done`, or why it was refused.
    package var outcome: String
    /// How many alike this one stands for.
    package var count: UInt64

    /// The outcome of what was not refused.
    package static let done = "done"

    package init(origin: AuditOrigin, action: String, subject: String, outcome: String = Self.done, count: UInt64 = 1) {
        self.origin = origin
        self.action = action
        self.subject = subject
        self.outcome = outcome
        self.count = count
    }

    package static var blank: Self {
        AuditEvent(
            origin: AuditOrigin(actor: "", requestID: "", address: "", time: 0), action: "", subject: "", outcome: "",
            count: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &origin)
        try wire.field(2, &action)
        try wire.field(3, &subject)
        try wire.field(4, &outcome)
        try wire.field(5, &count)
    }

    /// The event with no text longer than the log keeps.
    var bounded: AuditEvent {
        AuditEvent(
            origin: AuditOrigin(
                actor: AuditText.bounded(origin.actor), requestID: AuditText.bounded(origin.requestID),
                address: AuditText.bounded(origin.address), time: origin.time),
            action: AuditText.bounded(action), subject: AuditText.bounded(subject),
            outcome: AuditText.bounded(outcome), count: count)
    }
}

/// Makes text that may stand in the audit log.
package enum AuditText {
    /// Unicode scalars of a text at most.
    static let scalarsMax = 512

    /// An id, so that it can be told from others. Somebody may have given a secret where an id was meant: of text that
    /// is too long, or looks like no id, a piece of its hash stands there.
    package static func id(_ text: String) -> String {
        let isHex = text.utf8.allSatisfy(\.isLowercaseHexDigit)
        if text.utf8.count <= 16 || (isHex && text.utf8.count <= 32) { return text }
        // The id of a server key is as long as a token's secret.
        if isHex, text.utf8.count == 64 { return text.prefix(16) + "…" }
        return "#" + Hex.encode(Array(SHA256.hash(data: Array(text.utf8)).prefix(4)))
    }

    /// Whether a scalar cannot be seen, or changes how what stands around it is seen.
    static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
        default: false
        }
    }

    /// A text, cut where it is too long. Invisible characters are written as their numbers, such as `\u{1b}`: text of
    /// others must neither act on the terminal that shows the log nor imitate other text.
    static func bounded(_ text: String) -> String {
        let shown = text.unicodeScalars.prefix(scalarsMax + 1)
        if shown.count <= scalarsMax, !shown.contains(where: isHidden) { return text }
        var result = String.UnicodeScalarView()
        for scalar in shown {
            if isHidden(scalar) {
                result.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
            } else {
                result.append(scalar)
            }
        }
        guard result.count > scalarsMax else { return String(result) }
        return String(String.UnicodeScalarView(result.prefix(scalarsMax - 1))) + "…"
    }
}
