import ArgumentParser
import ServiceClient

/// `zonekeeper user delete`
struct UserDeleteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a user and the user's sessions; records stay.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name.")
    var name: String

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("DELETE", "users", parameters: [("name", name)])
            if options.json { return Console.print(response.body) }
            print("deleted user \(name)")
        }
    }
}
