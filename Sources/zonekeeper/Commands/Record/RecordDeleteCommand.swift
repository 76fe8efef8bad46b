import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper record delete`
struct RecordDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete records, each by its name.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Option(help: "Delete the one record only if this is still its change tag.")
    var tag: String?

    @Argument(help: "Record names, at most 200.")
    var names: [String]

    func validate() throws {
        if tag != nil, names.count != 1 { throw ValidationError("--tag is for one record") }
    }

    func run() async throws {
        let operations = names.map { name in
            JSONValue.members([
                "operationType": .string(tag == nil ? "forceDelete" : "delete"),
                "record": .members(["recordName": .string(name), "recordChangeTag": tag.map { .string($0) }]),
            ])
        }
        try await options.withConnection { connection in
            let response = try await connection.send(try place.modify(operations, on: connection))
            let records = try response.records()
            if options.json {
                Console.print(response.body)
            } else {
                for record in RecordFailures.without(records) { print("deleted \(record.text("recordName"))") }
            }
            try RecordFailures.report(in: records)
        }
    }
}
