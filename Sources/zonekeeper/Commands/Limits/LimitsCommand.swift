import ArgumentParser

/// `zonekeeper limits`
struct LimitsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limits",
        abstract: "Show and set what containers are held to, and explain what a request would meet.",
        subcommands: [LimitsShowCommand.self, LimitsSetCommand.self, LimitsExplainCommand.self])
}

/// Whose limits a command is about.
struct LimitsScope: ParsableArguments {
    @Flag(help: "The defaults of the cluster, which count where a container has no value of its own.")
    var cluster = false

    /// The container; nil for the cluster's defaults.
    func container(of connection: Connection) throws -> String? { cluster ? nil : try connection.container() }

    func parameters(of connection: Connection) throws -> [(name: String, value: String)] {
        try container(of: connection).map { [("container", $0)] } ?? []
    }
}
