import ArgumentParser

/// `zonekeeper user`
struct UserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Create, change, list and delete users.",
        subcommands: [
            UserCreateCommand.self, UserUpdateCommand.self, UserListCommand.self, UserDeleteCommand.self,
        ])
}
