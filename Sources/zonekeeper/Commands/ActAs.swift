import ArgumentParser
import Directory
import RecordModel
import ServiceClient

struct ActAsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "act-as", abstract: "Be a user for some minutes, to see what they see: begin, list and end it.",
        discussion: """
            An admin is let in with a reason, for 15 minutes at most, to read only unless --write is said. Encrypted \
            values stay hidden, and the audit log has both names. In production the limit actAsProductionMinutes must \
            be set first.
            """,
        subcommands: [ActAsStartCommand.self, ActAsListCommand.self, ActAsStopCommand.self])
}

struct ActAsStartCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "start", abstract: "Be a user of the container's environment, and print the id for --act-as.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var user: String

    @Option(help: "Why, for the audit log.")
    var reason: String

    @Option(help: "How long, at most 15; usually as long as is allowed.")
    var minutes: Int?

    @Flag(help: "Change things, too.")
    var write = false

    func validate() throws {
        if let minutes { try check("--minutes", minutes, 1...Int(ActingSession.minutesMax)) }
    }

    func run(on connection: Connection) async throws {
        let body = JSONValue.members([
            "container": .string(try connection.container()),
            "environment": .string(connection.settings.environment), "user": .string(user),
            "reason": .string(reason), "write": .bool(write), "minutes": minutes.map { .integer(Int64($0)) },
        ])
        let response = try await connection.administer("POST", "act-as", body: body)
        let json = try response.json()
        try show(
            response,
            """
            you are user \(json.text("user")) until \(json.time("expires")), to \(write ? "read and write" : "read only")
            id  \(json.text("id"))
            """)
    }
}

struct ActAsListCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List who is let in as which user at this moment.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        try list(
            try await connection.administer("GET", "act-as"), "acting", nothing: "nobody acts as a user",
            [
                .text("ID", "id"), .text("ADMINISTRATOR", "administrator"), .text("USER", "user"),
                .init("CONTAINER", { "\($0.text("container")) (\($0.text("environment")))" }), .flag("WRITES", "write"),
                .time("UNTIL", "expires"), .text("REASON", "reason"),
            ])
    }
}

struct ActAsStopCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "stop", abstract: "End it at once, on every node.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The id.")
    var id: String

    func run(on connection: Connection) async throws {
        try show(try await connection.administer("DELETE", "act-as", parameters: ["id": id]), "ended \(id)")
    }
}
