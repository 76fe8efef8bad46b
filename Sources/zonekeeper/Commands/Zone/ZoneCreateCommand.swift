import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper zone create`
struct ZoneCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create zones in the user's private database; one that is there stays as it is.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The zones' names, at most 200.")
    var names: [String]

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await ZoneRequests.modify("create", names, on: connection)
            let zones = try response.json()["zones"]?.array ?? []
            if options.json {
                Console.print(response.body)
                return try ZoneRequests.failures(in: zones)
            }
            try ZoneRequests.report(zones, done: "created")
        }
    }
}
