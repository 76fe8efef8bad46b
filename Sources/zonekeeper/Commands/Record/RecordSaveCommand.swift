import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper record save`
struct RecordSaveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "save",
        abstract: "Create a record; with --tag or --force, change one.",
        discussion: """
            Fields are field=value, which the server converts to the schema's type, or field:TYPE=value with \
            STRING, INT64, DOUBLE, TIMESTAMP, BYTES (base64), LOCATION (latitude,longitude), REFERENCE (a record \
            name), one of these with _LIST, DELETE_SELF (a reference; the record goes when its target goes), \
            VALIDATE (a reference; the target cannot go), JSON or NULL, which clears the field.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Option(help: "The record type.")
    var type: String

    @Option(help: "The record name; without one the server makes one.")
    var name: String?

    @Option(help: "Change the record, if this is still its change tag.")
    var tag: String?

    @Option(help: "The name of the parent record, of the same zone; '' clears it.")
    var parent: String?

    @Flag(help: "Change the record whatever its change tag, or create it.")
    var force = false

    @Option(
        help: ArgumentHelp("Read the fields from a JSON object in this file; `-` is standard input.", valueName: "file")
    )
    var jsonFile: String?

    @Argument(help: ArgumentHelp("Fields.", valueName: "field=value"))
    var fields: [String] = []

    func validate() throws {
        if jsonFile != nil, !fields.isEmpty {
            throw ValidationError("either fields or --json-file is expected, not both")
        }
        if tag != nil, force { throw ValidationError("either --tag or --force is expected, not both") }
        if tag != nil || force, name == nil {
            throw ValidationError("--tag and --force need --name, the record to change")
        }
        for field in fields { _ = try FieldArgument(parsing: field) }
    }

    func run() async throws {
        let (nameInFile, fields) = try givenFields()
        let kind = tag != nil ? "update" : force ? "forceUpdate" : "create"
        let record = JSONValue.members([
            "recordName": (name ?? nameInFile).map { .string($0) }, "recordType": .string(type),
            "recordChangeTag": tag.map { .string($0) },
            "parent": parent.map { $0.isEmpty ? .null : .members(["recordName": .string($0)]) }, "fields": fields,
        ])
        try await options.withConnection { connection in
            let response = try await connection.send(
                try place.modify([.members(["operationType": .string(kind), "record": record])], on: connection))
            let records = try response.records()
            if options.json { Console.print(response.body) }
            try RecordFailures.report(in: records)
            guard !options.json, let saved = records.first else { return }
            print(
                "saved \(saved.text("recordName")) (\(saved.text("recordType"))), tag \(saved.text("recordChangeTag"))")
        }
    }

    private func givenFields() throws -> (recordName: String?, fields: JSONValue) {
        guard let jsonFile else {
            let members = try fields.map { text in
                let field = try FieldArgument(parsing: text)
                return JSONValue.Member(field.name, field.json)
            }
            return (nil, .object(members))
        }
        let text = try InputFile.read(jsonFile)
        let json: JSONValue
        do throws(JSONError) {
            json = try JSONParser.parse(Array(text.utf8))
        } catch {
            throw CommandFailure("\(jsonFile) is not JSON: \(error)")
        }
        return try FieldsObject.read(json)
    }
}
