import ArgumentParser

/// `zonekeeper user`
struct UserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user", abstract: "Create, change, list and delete users; set passwords; sign in and out.",
        subcommands: [
            UserCreateCommand.self, UserUpdateCommand.self, UserPasswordCommand.self, UserListCommand.self,
            UserDeleteCommand.self, UserSignInCommand.self, UserSignOutCommand.self,
        ])
}
