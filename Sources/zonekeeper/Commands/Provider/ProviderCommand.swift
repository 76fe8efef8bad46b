import ArgumentParser

/// `zonekeeper provider`
struct ProviderCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "provider", abstract: "Add, list and remove OpenID Connect issuers that users may sign in with.",
        subcommands: [ProviderAddCommand.self, ProviderListCommand.self, ProviderRemoveCommand.self])
}
