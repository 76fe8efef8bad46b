import ArgumentParser

/// `zonekeeper key`
struct KeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key", abstract: "Make, list and revoke server-to-server keys.",
        discussion: """
            A server key signs requests for a container's public data, as CloudKit Web Services has it (ECDSA, P-256, \
            SHA-256), and acts as the user it belongs to. The cluster knows public keys only.
            """,
        subcommands: [KeyCreateCommand.self, KeyListCommand.self, KeyRevokeCommand.self])
}
