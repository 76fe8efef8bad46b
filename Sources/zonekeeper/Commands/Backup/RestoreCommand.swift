import ArgumentParser

/// `zonekeeper restore`
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Put a backup back as the data of a cluster that has none.",
        discussion: """
            The configuration must have the backup's cluster name and nodes, and no node may have data. Zones \
            get new incarnations at the next start: change tags and sync tokens that clients hold are then \
            answered as expired. A node that joined after the backup was made must be stopped and its folder deleted \
            before: it would hold the restored data for an old copy, and have the others fetch its own.
            """)

    @OptionGroup var options: ConfigOptions

    @Option(help: ArgumentHelp("The backup's folder.", valueName: "folder"))
    var from: String

    @Flag(
        help: "Put certificates, the encryption key and the administrator's token back as well, where they are missing."
    )
    var withSecrets = false

    func run() async throws {
        let layout = try options.layout()
        let manifest = try ClusterRestore(
            layout: layout, source: Paths.absolute(from), withSecrets: withSecrets
        ).run()
        print("restored \(manifest.nodes.count) nodes as of \(Times.text(manifest.created)) in \(layout.data)")
        if !Paths.exists(layout.encryptionKey) {
            print(
                "put the cluster's encryption key back as \(layout.encryptionKey) first: encrypted fields open with no other"
            )
        }
        print("stop all nodes that joined later, and delete their folders: they would take this for an old copy")
        print("start them with `zonekeeper cluster up --config \(options.config)`")
    }
}
