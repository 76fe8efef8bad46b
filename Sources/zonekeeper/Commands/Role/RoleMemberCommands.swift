import ArgumentParser
import RecordModel
import ServiceClient

/// Which role, and whose.
struct RoleMemberArguments: ParsableArguments {
    @Argument(help: "The role, as the schema names it.")
    var role: String

    @Argument(help: "The user's name.")
    var user: String

    func validate() throws {
        if ["_world", "_icloud", "_creator"].contains(role) {
            throw ValidationError(
                "\(role) has no members: it is everybody's, every user's or the record's maker's by itself")
        }
    }
}

/// `zonekeeper role grant`
struct RoleGrantCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grant", abstract: "Give a user a role; on all nodes when the command ends.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var member: RoleMemberArguments

    func run() async throws {
        try await options.withConnection { connection in
            let body = JSONValue.members([
                "container": .string(try connection.container()),
                "environment": .string(connection.settings.environment), "role": .string(member.role),
                "user": .string(member.user),
            ])
            let response = try await connection.administer("POST", "roles/members", body: body.serialized())
            if options.json { return Console.print(response.body) }
            print("user \(member.user) has the role \(member.role)")
        }
    }
}

/// `zonekeeper role revoke`
struct RoleRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Take a role from a user; on all nodes when the command ends.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var member: RoleMemberArguments

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer(
                "DELETE", "roles/members",
                parameters: [
                    ("container", try connection.container()), ("environment", connection.settings.environment),
                    ("role", member.role), ("user", member.user),
                ])
            if options.json { return Console.print(response.body) }
            print("user \(member.user) has the role \(member.role) no more")
        }
    }
}
