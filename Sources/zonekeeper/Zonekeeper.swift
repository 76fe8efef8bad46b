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
            RequestsCommand.self, TelemetryCommand.self, AlertsCommand.self, JobCommand.self,
            AuditCommand.self, ZoneCommand.self, RecordCommand.self, AssetCommand.self, KeyValueCommand.self,
            SubscriptionCommand.self, NotificationsCommand.self, WebhookCommand.self, ActAsCommand.self,
            LoadCommand.self, SamplePlacesCommand.self,
        ])

    static func main() async {
        if let problem = CommandWords.problem(Array(CommandLine.arguments.dropFirst())) {
            Console.error(problem)
            Foundation.exit(2)
        }
        var code: Int32 = 0
        do {
            let command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                var command = command
                try command.run()
            }
        } catch {
            code = report(error)
        }
        if let problem = Console.outputProblem {
            Console.error("standard output lacks what could not be written: \(problem)")
            code = max(code, 1)
        }
        Foundation.exit(code)
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
        let message = fullMessage(for: error).replacingPrefix("Error: ", with: "error: ")
        Console.note(CommandWords.withoutFarGuess(message))
        return 2
    }
}

/// What is said of words that nothing here is called.
enum CommandWords {
    /// The most letters by which a word may differ from what is taken to be meant.
    private static let distanceMax = 2

    /// What is wrong with the commands that a command line names; nil where there are such.
    static func problem(_ arguments: [String]) -> String? {
        var type: any ParsableCommand.Type = Zonekeeper.self
        var path = "zonekeeper"
        for word in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
            let commands = type.configuration.subcommands
            if commands.isEmpty || word.hasPrefix("-") { return nil }
            guard let next = commands.first(where: { names(of: $0).contains(word) }) else {
                let near = commands.flatMap(names).min { distance($0, word) < distance($1, word) }
                let meant = near.flatMap { distance($0, word) > distanceMax ? nil : "is `\(path) \($0)` meant? " }
                let list = path.replacingPrefix("zonekeeper", with: "zonekeeper help")
                return "there is no command `\(path) \(word)`: \(meant ?? "")`\(list)` lists those that there are"
            }
            (type, path) = (next, "\(path) \(word)")
        }
        return nil
    }

    private static func names(of command: any ParsableCommand.Type) -> [String] {
        [command.configuration.commandName].compactMap(\.self) + command.configuration.aliases
    }

    /// A message about an unknown option, without the guess at another that is not like it.
    static func withoutFarGuess(_ message: String) -> String {
        guard let match = message.firstMatch(of: /(Unknown option '-*(.+?)')\. Did you mean '-*(.+?)'\?/),
            distance(String(match.2), String(match.3)) > distanceMax
        else { return message }
        return message.replacingOccurrences(of: match.0, with: match.1)
    }

    /// How many letters are to be put in, left out or changed to make one word of another.
    private static func distance(_ first: String, _ second: String) -> Int {
        let second = Array(second)
        var row = Array(0...second.count)
        for (number, letter) in first.enumerated() {
            var diagonal = row[0]
            row[0] = number + 1
            for column in second.indices {
                let change = diagonal + (letter == second[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(change, diagonal + 1, row[column] + 1)
            }
        }
        return row[second.count]
    }
}
