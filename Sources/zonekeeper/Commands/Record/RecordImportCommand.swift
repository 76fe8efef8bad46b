import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper record import`
struct RecordImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Save the lines of a file as records, in batches.",
        discussion: """
            Each line is a JSON object of fields, plain ({"title": "Hello"}) or as Web Services have them \
            ({"title": {"value": "Hello", "type": "STRING"}}), with a "recordName" or without one. A batch is \
            repeated under one idempotency key while nodes fail over, so none is saved twice.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Argument(help: "The file; `-` for standard input.")
    var file: String

    @Option(help: "The record type.")
    var type: String

    @Option(help: "Records in a request, at most \(Limits.operationsMax).")
    var batch = Limits.operationsMax

    @Option(
        help: "What to do with a record whose name is there already: create (an error), forceUpdate or forceReplace.")
    var existing = RecordImport.Existing.forceReplace

    @Option(help: "The line to begin with, from 1, to go on after a failure.")
    var startLine = 1

    func validate() throws {
        guard (1...Limits.operationsMax).contains(batch) else {
            throw ValidationError("--batch: 1 to \(Limits.operationsMax) is expected")
        }
        if startLine < 1 { throw ValidationError("--start-line: 1 or more is expected") }
    }

    func run() async throws {
        try await options.withConnection { connection in
            let saved = try await RecordImport(
                options: place, recordType: type, existing: existing, batchCount: batch, startLine: startLine,
                path: file
            ).run(on: connection)
            if options.json { Console.print(JSONValue.members(["imported": .integer(Int64(saved))]).serialized()) }
        }
    }
}

extension RecordImport.Existing: ExpressibleByArgument {}
