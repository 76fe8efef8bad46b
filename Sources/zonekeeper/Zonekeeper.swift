import ArgumentParser
import Foundation

@main
struct Zonekeeper: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "zonekeeper",
        abstract: "A record store that speaks CloudKit Web Services, on one node or as a cluster.",
        discussion: """
            Run one node with `zonekeeper serve`, or three on this machine with
            `zonekeeper cluster up --config cluster.example.json`.
            """,
        version: "0.1.0",
        subcommands: [
            ServeCommand.self, ClusterCommand.self, CertsCommand.self, BackupCommand.self, RestoreCommand.self,
            ContainerCommand.self, SchemaCommand.self, UserCommand.self, AdministratorCommand.self,
            ConsoleCommand.self, TokenCommand.self, KeyCommand.self,
            RoleCommand.self, ProviderCommand.self, SignUpCommand.self, LimitsCommand.self, UsageCommand.self,
            RequestsCommand.self, TelemetryCommand.self,
            JobCommand.self,
            AuditCommand.self, ZoneCommand.self, RecordCommand.self, AssetCommand.self, KeyValueCommand.self,
            SubscriptionCommand.self, NotificationsCommand.self, WebhookCommand.self, ActAsCommand.self,
            LoadCommand.self, SamplePlacesCommand.self,
        ])

    static func main() async {
        do {
            let command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                var command = command
                try command.run()
            }
        } catch {
            Foundation.exit(report(error))
        }
    }

    /// Says on standard error what went wrong, in one line where the command failed.
    /// - Returns: the exit code: 0 for help, 1 for a command that failed, 2 for one that was typed wrongly.
    private static func report(_ error: any Error) -> Int32 {
        if let failure = error as? CommandFailure {
            Console.error(failure.message)
            return 1
        }
        if let mistake = error as? ValidationError {
            Console.error(mistake.message)
            return 2
        }
        let code = exitCode(for: error)
        if code.isSuccess {
            print(fullMessage(for: error))
            return 0
        }
        if let quiet = error as? ExitCode { return quiet.rawValue }
        guard code == .validationFailure else {
            Console.error("\(error)")
            return 1
        }
        Console.note(fullMessage(for: error).replacingPrefix("Error: ", with: "error: "))
        return 2
    }
}
