import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper container`
struct ContainerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "container", abstract: "Create and list containers, and rotate their keys.",
        subcommands: [ContainerCreateCommand.self, ContainerListCommand.self, ContainerRotateKeyCommand.self])
}

/// `zonekeeper container create`
struct ContainerCreateCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "create", abstract: "Create a container.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "Its name, such as iCloud.com.example.app (default: --container).")
    var name: String?

    func run(on connection: Connection) async throws {
        let name = try name ?? connection.container()
        let response = try await connection.administer("POST", "containers", body: .members(["name": .string(name)]))
        try show(response, "created container \(name)")
    }
}

/// `zonekeeper container list`
struct ContainerListCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the containers.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("GET", "containers")
        let columns: [Table.Column] = [
            ("CONTAINER", { $0.text("name") }), ("CREATED", { $0.time("created") }), ("KEYS", { $0.text("keys") }),
        ]
        try show(response, Table(response.entries("containers"), columns).text)
    }
}

/// `zonekeeper container rotate-key`
struct ContainerRotateKeyCommand: ClientCommand {
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

    func run(on connection: Connection) async throws {
        let name = try name ?? connection.container()
        let response = try await connection.administer("POST", "containers/keys", parameters: ["container": name])
        try show(response, "container \(name) seals with key \(try response.json().text("key")) now")
    }
}
