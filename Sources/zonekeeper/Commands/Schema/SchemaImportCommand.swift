import ArgumentParser
import RecordModel
import ServiceClient
import Storage

/// `zonekeeper schema import`
struct SchemaImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Make a container's schema what a file says.",
        discussion: """
            The file is the whole schema that is wanted: what it leaves out is removed, unless --additive is \
            said; the type Users always stays. What would lose data is refused, unless --allow-data-loss is said. \
            It happens wholly or not at all. Indexes that are new on types with records are built in the \
            background: see `schema show`.
            """, aliases: ["import-schema"])

    @OptionGroup var options: ClientOptions

    @Argument(help: "The schema, such as schema.ckdb; `-` for standard input.")
    var file: String

    @Flag(help: "Keep the types, fields and indexes that the file leaves out.")
    var additive = false

    @Flag(help: "Remove types and fields together with what records have in them.")
    var allowDataLoss = false

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
            throw ValidationError("--validate goes with --additive only: it changes nothing anyway")
        }
    }

    func run() async throws {
        let text = try InputFile.read(file)
        try await options.withConnection { connection in
            var parameters = try connection.schemaParameters()
            for (name, flag) in [("additive", additive), ("allowDataLoss", allowDataLoss), ("dryRun", dryRun)]
            where flag {
                parameters.append((name: name, value: "true"))
            }
            if let expectedVersion { parameters.append((name: "expectedVersion", value: "\(expectedVersion)")) }
            // Wrapped, as the schema's own text may begin with anything.
            let body = JSONValue.members(["schema": .string(text)]).serialized()
            let response = try await connection.administer(
                "POST", isCheck ? "schema/validate" : "schema", parameters: parameters, body: body)
            if options.json { return Console.print(response.body) }
            let plan = SchemaPlanReport(try response.json(), isDryRun: dryRun || isCheck)
            print(isCheck ? plan.validationText(of: file) : plan.text)
        }
    }
}

/// What a change of a schema does, as people read it.
struct SchemaPlanReport {
    var json: JSONValue
    var isDryRun: Bool
    /// Whether the steps are told that are not done: worth knowing where nobody asked to leave them out.
    var showsKept: Bool

    init(_ json: JSONValue, isDryRun: Bool, showsKept: Bool = false) {
        self.json = json
        self.isDryRun = isDryRun
        self.showsKept = showsKept
    }

    /// The steps, each on its line, with what it does besides.
    var steps: [String] {
        let changes = (json["changes"]?.array ?? []).map { change in
            let consequence = change["consequence"]?.string.map { " (\($0))" } ?? ""
            return (isDryRun ? "would " : "") + change.text("change") + consequence
        }
        let kept = showsKept ? json["kept"]?.array ?? [] : []
        return changes + kept.map { "not done, as \(json.text("environment")) keeps what it has: \($0.text("change"))" }
    }

    private var isEmpty: Bool { json["changes"]?.array?.isEmpty != false }

    /// The steps and the version that the schema has.
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

extension Connection {
    /// The container and environment, as the administration's schema routes name them.
    func schemaParameters(container: String? = nil) throws -> [(name: String, value: String)] {
        [("container", try container ?? self.container()), ("environment", settings.environment)]
    }
}

/// A text file that a command was given.
enum InputFile {
    /// - Parameter path: `-` is standard input.
    static func read(_ path: String) throws(CommandFailure) -> String {
        let bytes: [UInt8]
        do throws(DiskError) {
            bytes = path == "-" ? Self.standardInput() : try readWholeFile(at: path)
        } catch {
            throw CommandFailure("\(path) cannot be read: \(error.reason)")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandFailure("\(path) is not UTF-8 text")
        }
        return text
    }

    private static func standardInput() -> [UInt8] {
        var bytes: [UInt8] = []
        while let line = readLine(strippingNewline: false) { bytes += Array(line.utf8) }
        return bytes
    }
}
