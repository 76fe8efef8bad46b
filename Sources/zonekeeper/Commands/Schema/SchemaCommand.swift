import ArgumentParser

/// `zonekeeper schema`
struct SchemaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema",
        abstract: "Import, export, deploy and look at a container's schema.",
        discussion: """
            A container has a schema for development, which may be changed freely, and one for production, which \
            only grows: `schema deploy` adds to it what development has.
            """,
        subcommands: [
            SchemaShowCommand.self, SchemaImportCommand.self, SchemaExportCommand.self, SchemaAddIndexCommand.self,
            SchemaRemoveIndexCommand.self, SchemaDeployCommand.self, SchemaResetCommand.self,
        ])
}
