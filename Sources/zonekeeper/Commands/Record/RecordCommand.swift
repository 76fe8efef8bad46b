import ArgumentParser

/// `zonekeeper record`
struct RecordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Save, get, query, follow, delete and import records.",
        subcommands: [
            RecordSaveCommand.self, RecordGetCommand.self, RecordQueryCommand.self, RecordChangesCommand.self,
            RecordDeleteCommand.self, RecordImportCommand.self,
        ])
}
