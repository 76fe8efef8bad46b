import ArgumentParser

/// `zonekeeper schema`
struct SchemaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Import and export a container's schema, in CloudKit's schema language.",
        subcommands: [SchemaImportCommand.self, SchemaExportCommand.self])
}
