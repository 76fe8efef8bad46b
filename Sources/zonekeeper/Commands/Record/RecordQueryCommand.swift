import ArgumentParser
import RecordModel

/// `zonekeeper record query`
struct RecordQueryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Print the records of a type for which every filter holds.",
        discussion: """
            A filter is 'field comparator value': the comparator is = != < <= > >= or one of CloudKit's words, \
            such as BEGINS_WITH or IN (with commas between the values). The schema must have the index: \
            QUERYABLE for equality, SORTABLE for order; QUERYABLE on ___recordID for all records of a type.
            """)

    @OptionGroup var options: ConnectionOptions
    @OptionGroup var place: RecordOptions

    @Option(help: "The record type.")
    var type: String

    @Option(parsing: .unconditionalSingleValue, help: "A filter; may be repeated, then all must hold.")
    var filter: [String] = []

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp("A field to sort by; -field is the greatest first. May be repeated.", valueName: "field"))
    var sort: [String] = []

    @Option(help: "How many records at most.")
    var limit = 50

    @Flag(help: "All records, however many.")
    var all = false

    @Option(help: ArgumentHelp("The fields to print, with commas between them.", valueName: "fields"))
    var desiredKeys: String?

    func validate() throws {
        for text in filter { _ = try FilterArgument(parsing: text) }
        if limit < 1 { throw ValidationError("--limit: 1 or more is expected") }
    }

    func run() async throws {
        let filters = try filter.map { try FilterArgument(parsing: $0).json }
        let query = JSONValue.members([
            "recordType": .string(type), "filterBy": filters.isEmpty ? nil : .array(filters),
            "sortBy": sort.isEmpty ? nil : .array(sort.map { SortArgument($0).json }),
        ])
        try await options.withConnection { connection in
            let (records, marker) = try await pages(of: query, on: connection)
            if options.json {
                return Console.print(
                    JSONValue.members(["records": .array(records), "continuationMarker": marker.map { .string($0) }])
                        .serialized())
            }
            print(records.isEmpty ? "no records" : RecordTable.table(records))
            if marker != nil { Console.note("(there are more: see --limit and --all)") }
        }
    }

    /// Page after page, up to the limit.
    private func pages(
        of query: JSONValue, on connection: Connection
    ) async throws -> (records: [JSONValue], continuationMarker: String?) {
        let keys = desiredKeys.map { $0.split(separator: ",").map { JSONValue.string(String($0)) } }
        var records: [JSONValue] = []
        var marker: String?
        repeat {
            let wanted = all ? Limits.recordsPerPageMax : min(limit - records.count, Limits.recordsPerPageMax)
            let request = try place.request(
                "records/query",
                [
                    "query": query, "resultsLimit": .integer(Int64(wanted)), "desiredKeys": keys.map { .array($0) },
                    "continuationMarker": marker.map { .string($0) },
                ], on: connection)
            let page = try await connection.send(request).checked().json()
            records += page["records"]?.array ?? []
            marker = page["continuationMarker"]?.string
        } while marker != nil && (all || records.count < limit)
        return (records, marker)
    }
}
