import ArgumentParser
import RecordModel
import ServiceClient

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

    /// Where the index is, in the form of the administration's routes.
    var place: [(name: String, value: String)] {
        [("type", type), ("field", field), ("index", index.uppercased())]
    }
}

/// `zonekeeper schema add-index`
struct SchemaAddIndexCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add-index",
        abstract: "Give a field an index.",
        discussion: """
            It is built in the background where there are records; `schema show` says how far it is. Until then \
            queries that need it are answered TRY_AGAIN_LATER.
            """)

    @OptionGroup var index: IndexArguments
    @OptionGroup var options: ClientOptions

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    func run() async throws {
        try await options.withConnection { connection in
            var parameters = try connection.schemaParameters(container: index.container)
            if dryRun { parameters.append(("dryRun", "true")) }
            let body = JSONValue.object(index.place.map { JSONValue.Member($0.name, .string($0.value)) }).serialized()
            let response = try await connection.administer(
                "POST", "schema/indexes", parameters: parameters, body: body)
            if options.json { return Console.print(response.body) }
            print(SchemaPlanReport(try response.json(), isDryRun: dryRun).text)
        }
    }
}

/// `zonekeeper schema remove-index`
struct SchemaRemoveIndexCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove-index",
        abstract: "Take an index from a field.",
        discussion: "Records stay as they are; queries that need the index are refused from then on.")

    @OptionGroup var index: IndexArguments
    @OptionGroup var options: ClientOptions

    @Flag(help: "Say what would change, and change nothing.")
    var dryRun = false

    func run() async throws {
        try await options.withConnection { connection in
            var parameters = try connection.schemaParameters(container: index.container) + index.place
            if dryRun { parameters.append(("dryRun", "true")) }
            let response = try await connection.administer("DELETE", "schema/indexes", parameters: parameters)
            if options.json { return Console.print(response.body) }
            print(SchemaPlanReport(try response.json(), isDryRun: dryRun).text)
        }
    }
}
