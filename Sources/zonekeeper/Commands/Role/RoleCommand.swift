import ArgumentParser

/// `zonekeeper role`
struct RoleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "role", abstract: "List the security roles of a container's environment, and say who has them.",
        discussion: """
            Roles and what they may do are the schema's (CREATE ROLE and GRANT). _world, _icloud and _creator need no \
            members.
            """,
        subcommands: [RoleListCommand.self, RoleGrantCommand.self, RoleRevokeCommand.self])
}
