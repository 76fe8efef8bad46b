import ArgumentParser
import RecordModel
import ServiceClient
import Storage

struct SchemaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schema", abstract: "Import, export, deploy and look at a container's schema.",
        discussion: """
            A container has a schema for development, which may be changed freely, and one for production, which \
            only grows: `schema deploy` adds to it what development has.
            """,
        subcommands: [
            SchemaShowCommand.self, SchemaImportCommand.self, SchemaExportCommand.self, SchemaAddIndexCommand.self,
            SchemaRemoveIndexCommand.self, SchemaDeployCommand.self, SchemaResetCommand.self,
            SchemaHistoryCommand.self, SchemaRestoreCommand.self, SchemaCodeCommand.self,
        ])
}

struct SchemaShowCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Print a container's record types, their fields and grants, and how far indexes are built.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "Only these record types.")
    var types: [String] = []

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace("GET", "schema/state")
        try show(response, try SchemaText.text(response.json(), types: types))
    }
}

enum SchemaText {
    /// - Parameter types: those to show; empty is all.
    /// - Throws: `CommandFailure` naming a type that is not there.
    static func text(_ json: JSONValue, types: [String]) throws(CommandFailure) -> String {
        let all = json["types"]?.array ?? []
        for name in types where !all.contains(where: { $0.text("name") == name }) {
            let known = all.map { $0.text("name") }.joined(separator: ", ")
            throw CommandFailure("the schema has no record type '\(name)'; it has \(known)")
        }
        let shown = all.filter { types.isEmpty || types.contains($0.text("name")) }
        let title = "\(json.text("container")), \(json.text("environment")), version \(json.text("version"))"
        return ([title] + shown.map(text)).joined(separator: "\n\n")
    }

    private static func text(of type: JSONValue) -> String {
        let grants = (type["grants"]?.array ?? []).map { grant in
            let permissions = (grant["permissions"]?.array ?? []).compactMap(\.string).joined(separator: ", ")
            return "\(permissions) to \(grant.text("role"))"
        }
        let heading = type.text("name") + (grants.isEmpty ? "" : "  (\(grants.joined(separator: "; ")))")
        let fields = type["fields"]?.array ?? []
        guard !fields.isEmpty else { return heading + "\n  (no fields)" }
        var table = Table("FIELD", "TYPE", "INDEXES")
        for field in fields {
            let indexes = (field["indexes"]?.array ?? []).map(Self.index).joined(separator: ", ")
            table.add([field.text("name"), field.text("type"), indexes])
        }
        return heading + "\n" + table.text.split(separator: "\n").map { "  " + $0 }.joined(separator: "\n")
    }

    /// Such as `SORTABLE (building, 40%)`.
    private static func index(_ json: JSONValue) -> String {
        if json["ready"] == .bool(true) { return json.text("index") }
        guard case .integer(let done)? = json["done"], case .integer(let total)? = json["total"], total > 0 else {
            return "\(json.text("index")) (building)"
        }
        // Never 100 before it is ready.
        return "\(json.text("index")) (building, \(min(99, max(0, done) * 100 / total))%)"
    }
}

struct SchemaImportCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Make a container's schema what a file says.",
        discussion: """
            The file is the whole schema that is wanted: what it leaves out is removed, unless --additive is \
            said; the type Users always stays. What would lose data is refused, unless --allow-data-loss is said. \
            It happens wholly or not at all. Indexes that are new on types with records are built in the \
            background: see `schema show`. Production keeps what it has: what the file leaves out is listed as not \
            done, and the exit code is 1 if that is a permission. Take permissions away with --revoke-grants.
            """, aliases: ["import-schema"])

    @OptionGroup var options: ClientOptions

    @Argument(help: "The schema, such as schema.ckdb; `-` for standard input.")
    var file: String

    @Flag(help: "Keep the types, fields and indexes that the file leaves out.")
    var additive = false

    @Flag(help: "Remove types and fields together with what records have in them.")
    var allowDataLoss = false

    @Flag(help: "In production: take the permissions away that the file does not grant on the types in it.")
    var revokeGrants = false

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    @Flag(
        name: .customLong("validate"),
        help: "Only check the file: that it is a schema, and that the container's can become it. Changes nothing.")
    var isCheck = false

    @Option(help: "Change the schema only if it is still at this version.")
    var expectedVersion: UInt64?

    func validate() throws {
        if isCheck, allowDataLoss || dryRun || expectedVersion != nil {
            throw ValidationError("--validate goes with --additive and --revoke-grants only: it changes nothing anyway")
        }
        if additive, revokeGrants {
            throw ValidationError("--additive keeps all grants and --revoke-grants does not: give one of them")
        }
    }

    func run(on connection: Connection) async throws {
        let text = try InputFile.read(file)
        let response = try await connection.administerPlace(
            "POST", isCheck ? "schema/validate" : "schema",
            parameters: [
                "additive": additive.parameter, "revokeGrants": revokeGrants.parameter,
                "allowDataLoss": allowDataLoss.parameter, "dryRun": dryRun.parameter,
                "expectedVersion": expectedVersion.map(String.init),
            ],
            // Wrapped, as the schema's own text may begin with anything.
            body: .members(["schema": .string(text)]))
        let plan = SchemaPlanReport(
            try response.json(), isDryRun: dryRun || isCheck,
            showsKept: !additive && connection.settings.environment == "production")
        try show(response, isCheck ? plan.validationText(of: file) : plan.text)
        if plan.keepsGrants {
            throw CommandFailure("permissions that the file does not grant were kept; --revoke-grants takes them away")
        }
    }
}

struct SchemaPlanReport {
    private let json: JSONValue
    private let isDryRun: Bool
    private let showsKept: Bool

    /// - Parameter showsKept: whether the steps are told that are not done, where nobody asked to leave them out.
    init(_ json: JSONValue, isDryRun: Bool, showsKept: Bool = false) {
        (self.json, self.isDryRun, self.showsKept) = (json, isDryRun, showsKept)
    }

    var steps: [String] {
        let changes = (json["changes"]?.array ?? []).map { change in
            let consequence = change["consequence"]?.string.map { " (\($0))" } ?? ""
            return (isDryRun ? "would " : "") + change.text("change") + Self.count(of: change) + consequence
        }
        let kept = showsKept ? json["kept"]?.array ?? [] : []
        return changes + kept.map { "not done, as \(json.text("environment")) keeps what it has: \($0.text("change"))" }
    }

    /// How many records lose something; empty where that is not said.
    private static func count(of change: JSONValue) -> String {
        let (count, most) = (change.amount("records"), change.amount("recordsMax"))
        guard let records = count ?? most else { return "" }
        return ": \(most == nil ? "" : "at most ")\(Units.count(records)) record\(records == 1 ? "" : "s")"
    }

    /// Whether a permission stays although the file does not grant it, and nobody asked for that.
    var keepsGrants: Bool { showsKept && (json["kept"]?.array ?? []).contains { $0["revokesGrant"] == .bool(true) } }

    private var isEmpty: Bool { json["changes"]?.array?.isEmpty != false }

    var text: String {
        let schema = json["environment"] == nil ? "the schema" : "the \(json.text("environment")) schema"
        let end =
            if isEmpty {
                "nothing to change: \(schema) is at version \(json.text("version"))"
            } else if isDryRun {
                "nothing was changed (--dry-run)"
            } else {
                "\(schema) has version \(json.text("version")) now"
            }
        return (steps + [end]).joined(separator: "\n")
    }

    func validationText(of file: String) -> String {
        let count = json.text("types")
        return (["\(file) is a schema with \(count) record type\(count == "1" ? "" : "s")"] + steps)
            .joined(separator: "\n")
    }
}

struct SchemaExportCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Print a container's schema, in CloudKit's schema language.",
        aliases: ["export-schema"])

    @OptionGroup var options: ClientOptions

    @Option(help: ArgumentHelp("Write it to a file instead.", valueName: "file"))
    var output: String?

    @Option(help: "The schema as this version was, as `schema history` shows it.")
    var ofVersion: UInt64?

    func run(on connection: Connection) async throws {
        let response = try await connection.administerPlace(
            "GET", "schema", parameters: ["version": ofVersion.map(String.init)])
        guard let output else { return Console.print(response.body) }
        do throws(DiskError) {
            try replaceFile(at: output, with: response.body)
        } catch {
            throw CommandFailure("\(output) cannot be written: \(error.reason)")
        }
        print("wrote \(output)")
    }
}

/// What an index is on: the arguments of `schema add-index` and `schema remove-index`.
struct IndexArguments: ParsableArguments {
    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The record type.")
    var type: String

    @Argument(help: "The field; system fields are such as ___recordID, ___createTime, ___modTime and ___createdBy.")
    var field: String

    @Argument(
        help: "QUERYABLE (equality, lists; all records by ___recordID), SORTABLE (ranges, order) or SEARCHABLE (words)."
    )
    var index: String

    func validate() throws {
        guard IndexOptions.named.contains(where: { $0.word == index.uppercased() }) else {
            throw ValidationError("INDEX: QUERYABLE, SORTABLE or SEARCHABLE is expected, not '\(index)'")
        }
    }
}

struct SchemaAddIndexCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "add-index", abstract: "Give a field an index.",
        discussion: """
            It is built in the background where there are records; `schema show` says how far it is. Until then \
            queries that need it are answered TRY_AGAIN_LATER.
            """)

    @OptionGroup var index: IndexArguments
    @OptionGroup var options: ClientOptions

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "POST", "schema/indexes",
            parameters: [
                "container": index.container, "environment": connection.settings.environment,
                "dryRun": dryRun.parameter,
            ],
            body: .members([
                "type": .string(index.type), "field": .string(index.field), "index": .string(index.index.uppercased()),
            ]))
        try show(response, SchemaPlanReport(try response.json(), isDryRun: dryRun).text)
    }
}

struct SchemaRemoveIndexCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove-index", abstract: "Take an index from a field.",
        discussion: "Records stay as they are; queries that need the index are refused from then on.")

    @OptionGroup var index: IndexArguments
    @OptionGroup var options: ClientOptions

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "DELETE", "schema/indexes",
            parameters: [
                "container": index.container, "environment": connection.settings.environment, "type": index.type,
                "field": index.field, "index": index.index.uppercased(), "dryRun": dryRun.parameter,
            ])
        try show(response, SchemaPlanReport(try response.json(), isDryRun: dryRun).text)
    }
}

struct SchemaDeployCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "deploy", abstract: "Add to the production schema what the development schema has.",
        discussion: """
            Types, fields, indexes and grants are added. What production alone has stays and is listed; a field \
            whose type differs is refused, and then nothing is changed. Records are not copied.
            """)

    @OptionGroup var options: ClientOptions

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    @Option(help: "Change the production schema only if it is still at this version.")
    var expectedVersion: UInt64?

    func run(on connection: Connection) async throws {
        let response = try await connection.administer(
            "POST", "schema/deploy",
            parameters: [
                "container": try connection.container(), "dryRun": dryRun.parameter,
                "expectedVersion": expectedVersion.map(String.init),
            ])
        try show(response, SchemaPlanReport(try response.json(), isDryRun: dryRun, showsKept: true).text)
    }
}

struct SchemaResetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset", abstract: "Empty the development environment, and give it the production schema.",
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
                "--confirm CONTAINER is missing: a reset deletes every record of the development environment; "
                    + "--dry-run only says what would change")
        }
    }

    func run(on connection: Connection) async throws {
        let container = try connection.container()
        if let confirm, confirm != container {
            throw ValidationError("--confirm names '\(confirm)', but the container is '\(container)'")
        }
        let response = try await connection.administer(
            "POST", "schema/reset",
            parameters: [
                "container": container, "dryRun": dryRun.parameter, "confirm": dryRun ? nil : container,
            ])
        try show(response, Self.text(try response.json(), isDryRun: dryRun))
    }

    static func text(_ json: JSONValue, isDryRun: Bool) -> String {
        let steps = SchemaPlanReport(json, isDryRun: isDryRun).steps
        let records = json.amount("records").map { ": \(Units.count($0)) now" } ?? ""
        let lines =
            isDryRun
            ? ["would delete the records of all users\(records)"] + steps + ["nothing was changed (--dry-run)"]
            : steps + [
                "the development environment of \(json.text("container")) is empty; its schema has version "
                    + "\(json.text("version")) now"
            ]
        return lines.joined(separator: "\n")
    }
}

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
                .text("VERSION", "version"), .time("TIME", "time"), .text("CAUSE", "cause"), .text("TYPES", "types"),
                .text("BY", "actor"),
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
