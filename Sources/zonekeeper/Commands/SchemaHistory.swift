import ArgumentParser
import RecordModel
import ServiceClient

struct SchemaHistoryCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "List the versions of a schema that are kept: when each came, and by whom.",
        discussion: """
            The newest 100 are kept, and 4 MB of them. `schema export --of-version N` prints one, and `schema restore N` \
            makes the schema what it was.
            """)

    @OptionGroup var options: ClientOptions

    @Option(help: "Only versions below this one.")
    var before: UInt64?

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace(
            "GET", "schema/history", parameters: ["before": before.map(String.init)])
        try list(
            response, "versions", nothing: "no earlier version is kept",
            [
                ("VERSION", { $0.text("version") }), ("TIME", { $0.time("time") }), ("CAUSE", { $0.text("cause") }),
                ("TYPES", { $0.text("types") }), ("BY", { $0.text("actor") }),
            ])
    }
}

struct SchemaRestoreCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Make a schema what an earlier version of it was.",
        discussion: """
            It is an import of that version's text, as a new version: see it first with --dry-run. Records' values do \
            not come back. Production keeps what the version lacks.
            """)

    @OptionGroup var options: ClientOptions

    @Argument(help: "The version, as `schema history` shows it.")
    var version: UInt64

    @Flag(help: "Remove types and fields together with what records have in them.")
    var allowDataLoss = false

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    @Option(help: "Change the schema only if it is still at this version.")
    var expectedVersion: UInt64?

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace(
            "POST", "schema/restore",
            parameters: [
                "version": String(version), "allowDataLoss": allowDataLoss.parameter, "dryRun": dryRun.parameter,
                "expectedVersion": expectedVersion.map(String.init),
            ])
        let plan = SchemaPlanReport(
            try response.json(), isDryRun: dryRun, showsKept: connection.settings.environment == "production")
        try show(response, plan.text)
    }
}

struct SchemaCodeCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "code", abstract: "Print Swift code for the records of a schema.",
        discussion: "For each record type a struct over a CKRecord, with a property for each field.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "Only this record type.")
    var type: String?

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace("GET", "schema/code", parameters: ["type": type])
        Console.print(response.body)
    }
}
