import ArgumentParser
import Directory
import Foundation
import RecordModel
import ServiceClient
import WebServices

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Show the audit log, and verify that nothing in it was changed.",
        subcommands: [AuditShowCommand.self, AuditExportCommand.self, AuditVerifyCommand.self])
}

struct AuditChoice: ParsableArguments {
    @Flag(
        help: "The log of refusals, failed sign-ins and schemas that grew by saves; it is a chain of hashes of its own."
    )
    var requests = false

    var log: AuditLog { requests ? .requests : .changes }
}

struct AuditShowCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show what administrators changed and who signed in, or what was refused; the newest records last.",
        discussion: "A request's id finds it in the logs of the nodes it crossed.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var choice: AuditChoice

    @Option(help: ArgumentHelp("How many of the newest records (usually 50).", valueName: "count"))
    var last: Int?

    @Option(help: ArgumentHelp("Every record with a higher number instead.", valueName: "sequence"))
    var after: UInt64?

    @Flag(help: "Every record instead.")
    var all = false

    @OptionGroup var filters: AuditFilters

    func validate() throws {
        if [last != nil, after != nil, all].count(where: \.self) > 1 {
            throw ValidationError("only one of --last, --after and --all is expected")
        }
        if let last, !(1...1_000_000).contains(last) { throw ValidationError("--last: 1 to 1,000,000 is expected") }
    }

    func run(on connection: Connection) async throws {
        let pages = AuditPages(connection: connection, log: choice.log, filters: filters)
        var printer = AuditPrinter(isJSON: options.json)
        if after == nil, !all {
            Console.printPart(printer.text(of: try await pages.newest(last ?? 50)))
        } else {
            // Page by page: the log may be long, and its beginning is of use before its end is there.
            try await pages.each(after: after ?? 0) { Console.printPart(printer.text(of: $0.records)) }
        }
        Console.printPart(printer.end)
    }
}

struct AuditFilters: ParsableArguments {
    @Option(help: ArgumentHelp("Only what this actor did, such as 'administrator ada (console)'.", valueName: "name"))
    var actor: String?

    @Option(help: ArgumentHelp("Only this action, such as 'schema.deploy'.", valueName: "name"))
    var action: String?

    @Option(help: ArgumentHelp("Only records with this text in a column, in any case.", valueName: "text"))
    var containing: String?
}

struct AuditExportCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write the records of an audit log that match to a file, the oldest first.",
        discussion: """
            csv is a table for spreadsheets, lines has the JSON of a record on each line. Without filters it is the \
            whole log, with the hashes by which `audit verify` computes its chain.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var choice: AuditChoice
    @OptionGroup var filters: AuditFilters

    @Option(help: "How records are written.")
    var format = ListExport.Format.csv

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file to write; `-`, which is usual, is standard output.", valueName: "file"))
    var output = "-"

    func run(on connection: Connection) async throws {
        let pages = AuditPages(connection: connection, log: choice.log, filters: filters)
        try await OutputFile(path: output).write { file in
            // Page by page, however long the log is.
            var export = ListExport(.audit, as: format)
            try file.write(contentsOf: export.head)
            try await pages.each(after: 0) {
                try file.write(contentsOf: export.page(.members(["records": .array($0.records)])))
            }
        }
        if output != "-" { try show(.members(["file": .string(output)]), "wrote \(output)") }
    }
}

extension ListExport.Format: ExpressibleByArgument {}

/// Records of the audit log as they are printed, in as many pieces as there are pages.
struct AuditPrinter {
    private let isJSON: Bool
    private var widths: [Int] = []
    private var isEmpty = true

    init(isJSON: Bool) { self.isJSON = isJSON }

    mutating func text(of records: [JSONValue]) -> String {
        guard !records.isEmpty else { return "" }
        defer { isEmpty = false }
        guard isJSON else { return Self.table(records).lines(widths: &widths) + "\n" }
        let texts = records.map { String(decoding: $0.serialized(), as: UTF8.self) }
        return (isEmpty ? #"{"records":["# : ",\n") + texts.joined(separator: ",\n")
    }

    /// What comes after the last page.
    var end: String {
        guard isJSON else { return isEmpty ? "no records\n" : "" }
        return (isEmpty ? #"{"records":["# : "") + "]}\n"
    }

    private static func table(_ records: [JSONValue]) -> Table {
        var table = Table("RECORD", "TIME", "ACTOR", "ACTION", "SUBJECT", "OUTCOME", "ADDRESS", "REQUEST")
        for record in records {
            let count = record.amount("count") ?? 1
            table.add([
                record.text("sequence"), record.time("time"), record.text("actor"), record.text("action"),
                record.text("subject").shortened(to: 60),
                record.text("outcome").shortened(to: 80) + (count > 1 ? " (\(Units.count(count)) times)" : ""),
                record.text("address"), record.text("requestID"),
            ])
        }
        return table
    }
}

struct AuditVerifyCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Compute the audit log's chain of hashes here, from its records, and say where it breaks.",
        discussion: """
            Each record's hash covers the one before it, so none can be changed, taken out or put in without breaking \
            the chain. Who can write to every node's disk could make a whole new chain: keep the newest hash somewhere \
            else from time to time, and name it with --expect later. The exit code is 1 where something is wrong.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var choice: AuditChoice

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "A record's number and its hash of 64 hexadecimal digits, as an earlier `audit verify` said; repeatable.",
            valueName: "sequence:hash")
    )
    var expect: [AuditMark] = []

    func run(on connection: Connection) async throws {
        var chain = AuditChain(expecting: expect)
        try await AuditPages(connection: connection, log: choice.log).each(after: 0) { page in
            guard !page.isPart else {
                throw CommandFailure(
                    "only an admin of the whole cluster sees every record, and so can compute the chain of hashes")
            }
            for (position, json) in page.records.enumerated() {
                let record = try AuditRecord(json)
                if position == 0 { try AuditChain.check(first: record, of: page) }
                try chain.take(record)
            }
        }
        try chain.finish()
        try show(chain.json, chain.text)
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
        guard parts.count == 2, let sequence = UInt64(parts[0]), sequence > 0, let hash = Hex.decode(parts[1]),
            hash.count == 32
        else { return nil }
        self.sequence = sequence
        self.hash = hash
    }
}

struct AuditChain {
    private var expected: [AuditMark]
    private var first: AuditRecord?
    private var last: AuditRecord?
    private var count: Int64 = 0

    init(expecting expected: [AuditMark]) { self.expected = expected }

    /// - Throws: `CommandFailure` if a page does not begin where the server keeps that it must: records are gone that
    ///   are not past retention.
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
                    ? "the audit log was changed: record \(broken) is not what it was, or does not follow the one "
                        + "before it; \(good)"
                    : "the audit log was changed: record \(broken) is missing, record \(record.sequence) follows; "
                        + "\(good)")
        }
        if record.sequence == 1, record.previousHash != AuditRecord.firstPreviousHash {
            throw CommandFailure("the audit log was changed: record 1 follows a record that never was")
        }
        for mark in expected where mark.sequence == record.sequence && mark.hash != record.hash {
            throw CommandFailure(
                "the audit log is not the one that was: record \(mark.sequence) has the hash "
                    + "\(Hex.encode(record.hash)), not "
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
                "record \(mark.sequence) is past retention: the log begins with record \(first.sequence), so it "
                    + "cannot be compared")
        }
        throw CommandFailure(
            "the audit log is not the one that was: record \(mark.sequence) is missing, the newest is "
                + "\(last?.sequence ?? 0)")
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

struct AuditAnswer {
    var records: [JSONValue]
    /// Where the log goes on; nil at its end.
    var cursor: UInt64?
    /// Whether some records were left out, because they were not looked for or the caller may not see them.
    var isPart = false
    /// The number that the first record must have, where the server says it.
    var firstSequence: UInt64?
    /// The hash that the first record must follow: also what is kept of records past retention.
    var firstPreviousHash: [UInt8]?
}

/// The audit log as an administrator reads it, page by page.
struct AuditPages {
    var connection: Connection
    var log = AuditLog.changes
    var filters: AuditFilters?

    private static let recordsPerPage = 500

    /// - Throws: `CommandFailure` where the server says that more are coming, and not where.
    private func page(
        after: UInt64? = nil, before: UInt64? = nil, order: String? = nil, limit: Int = recordsPerPage
    ) async throws -> AuditAnswer {
        let response = try await connection.administer(
            "GET", "audit",
            parameters: [
                "log": log.rawValue, "after": after.map { String($0) }, "before": before.map { String($0) },
                "order": order, "limit": String(limit),
                "actor": filters?.actor, "action": filters?.action, "containing": filters?.containing,
            ]
        ).json()
        let records = try needed(response["records"]?.array, "records")
        let cursor = response.unsigned("cursor")
        guard cursor != nil || response["moreComing"] != .bool(true) else {
            throw CommandFailure(
                "the answer says that more of the audit log is coming, and not from where. Does this node run an "
                    + "earlier version?")
        }
        return AuditAnswer(
            records: records, cursor: cursor, isPart: response["examined"] != nil,
            firstSequence: response.unsigned("firstSequence"),
            firstPreviousHash: response["firstPreviousHash"]?.string.flatMap { Hex.decode($0) })
    }

    /// Hands over every record after `sequence`, a page at a time.
    func each(after sequence: UInt64, _ body: (AuditAnswer) throws -> Void) async throws {
        var sequence = sequence
        while true {
            let answer = try await page(after: sequence)
            try body(answer)
            guard let cursor = answer.cursor else { return }
            guard cursor > sequence else {
                throw CommandFailure(
                    "the audit log does not go on after record \(sequence), though it says that it does")
            }
            sequence = cursor
        }
    }

    /// The newest records, up to so many, the oldest of them first.
    func newest(_ count: Int) async throws -> [JSONValue] {
        var records: [JSONValue] = []
        var before: UInt64?
        repeat {
            let answer = try await page(
                before: before, order: "newest", limit: min(count - records.count, Self.recordsPerPage))
            records += answer.records
            guard let cursor = answer.cursor, cursor < before ?? .max else { break }
            before = cursor
        } while records.count < count
        return records.reversed()
    }
}

extension JSONValue {
    fileprivate func unsigned(_ key: String) -> UInt64? { amount(key).flatMap { UInt64(exactly: $0) } }
}

extension AuditRecord {
    /// Reads a record of the administration's answer, with everything that its hash is made of.
    /// - Throws: `CommandFailure` naming the member at fault.
    init(_ json: JSONValue) throws(CommandFailure) {
        let sequence = json.unsigned("sequence") ?? 0
        func missing(_ key: String) -> CommandFailure {
            CommandFailure("record \(sequence) of the audit log has no right '\(key)', so it cannot be verified")
        }
        func text(_ key: String) throws(CommandFailure) -> String {
            guard let text = json[key]?.string else { throw missing(key) }
            return text
        }
        func bytes(_ key: String) throws(CommandFailure) -> [UInt8] {
            guard let bytes = Hex.decode(try text(key)) else { throw missing(key) }
            return bytes
        }
        guard sequence > 0 else { throw missing("sequence") }
        guard let time = json.amount("time") else { throw missing("time") }
        guard let count = json.unsigned("count") else { throw missing("count") }
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
