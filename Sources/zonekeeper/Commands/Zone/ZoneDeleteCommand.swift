import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper zone delete`
struct ZoneDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete zones of the user's private database with every record in them.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The zones' names, at most 200.")
    var names: [String]

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await ZoneRequests.modify("delete", names, on: connection)
            let zones = try response.json()["zones"]?.array ?? []
            if options.json {
                Console.print(response.body)
                return try ZoneRequests.failures(in: zones)
            }
            try ZoneRequests.report(zones, done: "deleted")
        }
    }
}
