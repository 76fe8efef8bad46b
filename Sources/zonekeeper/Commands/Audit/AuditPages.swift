import Directory
import RecordModel
import ServiceClient

/// A page of the audit log.
struct AuditAnswer {
    var records: [JSONValue]
    var isLast: Bool
    /// The number that the first record must have, where the server says it.
    var firstSequence: UInt64?
    /// The hash that the first record must follow: also what is kept of records past retention.
    var firstPreviousHash: [UInt8]?
}

/// The audit log as an administrator reads it, page by page.
struct AuditPages {
    var connection: Connection
    var log = AuditLog.changes

    private static let recordsPerPage = 500

    /// Records with higher numbers than `sequence`, in order.
    /// - Throws: `CommandFailure` where the server says that more are coming and sends none: that is no end.
    func page(after sequence: UInt64, limit: Int = recordsPerPage) async throws -> AuditAnswer {
        let response = try await connection.administer(
            "GET", "audit",
            parameters: [("log", log.rawValue), ("after", String(sequence)), ("limit", String(limit))]
        ).json()
        guard let records = response["records"]?.array else {
            throw CommandFailure("the answer has no records in it. Is this a Zonekeeper node?")
        }
        let isLast = response["moreComing"] != .bool(true)
        guard isLast || !records.isEmpty else {
            throw CommandFailure(
                "the audit log has no record after \(sequence), though the answer says that more are coming")
        }
        return AuditAnswer(
            records: records, isLast: isLast,
            firstSequence: response.amount("firstSequence").flatMap { UInt64(exactly: $0) },
            firstPreviousHash: response["firstPreviousHash"]?.string.flatMap { HexText.bytes($0) })
    }

    /// Hands over every record after `sequence`, a page at a time.
    func each(after sequence: UInt64, _ body: (AuditAnswer) throws -> Void) async throws {
        var sequence = sequence
        while true {
            let answer = try await page(after: sequence)
            try body(answer)
            if answer.isLast { return }
            guard let last = answer.records.last?.sequence, last > sequence else {
                throw CommandFailure(
                    "the audit log does not go on after record \(sequence), though it says that it does")
            }
            sequence = last
        }
    }

    /// The number of the newest record, 0 where there is none; found in few requests however long the log is.
    func newest() async throws -> UInt64 {
        var search = NewestSearch()
        while let probe = search.probe {
            let found = try await page(after: probe, limit: 1).records.first
            search.answered(found?.sequence)
        }
        return search.newest
    }
}

/// Finds the highest number of a log that can only be asked for the first record after one.
struct NewestSearch: Hashable {
    /// The highest number known to be there.
    private(set) var newest: UInt64 = 0
    /// No record has a number above this one; nil while none is known.
    private var bound: UInt64?
    private var step: UInt64 = 1

    /// The number after which to ask; nil once the newest is known.
    var probe: UInt64? {
        guard let bound else { return newest == 0 ? 0 : newest + step - 1 }
        return bound == newest ? nil : newest + (bound - newest) / 2
    }

    /// - Parameter sequence: of the first record after the probe; nil where none follows.
    mutating func answered(_ sequence: UInt64?) {
        guard let probe else { return }
        guard let sequence, sequence > probe else { return bound = probe }
        newest = sequence
        if bound == nil { step *= 2 }
        // The log may have grown meanwhile.
        if let bound, bound < sequence { self.bound = sequence }
    }
}

extension JSONValue {
    /// The number of a record of the audit log.
    var sequence: UInt64? { amount("sequence").flatMap { UInt64(exactly: $0) } }
}

extension AuditRecord {
    /// Reads a record of the administration's answer, with everything that its hash is made of.
    /// - Throws: `CommandFailure` naming the member at fault.
    init(_ json: JSONValue) throws(CommandFailure) {
        let sequence = json.sequence ?? 0
        func missing(_ key: String) -> CommandFailure {
            CommandFailure("record \(sequence) of the audit log has no right '\(key)', so it cannot be verified")
        }
        func text(_ key: String) throws(CommandFailure) -> String {
            guard let text = json[key]?.string else { throw missing(key) }
            return text
        }
        func bytes(_ key: String) throws(CommandFailure) -> [UInt8] {
            guard let bytes = HexText.bytes(try text(key)) else { throw missing(key) }
            return bytes
        }
        guard sequence > 0 else { throw missing("sequence") }
        guard let time = json.amount("time") else { throw missing("time") }
        guard let count = json.amount("count").flatMap({ UInt64(exactly: $0) }) else { throw missing("count") }
        self.init(
            sequence: sequence, previousHash: try bytes("previousHash"),
            event: AuditEvent(
                origin: AuditOrigin(
                    actor: try text("actor"), requestID: try text("requestID"), address: try text("address"), time: time
                ),
                action: try text("action"), subject: try text("subject"), outcome: try text("outcome"), count: count),
            hash: try bytes("hash"))
    }
}

/// Hexadecimal digits.
enum HexText {
    /// Nil for anything but pairs of digits.
    static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        for position in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[position], let low = digits[position + 1] else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes
    }
}
