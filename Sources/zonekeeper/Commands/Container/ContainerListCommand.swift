import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper container list`
struct ContainerListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the containers.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("GET", "containers")
            if options.json { return Console.print(response.body) }
            var table = Table("CONTAINER", "CREATED", "KEYS")
            for container in try response.json()["containers"]?.array ?? [] {
                table.add([container.text("name"), container.time("created"), container.text("keys")])
            }
            print(table.text)
        }
    }
}
