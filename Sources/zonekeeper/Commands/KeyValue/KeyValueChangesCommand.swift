import ArgumentParser
import RecordModel
import ServiceClient

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
            let (changes, token) = try await connection.preferenceChanges(since: since)
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
