import ArgumentParser
import RecordModel

/// `zonekeeper user list`
struct UserListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the users.")

    @OptionGroup var options: ConnectionOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer("GET", "users")
            if options.json { return Console.print(response.body) }
            var table = Table("USER", "EMAIL", "GIVEN NAME", "FAMILY NAME", "DISCOVERABLE", "CREATED")
            for user in try response.json()["users"]?.array ?? [] {
                table.add([
                    user.text("name"), user.text("email"), user.text("givenName"), user.text("familyName"),
                    user["discoverable"] == .bool(true) ? "yes" : "no", user.time("created"),
                ])
            }
            print(table.text)
        }
    }
}
