import ArgumentParser

/// `zonekeeper certs`
struct CertsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "certs",
        abstract: "Make, renew and list the certificates of a cluster.",
        subcommands: [CertsCreateCommand.self, CertsRenewCommand.self, CertsStatusCommand.self])
}

/// Which folder of certificates a command is about.
struct CertsOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The cluster's configuration file; the folder is `certs` in its `data`.", valueName: "file"))
    var config: String?

    @Option(help: ArgumentHelp("The folder of the certificates.", valueName: "folder"))
    var directory: String?

    func validate() throws {
        if (config == nil) == (directory == nil) { throw ValidationError("either --config or --directory is expected") }
    }

    /// The folder, and the configuration where that names it.
    func folder() throws -> (path: String, layout: ClusterLayout?) {
        if let directory { return (Paths.absolute(directory), nil) }
        guard let config else { throw ValidationError("either --config or --directory is expected") }
        let layout = try ClusterLayout.read(config)
        return (layout.certificates, layout)
    }
}
