import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper role list`
struct RoleListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the roles with their members.")

    @OptionGroup var options: ClientOptions

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer(
                "GET", "roles",
                parameters: [
                    ("container", try connection.container()), ("environment", connection.settings.environment),
                ])
            if options.json { return Console.print(response.body) }
            let roles = try response.json()["roles"]?.array ?? []
            print(roles.isEmpty ? "no roles" : Self.table(roles))
        }
    }

    static func table(_ roles: [JSONValue]) -> String {
        var table = Table("ROLE", "MEMBERS")
        for role in roles {
            let members = role["members"]?.array ?? []
            table.add([
                role.text("name"), members.isEmpty ? "(none)" : members.map(\.plainText).joined(separator: ", "),
            ])
        }
        return table.text
    }
}
