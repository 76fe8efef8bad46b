import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper kv delete`
struct KeyValueDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete keys, all or none; a key that is not there does no harm.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The keys.")
    var keys: [String]

    func run() async throws {
        try await options.withConnection { connection in
            let writes = keys.map { JSONValue.members(["key": .string($0), "value": .null]) }
            let response = try await connection.send(
                try connection.preferencesRequest("set", .members(["writes": .array(writes)]))
            ).checked()
            if options.json { return Console.print(response.body) }
            print("deleted \(keys.joined(separator: ", "))")
        }
    }
}
