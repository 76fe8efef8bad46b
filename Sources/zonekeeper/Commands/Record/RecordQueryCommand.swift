import ArgumentParser
import RecordModel
import ServiceClient

/// `zonekeeper record query`
struct RecordQueryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "query",
        abstract: "Print the records of a type for which every filter holds.",
        discussion: """
            A filter is 'field comparator value': the comparator is = != < <= > >= or one of CloudKit's words:

              code IN AD,FR                          also NOT_IN; commas between the values
              timeZone BEGINS_WITH Europe/           also NOT_BEGINS_WITH
              tags LIST_CONTAINS red                 also LIST_CONTAINS_ALL and LIST_CONTAINS_ANY (with commas), \
            LIST_MEMBER_BEGINS_WITH, and NOT_ before each
              comment CONTAINS_ALL_TOKENS north sea  also CONTAINS_ANY_TOKENS; word* is a prefix; the field * is \
            every searchable one
              coordinates NEAR 42.5,1.5,100km        latitude, longitude and distance in m or km

            A value in quotation marks or brackets is read as JSON. System fields are recordName, \
            createdTimestamp, modifiedTimestamp, createdUserRecordName, modifiedUserRecordName and parent.

            The schema must have the index: QUERYABLE for equality, prefixes, lists and places, SORTABLE for order, \
            SEARCHABLE for words; QUERYABLE on ___recordID for all records of a type. `zonekeeper schema \
            add-index` adds one.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Option(help: "The record type.")
    var type: String

    @Option(parsing: .unconditionalSingleValue, help: "A filter; may be repeated, then all must hold.")
    var filter: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "A place: with a distance only records within it, and `--sort distance` sorts by the distance from it.",
            valueName: "field=latitude,longitude[,distance]"))
    var near: String?

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A field to sort by, or with --near `distance`; -field is the greatest first. May be repeated.",
            valueName: "field"))
    var sort: [String] = []

    @Flag(help: "Search all zones of the private database.")
    var zoneWide = false

    @Option(help: "How many records at most.")
    var limit = 50

    @Flag(help: "All records, however many, page after page.")
    var all = false

    @Option(help: ArgumentHelp("The fields to print, with commas between them.", valueName: "fields"))
    var desiredKeys: String?

    @Flag(help: "Say how the query was run: the index it walked, what it looked at, what it found.")
    var explain = false

    func validate() throws {
        for text in filter { _ = try FilterArgument(parsing: text) }
        if limit < 1 { throw ValidationError("--limit: 1 or more is expected") }
        if zoneWide, place.database != .private || place.zone != ZoneKey.defaultZoneName {
            throw ValidationError(
                place.database == .private
                    ? "--zone-wide searches all zones: leave --zone out"
                    : "--zone-wide goes with --database private: the public database has one zone only")
        }
        if zoneWide, explain {
            throw ValidationError("--explain is about one zone: each zone of --zone-wide is searched on its own shard")
        }
        if let near {
            let argument = try NearArgument(parsing: near)
            if argument.circle.radius == nil, !sortsByDistance {
                throw ValidationError("--near without a distance goes with --sort distance; or say \(near),100km")
            }
        }
    }

    private var sortsByDistance: Bool {
        sort.contains { SortArgument($0).field == SortArgument.distance }
    }

    /// The query in the protocol's form.
    func query() throws -> JSONValue {
        let near = try near.map { try NearArgument(parsing: $0) }
        let filters = try filter.map { try FilterArgument(parsing: $0).json } + [near?.filter].compactMap(\.self)
        let sorts = sort.map { SortArgument($0, near: near).json }
        return .members([
            "recordType": .string(type), "filterBy": filters.isEmpty ? nil : .array(filters),
            "sortBy": sorts.isEmpty ? nil : .array(sorts),
        ])
    }

    /// Everything that came of a query.
    private struct Found {
        var records: [JSONValue] = []
        var continuationMarker: String?
        /// One a page, with --explain.
        var explanations: [JSONValue] = []
    }

    func run() async throws {
        let query = try query()
        try await options.withConnection { connection in
            let found = try await pages(of: query, on: connection)
            if options.json {
                let json = JSONValue.members([
                    "records": .array(found.records),
                    "continuationMarker": found.continuationMarker.map { .string($0) },
                    "explanations": explain ? .array(found.explanations) : nil,
                ])
                return Console.print(json.serialized())
            }
            print(found.records.isEmpty ? "no records" : RecordTable.table(found.records))
            if found.continuationMarker != nil { Console.note("(there are more: see --limit and --all)") }
            for (page, explanation) in found.explanations.enumerated() {
                print("\n" + (found.explanations.count > 1 ? "page \(page + 1) of the query\n" : ""), terminator: "")
                print(ExplanationText.lines(explanation).joined(separator: "\n"))
            }
        }
    }

    /// Page after page, up to the limit.
    private func pages(of query: JSONValue, on connection: Connection) async throws -> Found {
        let keys = desiredKeys.map { $0.split(separator: ",").map { JSONValue.string(String($0)) } }
        var found = Found()
        repeat {
            let wanted = all ? Limits.recordsPerPageMax : min(limit - found.records.count, Limits.recordsPerPageMax)
            let request = try place.request(
                "records/query",
                [
                    "query": query, "zoneWide": zoneWide ? .bool(true) : nil, "resultsLimit": .integer(Int64(wanted)),
                    "desiredKeys": keys.map { .array($0) }, "explain": explain ? .bool(true) : nil,
                    "continuationMarker": found.continuationMarker.map { .string($0) },
                ], isZoneWide: zoneWide, on: connection)
            let page = try await connection.send(request).checked().json()
            found.records += page["records"]?.array ?? []
            found.continuationMarker = page["continuationMarker"]?.string
            if let explanation = page["explanation"], !explanation.isNull { found.explanations.append(explanation) }
        } while found.continuationMarker != nil && (all || found.records.count < limit)
        return found
    }
}

/// How a query was run, as people read it: the server's JSON, a member a line, indented.
enum ExplanationText {
    static func lines(_ json: JSONValue, indent: Int = 0) -> [String] {
        let margin = String(repeating: "  ", count: indent)
        switch json {
        case .object(let members):
            let width = members.map(\.key.count).max() ?? 0
            return members.flatMap { member -> [String] in
                if isPlain(member.value) {
                    let gap = String(repeating: " ", count: width - member.key.count + 2)
                    return ["\(margin)\(member.key)\(gap)\(member.value.plainText)"]
                }
                return ["\(margin)\(member.key)"] + lines(member.value, indent: indent + 1)
            }
        case .array(let members):
            return members.flatMap { member -> [String] in
                guard isPlain(member) else {
                    var inner = lines(member, indent: indent + 1)
                    if let first = inner.first { inner[0] = "\(margin)- " + first.dropFirst(margin.count + 2) }
                    return inner
                }
                return ["\(margin)- \(member.plainText)"]
            }
        default: return [margin + json.plainText]
        }
    }

    private static func isPlain(_ json: JSONValue) -> Bool {
        switch json {
        case .object(let members): members.isEmpty
        case .array(let members): members.isEmpty
        default: true
        }
    }
}
