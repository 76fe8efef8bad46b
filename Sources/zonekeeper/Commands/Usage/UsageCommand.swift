import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper usage`
struct UsageCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "usage",
        abstract: "Show how much of its quotas a container uses, by database and user; with --zones, by zone.",
        discussion: """
            Bytes are those of the records as they are stored, their names included. --verify counts every record anew, \
            zone by zone, and compares each counter; where one differs, the exit code is 1. Without --environment, both \
            environments are shown.
            """)

    @OptionGroup var options: ClientOptions

    @Option(help: "Only this user's private database.")
    var user: String?

    @Flag(help: "Show each zone as well.")
    var zones = false

    @Flag(help: "Count again, and compare.")
    var verify = false

    func run() async throws {
        try await options.withConnection { connection in
            let answers = try await answers(on: connection)
            let report = UsageReport(answers, isVerified: verify, showsZones: zones)
            if options.json {
                Console.print(JSONValue.members(["environments": .array(answers)]).serialized())
            } else {
                print(report.text)
            }
            for warning in report.warnings { Console.note("warning: \(warning)") }
            for difference in report.differences { Console.error(difference) }
            if !report.differences.isEmpty { throw ExitCode.failure }
        }
    }

    /// What the cluster says of each environment that is asked for, all pages of it.
    private func answers(on connection: Connection) async throws -> [JSONValue] {
        let container = try connection.container()
        var answers: [JSONValue] = []
        for environment in connection.settings.environmentNamed.map({ [$0] }) ?? ["development", "production"] {
            var parameters = [(name: "container", value: container), (name: "environment", value: environment)]
            if let user { parameters.append((name: "user", value: user)) }
            if zones { parameters.append((name: "zones", value: "true")) }
            if verify { parameters.append((name: "verify", value: "true")) }
            var pages = UsagePages()
            try await connection.administerPages("usage", parameters: parameters, isSlow: verify) { pages.add($0) }
            answers.append(pages.whole)
        }
        return answers
    }
}
