import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper container rotate-key`
struct ContainerRotateKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate-key",
        abstract: "Give a container a new key for encrypted fields.",
        discussion: """
            Values saved from then on are sealed with it. What earlier keys sealed stays as it is and can be read; \
            save a record's encrypted fields again to seal them anew.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "The container (default: --container).")
    var name: String?

    func run() async throws {
        try await options.withConnection { connection in
            let name = try name ?? connection.container()
            let response = try await connection.administer("POST", "containers/keys", parameters: [("container", name)])
            if options.json { return Console.print(response.body) }
            print("container \(name) seals with key \(try response.json().text("key")) now")
        }
    }
}
