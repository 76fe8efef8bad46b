import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper user list`
struct UserListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the users.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let users = try await connection.administerList("users", "users")
            if options.json { return Console.print(JSONValue.members(["users": .array(users)]).serialized()) }
            var table = Table("USER", "EMAIL", "GIVEN NAME", "FAMILY NAME", "DISCOVERABLE", "CREATED")
            for user in users {
                table.add([
                    user.text("name"), user.text("email"), user.text("givenName"), user.text("familyName"),
                    user["discoverable"] == .bool(true) ? "yes" : "no", user.time("created"),
                ])
            }
            print(table.text)
        }
    }
}
