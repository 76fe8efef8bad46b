import ArgumentParser
import RecordModel
import ServiceClient

struct ContainerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "container",
        abstract: "Create, list, describe, delete and restore containers, and rotate their keys.",
        subcommands: [
            ContainerCreateCommand.self, ContainerListCommand.self, ContainerDeleteCommand.self,
            ContainerRestoreCommand.self, ContainerDescribeCommand.self, ContainerRotateKeyCommand.self,
        ])
}

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

struct ContainerListCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the containers.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let columns: [Table.Column] = [
            .text("CONTAINER", "name"), .time("CREATED", "created"), .text("KEYS", "keys"),
            .init("STATE", { Self.state(of: $0) }), .text("NOTE", "note"),
        ]
        try list(try await connection.administer("GET", "containers"), "containers", columns)
    }

    private static func state(of container: JSONValue) -> String {
        if container["deleted"] == nil { return container["hidden"] == .bool(true) ? "live, hidden" : "live" }
        if container["restorableUntil"] == nil { return "deleted, being removed" }
        return "deleted, to be restored until \(container.time("restorableUntil"))"
    }
}

struct ContainerDeleteCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a container; for a week it can be restored.",
        discussion: """
            Every request of its clients is refused at once, on all nodes. Nothing of its data is touched for seven \
            days, in which `container restore` brings all of it back; then its records, preferences, schemas, tokens \
            and keys are removed for good, and its name is free.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "The container.")
    var name: String

    @Option(help: ArgumentHelp("The container's name once more.", valueName: "name"))
    var confirm: String

    func validate() throws {
        guard confirm == name else {
            throw ValidationError("--confirm: the container's name is expected once more, '\(name)', not '\(confirm)'")
        }
    }

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "DELETE", "containers", parameters: ["name": name, "confirm": confirm])
        try show(
            response,
            "deleted container \(name); until \(try response.json().time("restorableUntil")) "
                + "`zonekeeper container restore \(name)` brings it back")
    }
}

struct ContainerRestoreCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Bring a deleted container back, with all that it had.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The container.")
    var name: String

    func run(on connection: Connection) async throws {
        let response = try await connection.administer("POST", "containers/restore", parameters: ["name": name])
        try show(response, "restored container \(name)")
    }
}

struct ContainerDescribeCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "describe", abstract: "Hide a container from the console's lists or show it, or give it a note.",
        discussion: "It changes what the team sees, for all of it, and nothing of what the container's clients may do.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The container (default: --container).")
    var name: String?

    @Flag(inversion: .prefixedNo, help: "Leave it out of the console's lists.")
    var hidden: Bool?

    @Option(help: "A note of at most 200 characters; '' takes it away.")
    var note: String?

    func validate() throws {
        if hidden == nil, note == nil { throw ValidationError("--hidden, --no-hidden or --note is expected") }
    }

    func run(on connection: Connection) async throws {
        let name = try name ?? connection.container()
        let response = try await connection.administer(
            "PATCH", "containers",
            body: .members([
                "name": .string(name), "hidden": hidden.map { .bool($0) }, "note": .given(note),
            ]))
        let json = try response.json()
        let note = json.text("note")
        try show(
            response,
            "container \(name) is \(json["hidden"] == .bool(true) ? "hidden" : "shown")"
                + (note.isEmpty ? "" : ": \(note)"))
    }
}

struct ContainerRotateKeyCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate-key", abstract: "Give a container a new key for encrypted fields.",
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
