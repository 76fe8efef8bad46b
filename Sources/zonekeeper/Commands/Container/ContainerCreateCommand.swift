import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper container create`
struct ContainerCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "create", abstract: "Create a container.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "Its name, such as iCloud.com.example.app (default: --container).")
    var name: String?

    func run() async throws {
        try await options.withConnection { connection in
            let name = try name ?? connection.container()
            let response = try await connection.administer(
                "POST", "containers", body: JSONValue.members(["name": .string(name)]).serialized())
            if options.json { return Console.print(response.body) }
            print("created container \(name)")
        }
    }
}
