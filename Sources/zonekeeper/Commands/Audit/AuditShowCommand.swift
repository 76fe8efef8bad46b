import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper audit show`
struct AuditShowCommand: AsyncParsableCommand {
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

    func validate() throws {
        if [last != nil, after != nil, all].count(where: \.self) > 1 {
            throw ValidationError("only one of --last, --after and --all is expected")
        }
        if let last, !(1...1_000_000).contains(last) { throw ValidationError("--last: 1 to 1,000,000 is expected") }
    }

    func run() async throws {
        try await options.withConnection { connection in
            let pages = AuditPages(connection: connection, log: choice.log)
            var start = after ?? 0
            if after == nil, !all {
                let newest = try await pages.newest()
                start = newest - min(newest, UInt64(last ?? 50))
            }
            // Page by page: the log may be long, and its beginning is of use before its end is there.
            var printer = AuditPrinter(isJSON: options.json)
            try await pages.each(after: start) { Console.printPart(printer.text(of: $0.records)) }
            Console.printPart(printer.end)
        }
    }
}

/// Records of the audit log as they are printed, in as many pieces as there are pages.
struct AuditPrinter {
    private let isJSON: Bool
    /// Of the table's columns.
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
