import ArgumentParser

/// `zonekeeper record`
struct RecordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Save, get, query, delete and import records.",
        subcommands: [
            RecordSaveCommand.self, RecordGetCommand.self, RecordQueryCommand.self, RecordDeleteCommand.self,
            RecordImportCommand.self,
        ])
}
