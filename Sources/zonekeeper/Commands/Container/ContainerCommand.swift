import ArgumentParser

/// `zonekeeper container`
struct ContainerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "container", abstract: "Create and list containers, and rotate their keys.",
        subcommands: [
            ContainerCreateCommand.self, ContainerListCommand.self, ContainerRotateKeyCommand.self,
        ])
}
