import ArgumentParser
import RecordModel
import ServiceClient

struct RoleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "role", abstract: "List the security roles of a container's environment, and say who has them.",
        discussion: """
            Roles and what they may do are the schema's (CREATE ROLE and GRANT). _world, _icloud and _creator need no \
            members.
            """,
        subcommands: [
            RoleListCommand.self, RoleExplainCommand.self, RoleGrantCommand.self, RoleRevokeCommand.self,
        ])
}

struct RoleExplainCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Say what a user may do with public records of each type, and by which roles.",
        discussion: "Where a role is _creator alone, it is their own records. Private data is its owner's alone.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "The user's name; without it, somebody who has not signed in.")
    var user: String?

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace("GET", "roles/explain", parameters: ["user": user])
        try list(response, "types", nothing: "no record types", Self.columns)
    }

    static var columns: [Table.Column] {
        func roles(_ permission: String) -> (JSONValue) -> String {
            { type in
                let roles = (type[permission]?.array ?? []).map(\.plainText)
                return roles.isEmpty ? "no" : roles == ["_creator"] ? "own, by _creator" : roles.joined(separator: ", ")
            }
        }
        return [
            .text("TYPE", "name"), .init("CREATE", roles("create")), .init("READ", roles("read")),
            .init("WRITE", roles("write")),
        ]
    }
}

struct RoleListCommand: ClientCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List the roles with their members.")

    @OptionGroup var options: ClientOptions

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace("GET", "roles")
        try list(response, "roles", nothing: "no roles", Self.columns)
    }

    static var columns: [Table.Column] {
        func members(_ role: JSONValue) -> String {
            let members = role["members"]?.array ?? []
            return members.isEmpty ? "(none)" : members.map(\.plainText).joined(separator: ", ")
        }
        return [.text("ROLE", "name"), .init("MEMBERS", members)]
    }
}

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

struct RoleGrantCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "grant", abstract: "Give a user a role; on all nodes when the command ends.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var member: RoleMemberArguments

    func run(on connection: Connection) async throws {
        let body = JSONValue.members([
            "container": .string(try connection.container()),
            "environment": .string(connection.settings.environment), "role": .string(member.role),
            "user": .string(member.user),
        ])
        let response = try await connection.administer("POST", "roles/members", body: body)
        try show(response, "user \(member.user) has the role \(member.role)")
    }
}

struct RoleRevokeCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Take a role from a user; on all nodes when the command ends.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var member: RoleMemberArguments

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace(
            "DELETE", "roles/members", parameters: ["role": member.role, "user": member.user])
        try show(response, "user \(member.user) has the role \(member.role) no more")
    }
}
