import ArgumentParser
import RecordModel

/// `zonekeeper kv list`
struct KeyValueListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List every key with its value, in order of the keys.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            var entries: [JSONValue] = []
            var usage: JSONValue = .null
            var after: String?
            repeat {
                let response = try await connection.send(
                    try connection.preferencesRequest("list", .members(["after": after.map { .string($0) }]))
                ).checked().json()
                entries += response["values"]?.array ?? []
                usage = response["usage"] ?? .null
                after = response["after"]?.string
            } while after != nil
            if options.json {
                return Console.print(JSONValue.members(["values": .array(entries), "usage": usage]).serialized())
            }
            print(KeyValueTable.text(entries))
            print("\(usage.text("keys")) keys, \(usage.text("bytes")) bytes")
        }
    }
}
