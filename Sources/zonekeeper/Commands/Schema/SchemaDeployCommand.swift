import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper schema deploy`
struct SchemaDeployCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deploy",
        abstract: "Add to the production schema what the development schema has.",
        discussion: """
            Types, fields, indexes and grants are added. What production alone has stays and is listed; a field \
            whose type differs is refused, and then nothing is changed. Records are not copied.
            """)

    @OptionGroup var options: ClientOptions

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    @Option(help: "Change the production schema only if it is still at this version.")
    var expectedVersion: UInt64?

    func run() async throws {
        try await options.withConnection { connection in
            var parameters = [(name: "container", value: try connection.container())]
            if dryRun { parameters.append(("dryRun", "true")) }
            if let expectedVersion { parameters.append(("expectedVersion", "\(expectedVersion)")) }
            let response = try await connection.administer("POST", "schema/deploy", parameters: parameters)
            if options.json { return Console.print(response.body) }
            print(SchemaPlanReport(try response.json(), isDryRun: dryRun, showsKept: true).text)
        }
    }
}
