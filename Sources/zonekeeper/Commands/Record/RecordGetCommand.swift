import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper record get`
struct RecordGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "get", abstract: "Print records, each by its name.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Argument(help: "Record names, at most 200.")
    var names: [String]

    func run() async throws {
        try await options.withConnection { connection in
            let records = names.map { JSONValue.members(["recordName": .string($0)]) }
            let response = try await connection.send(
                try place.request("records/lookup", ["records": .array(records)], on: connection))
            let found = try response.records()
            if options.json {
                Console.print(response.body)
            } else {
                for record in RecordFailures.without(found) { print(RecordTable.details(record)) }
            }
            try RecordFailures.report(in: found)
        }
    }
}
