import ArgumentParser
import Directory
import RecordModel
import ServiceClient

/// `zonekeeper audit verify`
struct AuditVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Compute the audit log's chain of hashes here, from its records, and say where it breaks.",
        discussion: """
            Each record's hash covers the one before it, so none can be changed, taken out or put in without breaking the \
            chain. Who can write to every node's disk could make a whole new chain: keep the newest hash somewhere else \
            from time to time, and name it with --expect later. The exit code is 1 where something is wrong.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var choice: AuditChoice

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "A record's number and hash, as an earlier `audit verify` said; may be repeated.",
            valueName: "sequence:hash")
    )
    var expect: [AuditMark] = []

    func run() async throws {
        try await options.withConnection { connection in
            var chain = AuditChain(expecting: expect)
            try await AuditPages(connection: connection, log: choice.log).each(after: 0) { page in
                for (position, json) in page.records.enumerated() {
                    let record = try AuditRecord(json)
                    if position == 0 { try AuditChain.check(first: record, of: page) }
                    try chain.take(record)
                }
            }
            try chain.finish()
            if options.json { return Console.print(chain.json.serialized()) }
            print(chain.text)
        }
    }
}

/// A record of the audit log and the hash that it had.
struct AuditMark: Hashable {
    var sequence: UInt64
    var hash: [UInt8]
}

extension AuditMark: ExpressibleByArgument {
    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let sequence = UInt64(parts[0]), sequence > 0, let hash = HexText.bytes(parts[1]),
            hash.count == 32
        else { return nil }
        self.sequence = sequence
        self.hash = hash
    }
}

/// The chain as far as it was read.
struct AuditChain {
    private var expected: [AuditMark]
    private var first: AuditRecord?
    private var last: AuditRecord?
    private var count: Int64 = 0

    init(expecting expected: [AuditMark]) { self.expected = expected }

    /// - Throws: `CommandFailure` if a page does not begin where the server keeps that it must: records are gone that are not
    ///   past retention.
    static func check(first record: AuditRecord, of page: AuditAnswer) throws(CommandFailure) {
        guard record.sequence == page.firstSequence ?? record.sequence,
            record.previousHash == page.firstPreviousHash ?? record.previousHash
        else {
            throw CommandFailure(
                "the audit log was changed: record \(page.firstSequence ?? record.sequence) is missing, record "
                    + "\(record.sequence) stands where it was")
        }
    }

    /// - Throws: `CommandFailure` if the record is not what it was, or does not follow the one before it.
    mutating func take(_ record: AuditRecord) throws(CommandFailure) {
        if let broken = AuditRecord.verify([record], following: last) {
            let good = last.map { "every record up to \($0.sequence) is right" } ?? "it is the first one"
            throw CommandFailure(
                broken == record.sequence
                    ? "the audit log was changed: record \(broken) is not what it was, or does not follow the one before "
                        + "it; \(good)"
                    : "the audit log was changed: record \(broken) is missing, record \(record.sequence) follows; \(good)"
            )
        }
        if record.sequence == 1, record.previousHash != AuditRecord.firstPreviousHash {
            throw CommandFailure("the audit log was changed: record 1 follows a record that never was")
        }
        for mark in expected where mark.sequence == record.sequence && mark.hash != record.hash {
            throw CommandFailure(
                "the audit log is not the one that was: record \(mark.sequence) has the hash \(Hex.encode(record.hash)), not "
                    + Hex.encode(mark.hash))
        }
        expected.removeAll { $0.sequence == record.sequence }
        first = first ?? record
        last = record
        count += 1
    }

    /// The log ends here.
    /// - Throws: `CommandFailure` if a record that was expected did not come, though it is not past retention.
    func finish() throws(CommandFailure) {
        guard let mark = expected.first else { return }
        if let first, mark.sequence < first.sequence {
            throw CommandFailure(
                "record \(mark.sequence) is past retention: the log begins with record \(first.sequence), so it cannot be "
                    + "compared")
        }
        throw CommandFailure(
            "the audit log is not the one that was: record \(mark.sequence) is missing, the newest is \(last?.sequence ?? 0)"
        )
    }

    /// The number and hash of the newest record, to keep elsewhere; empty where there is none.
    var mark: String { last.map { "\($0.sequence):\(Hex.encode($0.hash))" } ?? "" }

    var text: String {
        guard let first else { return "the audit log has no records" }
        let earlier = first.sequence > 1 ? " (from record \(first.sequence); earlier ones are past retention)" : ""
        let records = count == 1 ? "1 record is" : "\(Units.count(count)) records are"
        return "\(records) right\(earlier)\nnewest \(mark)"
    }

    var json: JSONValue {
        .members([
            "valid": .bool(true), "records": .integer(count),
            "first": first.map { .integer(Int64(clamping: $0.sequence)) },
            "last": last.map { .integer(Int64(clamping: $0.sequence)) }, "newest": .string(mark),
        ])
    }
}
