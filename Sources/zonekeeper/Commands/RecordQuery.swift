import ArgumentParser
import RecordModel
import ServiceClient

struct RecordQueryCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "query", abstract: "Print the records of a type for which every filter holds.",
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

    func query() throws -> JSONValue {
        let near = try near.map { try NearArgument(parsing: $0) }
        let filters = try filter.map { try FilterArgument(parsing: $0).json } + [near?.filter].compactMap(\.self)
        let sorts = sort.map { SortArgument($0, near: near).json }
        return .members([
            "recordType": .string(type), "filterBy": filters.isEmpty ? nil : .array(filters),
            "sortBy": sorts.isEmpty ? nil : .array(sorts),
        ])
    }

    private struct Found {
        var records: [JSONValue] = []
        var continuationMarker: String?
        /// One a page, with --explain.
        var explanations: [JSONValue] = []
    }

    func run(on connection: Connection) async throws {
        let query = try query()
        let found = try await pages(of: query, on: connection)
        if options.json {
            let json = JSONValue.members([
                "records": .array(found.records), "continuationMarker": .given(found.continuationMarker),
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
                    "continuationMarker": .given(found.continuationMarker),
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

/// A filter on the command line: `code = AD`, `population >= 1000`, `timeZone BEGINS_WITH Europe/`, `code IN AD,FR`,
/// `coordinates NEAR 42.5,1.5,100km`, `comment CONTAINS_ALL_TOKENS north sea`, `* CONTAINS_ANY_TOKENS island`.
///
/// Comparators are CloudKit's words, or `=`, `==`, `!=`, `<`, `<=`, `>` and `>=`. A value in quotation marks or
/// brackets is read as JSON; any other is text, which the server converts to the field's type. Lists have commas
/// between their members. The field `*` is every searchable one.
struct FilterArgument: Hashable {
    /// Nil is every searchable field.
    var field: String?
    var comparator: Comparator
    var value: JSONValue
    /// With NEAR, in metres.
    var distance: Double?

    private static let symbols: [(text: String, comparator: Comparator)] = [
        ("==", .equals), ("!=", .notEquals), ("<=", .lessThanOrEquals), (">=", .greaterThanOrEquals), ("=", .equals),
        ("<", .lessThan), (">", .greaterThan),
    ]

    /// - Throws: `ValidationError` that says what is expected.
    init(parsing text: String) throws {
        var rest = text.trimmedStart
        let name = rest.hasPrefix("*") ? rest.prefix(1) : rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        guard !name.isEmpty else { throw Self.malformed(text) }
        field = name == "*" ? nil : String(name)
        rest = rest.dropFirst(name.count).trimmedStart
        if let symbol = Self.symbols.first(where: { rest.hasPrefix($0.text) }) {
            comparator = symbol.comparator
            rest = rest.dropFirst(symbol.text.count)
        } else {
            let word = rest.prefix { $0.isLetter || $0 == "_" }
            guard !word.isEmpty else { throw Self.malformed(text) }
            guard let known = Comparator(rawValue: word.uppercased()) else {
                let words = Comparator.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("'\(text)': '\(word)' is no comparator; there are = != < <= > >= and \(words)")
            }
            comparator = known
            rest = rest.dropFirst(word.count)
        }
        guard field != nil || comparator.takesWords else {
            throw ValidationError(
                "'\(text)': * goes with CONTAINS_ALL_TOKENS and CONTAINS_ANY_TOKENS only; name a field")
        }
        guard comparator == .near else {
            value = try Self.value(rest.trimmed, isList: comparator.takesList, of: text)
            return
        }
        let circle = try CircleArgument(parsing: rest.trimmed, of: text)
        guard let radius = circle.radius else {
            throw ValidationError("'\(text)': the distance is missing, such as 100km: 'field NEAR 42.5,1.5,100km'")
        }
        (value, distance) = (circle.json, radius)
    }

    private static func malformed(_ text: String) -> ValidationError {
        ValidationError("'\(text)': a filter such as 'code = AD' or 'population >= 1000' is expected")
    }

    private static func value(_ text: String, isList: Bool, of filter: String) throws -> JSONValue {
        guard !text.isEmpty else {
            throw ValidationError("'\(filter)': the value is missing; \"\" is the empty string")
        }
        if ["\"", "[", "{"].contains(text.prefix(1)) {
            return try Result { () throws(JSONError) in try JSONParser.parse(Array(text.utf8)) }
                .mapError { ValidationError("'\(filter)': the value begins like JSON and is none: \($0)") }.get()
        }
        guard isList else { return .string(text) }
        return .array(text.split(separator: ",").map { .string($0.trimmed) })
    }

    var json: JSONValue {
        let value = JSONValue.members([
            "value": value, "type": comparator == .near ? .string(ScalarType.location.rawValue) : nil,
        ])
        return .members([
            FieldName.key(field ?? ""): .given(field), "comparator": .string(comparator.rawValue),
            "fieldValue": value, "distance": distance.map { .number($0) },
        ])
    }
}

extension Comparator {
    fileprivate var takesList: Bool {
        switch self {
        case .in, .notIn, .listContainsAll, .notListContainsAll, .listContainsAny, .notListContainsAny: true
        default: false
        }
    }

    /// Whether the value is text whose words are looked for.
    fileprivate var takesWords: Bool { self == .containsAllTokens || self == .containsAnyTokens }
}

extension StringProtocol {
    fileprivate var trimmedStart: Substring { Substring(drop(while: \.isWhitespace)) }
}

/// A place on the earth and maybe a radius: `42.5,1.5` or `42.5,1.5,100km`; metres where the radius has no unit.
struct CircleArgument: Hashable {
    var latitude: Double
    var longitude: Double
    /// Metres, above 0.
    var radius: Double?

    private static let units: [(suffix: String, metres: Double)] = [("km", 1_000), ("m", 1), ("", 1)]

    /// - Parameter argument: the whole argument, for the error.
    init(parsing text: String, of argument: String) throws {
        let sides = text.split(separator: ",", omittingEmptySubsequences: false).map { $0.trimmed }
        guard (2...3).contains(sides.count), let latitude = Double(sides[0]), let longitude = Double(sides[1]),
            (-90...90).contains(latitude), (-180...180).contains(longitude)
        else {
            throw ValidationError(
                "'\(argument)': latitude,longitude in degrees and a distance, such as 42.5,1.5,100km, is expected")
        }
        self.latitude = latitude
        self.longitude = longitude
        guard sides.count == 3 else { return }
        let unit = Self.units.first { sides[2].lowercased().hasSuffix($0.suffix) } ?? ("", 1)
        let number = Double(sides[2].dropLast(unit.suffix.count).trimmed) ?? .nan
        let radius = number * unit.metres
        guard radius > 0, radius.isFinite else {
            throw ValidationError("'\(argument)': a distance such as 100km or 250m is expected, not '\(sides[2])'")
        }
        self.radius = radius
    }

    var json: JSONValue { .members(["latitude": .number(latitude), "longitude": .number(longitude)]) }
}

/// What `--near` names: a field and a place, maybe with a radius, such as `coordinates=42.5,1.5,100km`.
struct NearArgument: Hashable {
    var field: String
    var circle: CircleArgument

    /// - Throws: `ValidationError` that says what is expected.
    init(parsing text: String) throws {
        let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard sides.count == 2, !sides[0].trimmed.isEmpty else {
            throw ValidationError("'\(text)': field=latitude,longitude,distance is expected")
        }
        field = sides[0].trimmed
        circle = try CircleArgument(parsing: String(sides[1]), of: text)
    }

    /// The filter for what is within the radius; nil without one.
    var filter: JSONValue? {
        guard let radius = circle.radius else { return nil }
        return .members([
            FieldName.key(field): .string(field), "comparator": .string(Comparator.near.rawValue),
            "fieldValue": .members(["value": circle.json, "type": .string(ScalarType.location.rawValue)]),
            "distance": .number(radius),
        ])
    }
}

/// A sort key on the command line: `timeZone`, or `-timeZone` for the greatest first; `distance`, where a place is
/// named, is the distance from it.
struct SortArgument: Hashable {
    var field: String
    var isAscending: Bool
    /// The place that distances are from.
    var place: CircleArgument?

    init(_ text: String, near: NearArgument? = nil) {
        isAscending = !text.hasPrefix("-")
        field = isAscending ? text : String(text.dropFirst())
        if field == Self.distance, let near { (field, place) = (near.field, near.circle) }
    }

    /// The word that stands for the distance from the place of `--near`.
    static let distance = "distance"

    var json: JSONValue {
        .members([
            FieldName.key(field): .string(field), "ascending": .bool(isAscending),
            "relativeLocation": place.map {
                .members(["value": $0.json, "type": .string(ScalarType.location.rawValue)])
            },
        ])
    }
}

enum FieldName {
    private static let system: Set<String> = [
        "recordName", "createdTimestamp", "modifiedTimestamp", "createdUserRecordName", "modifiedUserRecordName",
        "parent", "share",
    ]

    /// The protocol has one key for the names of the schema and one for those of its own.
    static func key(_ name: String) -> String { system.contains(name) ? "systemFieldName" : "fieldName" }
}
