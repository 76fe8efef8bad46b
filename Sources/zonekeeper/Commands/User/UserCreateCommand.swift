import ArgumentParser
import RecordModel

/// `zonekeeper user create`
struct UserCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create a user, who may then be given sessions.")

    @OptionGroup var options: ConnectionOptions

    @Argument(help: "A name, for administrators only; unique.")
    var name: String

    @Option(help: "By which other users may look the user up; unique.")
    var email: String?

    @Option(help: "Shown to others if the user is discoverable.")
    var givenName: String?

    @Option(help: "Shown to others if the user is discoverable.")
    var familyName: String?

    @Flag(help: "Let other users learn the names.")
    var discoverable = false

    func run() async throws {
        try await options.withConnection { connection in
            let body = JSONValue.members([
                "name": .string(name), "email": email.map { .string($0) }, "givenName": givenName.map { .string($0) },
                "familyName": familyName.map { .string($0) }, "discoverable": .bool(discoverable),
            ])
            let response = try await connection.administer("POST", "users", body: body.serialized())
            if options.json { return Console.print(response.body) }
            print("created user \(name)")
        }
    }
}
