/// The body of records/query.
package struct QueryRecordsRequest: WebRequest, Hashable {
    package var query: QueryInput
    package var zoneID: ZoneID
    /// Whether every zone of the database is searched; false when the client names a zone.
    package var isZoneWide: Bool
    /// 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int
    /// Where the page before ended, as the server gave it; nil for the first page.
    package var continuationMarker: String?
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    package var numbersAsStrings: Bool
    /// Whether the answer says how the query was run; an extension of ours.
    package var explains: Bool

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try QueryRecordsRequest(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        let json = try form.need("query")
        query = try at("query") { () throws(FormError) in try QueryInput(form: json) }
        zoneID = try form.zoneID()
        isZoneWide = try form.bool("zoneWide") == true && form["zoneID"] == nil
        resultsLimit = try form.resultsLimit() ?? Limits.recordsPerPageMax
        continuationMarker = try form.token("continuationMarker")
        desiredKeys = try form.desiredKeys()
        numbersAsStrings = try form.numbersAsStrings() ?? false
        explains = try form.bool("explain") ?? false
    }
}

/// A query as a client sent it; `resolve(schema:zone:container:)` makes a `Query` of it.
package struct QueryInput: Hashable, Sendable {
    package var recordType: String
    package var filters: [FilterInput]
    package var sorts: [Sort]

    /// A filter whose value waits for the field's type.
    package struct FilterInput: Hashable, Sendable {
        /// A system field goes by its schema name, such as `___recordID`. Nil, where words are looked for, is every
        /// searchable field.
        package var field: String?
        package var comparator: Comparator
        package var value: FieldInput
        /// Metres, above 0; there with `near` and only there.
        package var distance: Double?
    }

    /// Reads `{recordType, filterBy, sortBy}`.
    init(form json: JSONValue) throws(FormError) {
        let form = try Form(json)
        guard let type = try form.string("recordType") else { throw FormError("is missing", at: "recordType") }
        try at("recordType") { () throws(FormError) in try Names.checkType(type) }
        recordType = type
        filters = try form["filterBy"] == nil ? [] : form.array("filterBy", max: Limits.filtersMax, FilterInput.init)
        sorts = try form["sortBy"] == nil ? [] : form.array("sortBy", max: Limits.sortsMax, Self.sort)
    }

    private static func sort(_ json: JSONValue) throws(FormError) -> Sort {
        let form = try Form(json)
        return Sort(
            field: try QueryField.name(form), isAscending: try form.bool("ascending") ?? true,
            relativeLocation: try form.nested("relativeLocation", location))
    }

    /// Reads `{value}` or the place itself, which clients send too.
    private static func location(_ json: JSONValue) throws(FormError) -> Location {
        let input = json["value"] == nil ? FieldInput(json: json) : try FieldInput(form: json)
        let step = json["value"] == nil ? "" : "value"
        do throws(FormError) {
            let value = try input.resolve(as: FieldType(.location), with: ValueConverter(isQuery: true))
            guard case .location(let place)? = value else { throw .expected("a place", input.json) }
            return place
        } catch {
            throw step.isEmpty ? error : error.inside(step)
        }
    }
}

extension QueryInput.FilterInput {
    /// Reads `{comparator, fieldName or systemFieldName, fieldValue, distance}`.
    init(form json: JSONValue) throws(FormError) {
        let form = try Form(json)
        let name = try form.need("comparator")
        guard let comparator = name.string.flatMap(Comparator.init(rawValue:)) else {
            let found = name.string.map { "'\($0)'" } ?? name.kind
            throw FormError("expected a comparator such as EQUALS, found \(found)", at: "comparator")
        }
        let field = comparator.looksForWords ? try QueryField.searched(form) : try QueryField.name(form)
        let json = try form.need("fieldValue")
        let value = try at("fieldValue") { () throws(FormError) in try FieldInput(form: json) }
        let distance = comparator == .near ? try Self.distance(form) : nil
        self.init(field: field, comparator: comparator, value: value, distance: distance)
    }

    private static func distance(_ form: Form) throws(FormError) -> Double {
        let json = try form.need("distance")
        return try at("distance") { () throws(FormError) in
            guard case .double(let metres) = try ValueConverter(isQuery: true).convert(json, to: .double), metres > 0
            else { throw FormError("expected metres above 0") }
            return metres
        }
    }
}

extension Comparator {
    /// Whether the value is text whose words are looked for, in one field or in all of them.
    package var looksForWords: Bool { self == .containsAllTokens || self == .containsAnyTokens }
}

/// The names of fields in filters and sort keys.
enum QueryField {
    /// Schema names and Web Services' names of the system fields; `___share` is known, not built.
    private static let system: [(schema: String, web: String)] = [
        ("___recordID", "recordName"), ("___createTime", "createdTimestamp"), ("___modTime", "modifiedTimestamp"),
        ("___createdBy", "createdUserRecordName"), ("___modifiedBy", "modifiedUserRecordName"),
        ("___share", "share"), ("___parent", "parent"),
    ]

    /// How messages call a field: Web Services' name where it has one.
    static func webName(_ name: String) -> String { system.first { $0.schema == name }?.web ?? name }

    /// The field whose words are looked for; nil is every searchable one, which the SDKs call `self`.
    static func searched(_ form: Form) throws(FormError) -> String? {
        let name = try form.string("fieldName")
        if name == "self" || name == "___self" { return nil }
        if name == nil, form["systemFieldName"] == nil { return nil }
        return try Self.name(form)
    }

    static func name(_ form: Form) throws(FormError) -> String {
        switch (try form.string("fieldName"), try form.string("systemFieldName")) {
        case (nil, nil): throw FormError("is missing, and so is systemFieldName", at: "fieldName")
        case (_?, _?):
            throw FormError("is given, and systemFieldName too; a filter or sort is for one field", at: "fieldName")
        case (let name?, nil):
            if name == "___recordId" { return "___recordID" }
            if !name.hasPrefix("___") {
                try at("fieldName") { () throws(FormError) in try Names.checkIdentifier(name) }
            }
            return name
        case (nil, let name?):
            if name == "___recordId" { return "___recordID" }
            guard let known = system.first(where: { $0.web == name || $0.schema == name }) else {
                let names = system.map(\.web).joined(separator: ", ")
                throw FormError("expected one of \(names), found '\(name)'", at: "systemFieldName")
            }
            return known.schema
        }
    }
}
