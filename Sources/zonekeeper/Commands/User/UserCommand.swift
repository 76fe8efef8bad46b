import ArgumentParser

/// `zonekeeper user`
struct UserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Create, list and delete users.",
        subcommands: [UserCreateCommand.self, UserListCommand.self, UserDeleteCommand.self])
}
