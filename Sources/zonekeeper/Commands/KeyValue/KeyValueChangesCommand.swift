import ArgumentParser
import RecordModel

/// `zonekeeper kv changes`
struct KeyValueChangesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "changes",
        abstract: "List what was set and deleted since a sync token, and the token to go on from.")

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("The token of the last time; without one, everything.", valueName: "token"))
    var since: String?

    func run() async throws {
        try await options.withConnection { connection in
            var changes: [JSONValue] = []
            var token = since
            var isMoreComing = true
            while isMoreComing {
                let response = try await connection.send(
                    try connection.preferencesRequest("changes", .members(["syncToken": token.map { .string($0) }]))
                ).checked().json()
                changes += response["changes"]?.array ?? []
                token = response["syncToken"]?.string
                isMoreComing = response["moreComing"] == .bool(true)
            }
            if options.json {
                return Console.print(
                    JSONValue.members(["changes": .array(changes), "syncToken": token.map { .string($0) }]).serialized()
                )
            }
            print(KeyValueTable.text(changes))
            print("token \(token ?? "")")
        }
    }
}
