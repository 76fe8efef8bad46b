import ArgumentParser
import RecordModel

/// `zonekeeper user create`
struct UserCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create a user, who may then be given sessions.")

    @OptionGroup var options: ConnectionOptions

    @Argument(help: "A name, for administrators only; unique.")
    var name: String

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer(
                "POST", "users", body: JSONValue.members(["name": .string(name)]).serialized())
            if options.json { return Console.print(response.body) }
            print("created user \(name)")
        }
    }
}
