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

    package init(json: JSONValue) throws(ServiceError) {
        self = try service { () throws(FormError) in try QueryRecordsRequest(Form(json)) }
    }

    private init(_ form: Form) throws(FormError) {
        let json = try form.need("query")
        query = try at("query") { () throws(FormError) in try QueryInput(form: json) }
        zoneID = try form.zoneID()
        isZoneWide = try form.bool("zoneWide") == true && form["zoneID"] == nil
        let limit = try form.integer("resultsLimit") ?? Limits.recordsPerPageMax
        guard limit >= 1 else {
            throw FormError("expected 1 to \(Limits.recordsPerPageMax), found \(limit)", at: "resultsLimit")
        }
        resultsLimit = min(limit, Limits.recordsPerPageMax)
        let marker = try form.string("continuationMarker")
        continuationMarker = marker?.isEmpty == true ? nil : marker
        desiredKeys = try form.desiredKeys()
        numbersAsStrings = try form.numbersAsStrings() ?? false
    }
}

/// A query as a client sent it; `resolve(schema:zone:)` makes a `Query` of it.
package struct QueryInput: Hashable, Sendable {
    package var recordType: String
    package var filters: [FilterInput]
    package var sorts: [Sort]

    /// A filter whose value waits for the field's type.
    package struct FilterInput: Hashable, Sendable {
        /// A system field goes by its schema name, such as `___recordID`.
        package var field: String
        package var comparator: Comparator
        package var value: FieldInput
    }

    /// Reads `{recordType, filterBy, sortBy}`.
    init(form json: JSONValue) throws(FormError) {
        let form = try Form(json)
        guard let type = try form.string("recordType") else { throw FormError("is missing", at: "recordType") }
        try at("recordType") { () throws(FormError) in try Names.checkIdentifier(type) }
        recordType = type
        filters = try form["filterBy"] == nil ? [] : form.array("filterBy", max: Limits.filtersMax, FilterInput.init)
        sorts = try form["sortBy"] == nil ? [] : form.array("sortBy", max: Limits.sortsMax, Self.sort)
    }

    private static func sort(_ json: JSONValue) throws(FormError) -> Sort {
        let form = try Form(json)
        guard form["relativeLocation"] == nil else {
            throw FormError(
                "sorting by distance is not built yet in this version of Zonekeeper", at: "relativeLocation")
        }
        return Sort(field: try QueryField.name(form), isAscending: try form.bool("ascending") ?? true)
    }
}

extension QueryInput.FilterInput {
    /// Reads `{comparator, fieldName or systemFieldName, fieldValue}`.
    init(form json: JSONValue) throws(FormError) {
        let form = try Form(json)
        let name = try form.need("comparator")
        guard let comparator = name.string.flatMap(Comparator.init(rawValue:)) else {
            let found = name.string.map { "'\($0)'" } ?? name.kind
            throw FormError("expected a comparator such as EQUALS, found \(found)", at: "comparator")
        }
        let field = try QueryField.name(form)
        let json = try form.need("fieldValue")
        let value = try at("fieldValue") { () throws(FormError) in try FieldInput(form: json) }
        self.init(field: field, comparator: comparator, value: value)
    }
}

/// The names of fields in filters and sort keys.
enum QueryField {
    /// Schema names and Web Services' names of the system fields; `___share` and `___parent` are known, not built.
    private static let system: [(schema: String, web: String)] = [
        ("___recordID", "recordName"), ("___createTime", "createdTimestamp"), ("___modTime", "modifiedTimestamp"),
        ("___createdBy", "createdUserRecordName"), ("___modifiedBy", "modifiedUserRecordName"),
        ("___share", "share"), ("___parent", "parent"),
    ]

    /// How messages call a field: Web Services' name where it has one.
    static func webName(_ name: String) -> String { system.first { $0.schema == name }?.web ?? name }

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
