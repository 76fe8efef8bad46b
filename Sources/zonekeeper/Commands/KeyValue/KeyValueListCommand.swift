import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper kv list`
struct KeyValueListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List every key with its value, in order of the keys.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let (entries, usage) = try await connection.preferences()
            if options.json {
                return Console.print(JSONValue.members(["values": .array(entries), "usage": usage]).serialized())
            }
            print(KeyValueTable.text(entries))
            print("\(usage.text("keys")) keys, \(usage.text("bytes")) bytes")
        }
    }
}
