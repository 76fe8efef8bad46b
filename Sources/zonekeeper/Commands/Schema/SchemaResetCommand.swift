import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper schema reset`
struct SchemaResetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Empty the development environment, and give it the production schema.",
        discussion: """
            Every record and zone of the container's development environment goes, of all users, and sync tokens \
            with them. Production, users and their preferences stay.
            """, aliases: ["reset-schema"])

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("The container's name once more: this cannot be undone.", valueName: "container"))
    var confirm: String?

    @Flag(help: "Say what would change in the schema, and change nothing.")
    var dryRun = false

    func validate() throws {
        if confirm == nil, !dryRun {
            throw ValidationError(
                "--confirm CONTAINER is missing: a reset deletes every record of the development environment; --dry-run only "
                    + "says what would change")
        }
    }

    func run() async throws {
        try await options.withConnection { connection in
            let container = try connection.container()
            if let confirm, confirm != container {
                throw ValidationError("--confirm names '\(confirm)', but the container is '\(container)'")
            }
            var parameters = [(name: "container", value: container)]
            parameters.append(dryRun ? ("dryRun", "true") : ("confirm", container))
            let response = try await connection.administer("POST", "schema/reset", parameters: parameters)
            if options.json { return Console.print(response.body) }
            let json = try response.json()
            for step in SchemaPlanReport(json, isDryRun: dryRun).steps { print(step) }
            print(
                dryRun
                    ? "nothing was changed (--dry-run)"
                    : "the development environment of \(container) is empty; its schema has version \(json.text("version")) now"
            )
        }
    }
}
