import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper kv get`
struct KeyValueGetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Print the value of a key; of several keys, a table.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The keys.")
    var keys: [String]

    func run() async throws {
        try await options.withConnection { connection in
            let json = JSONValue.members(["keys": .array(keys.map { .string($0) })])
            let response = try await connection.send(try connection.preferencesRequest("get", json)).checked()
            if options.json { return Console.print(response.body) }
            let values = try response.json()["values"]?.array ?? []
            if keys.count == 1, let value = values.first?["value"]?["value"] {
                print(value.simplified.plainText)
            } else if !values.isEmpty {
                print(KeyValueTable.text(values))
            }
            let missing = keys.filter { key in !values.contains { $0.text("key") == key } }
            guard missing.isEmpty else {
                throw CommandFailure("no value for \(missing.map { "'\($0)'" }.joined(separator: ", "))")
            }
        }
    }
}
