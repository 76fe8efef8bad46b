import ArgumentParser

/// `zonekeeper backup`
struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copy a whole stopped cluster into a folder.",
        discussion: """
            Every node of the configuration must have its data on this machine, and be stopped. The copies are \
            read again and verified before the backup counts as one. Encrypted fields are sealed in it: without \
            the cluster's encryption key they cannot be read again.
            """)

    @OptionGroup var options: ConfigOptions

    @Option(help: ArgumentHelp("The backup's folder, missing or empty.", valueName: "folder"))
    var to: String

    @Flag(help: "Copy certificates, their keys, the encryption key and the administrator's token as well.")
    var withSecrets = false

    func run() async throws {
        let target = Paths.absolute(to)
        let manifest = try ClusterBackup(
            layout: try options.layout(), target: target, withSecrets: withSecrets
        ).run()
        let bytes = manifest.files.reduce(0) { $0 + $1.size }
        print(
            "backed up \(manifest.nodes.count) nodes, \(manifest.files.count) files, \(ByteProgress.size(bytes)) in \(target)"
        )
        if !withSecrets {
            print("keep a copy of the encryption key elsewhere: encrypted fields of this backup open with no other")
        }
    }
}
