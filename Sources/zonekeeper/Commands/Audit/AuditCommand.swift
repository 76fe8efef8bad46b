import ArgumentParser
import Directory

/// `zonekeeper audit`
struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Show the audit log, and verify that nothing in it was changed.",
        subcommands: [AuditShowCommand.self, AuditVerifyCommand.self])
}

/// Which of the two audit logs a command reads.
struct AuditChoice: ParsableArguments {
    @Flag(
        help: "The log of refusals, failed sign-ins and schemas that grew by saves; it is a chain of hashes of its own."
    )
    var requests = false

    var log: AuditLog { requests ? .requests : .changes }
}
