import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper schema show`
struct SchemaShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Print a container's record types, their fields and grants, and how far indexes are built.")

    @OptionGroup var options: ClientOptions

    @Argument(help: "Only these record types.")
    var types: [String] = []

    func run() async throws {
        try await options.withConnection { connection in
            let response = try await connection.administer(
                "GET", "schema/state", parameters: try connection.schemaParameters())
            if options.json { return Console.print(response.body) }
            print(try SchemaText(response.json(), types: types).text())
        }
    }
}

/// A schema with the state of its indexes, as people read it.
struct SchemaText {
    var json: JSONValue
    /// Empty is all.
    var types: [String]

    init(_ json: JSONValue, types: [String]) {
        self.json = json
        self.types = types
    }

    /// - Throws: `CommandFailure` naming a type that is not there.
    func text() throws(CommandFailure) -> String {
        let all = json["types"]?.array ?? []
        for name in types where !all.contains(where: { $0.text("name") == name }) {
            let known = all.map { $0.text("name") }.joined(separator: ", ")
            throw CommandFailure("the schema has no record type '\(name)'; it has \(known)")
        }
        let shown = all.filter { types.isEmpty || types.contains($0.text("name")) }
        let title = "\(json.text("container")), \(json.text("environment")), version \(json.text("version"))"
        return ([title] + shown.map(Self.text)).joined(separator: "\n\n")
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
