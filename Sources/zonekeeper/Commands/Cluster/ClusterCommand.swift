import ArgumentParser

/// `zonekeeper cluster`
struct ClusterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cluster",
        abstract:
            "Start, look at and stop the nodes of a configuration file on this machine; change who is in a cluster.",
        subcommands: [
            ClusterUpCommand.self, ClusterStatusCommand.self, ClusterDownCommand.self, ClusterAddCommand.self,
            ClusterRemoveCommand.self, ClusterReplaceCommand.self, ClusterTransferCommand.self,
        ])
}

/// The configuration file that a cluster's commands are about.
struct ConfigOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The cluster's configuration file. Its `data` folder is relative to the file's own folder.",
            valueName: "file"))
    var config: String

    func layout() throws(CommandFailure) -> ClusterLayout { try ClusterLayout.read(config) }
}
