import ArgumentParser

/// `zonekeeper audit`
struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Show the audit log, and verify that nothing in it was changed.",
        subcommands: [AuditShowCommand.self, AuditVerifyCommand.self])
}
