/// The body of records/query.
package struct QueryRecordsRequest: WebRequest, Hashable {
    /// What is searched; its values are converted once the schema is known.
    package var query: QueryInput
    /// The zone to search unless `isZoneWide`; the default zone if the client names none.
    package var zoneID: ZoneID
    /// Whether every zone of the database is searched; false when the client names a zone.
    package var isZoneWide: Bool
    /// 1 to `Limits.recordsPerPageMax`; more that a client asks for is capped.
    package var resultsLimit: Int
    /// Where the page before ended, as the server gave it; nil for the first page.
    package var continuationMarker: String?
    /// The fields to return; nil is all.
    package var desiredKeys: [String]?
    /// Whether the answer writes INT64, DOUBLE and TIMESTAMP values as strings.
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
    /// The record type as the client named it; `resolve` refuses `Users` and the types of sharing.
    package var recordType: String
    /// Conditions that must all hold; at most `Limits.filtersMax`.
    package var filters: [FilterInput]
    /// The most significant key first; at most `Limits.sortsMax`.
    package var sorts: [Sort]

    /// A filter whose value waits for the field's type.
    package struct FilterInput: Hashable, Sendable {
        /// A system field has its schema name, such as `___recordID`. Nil searches all searchable fields for words.
        package var field: String?
        /// How the field's value must compare with `value`; `resolve` checks that the field can be compared so.
        package var comparator: Comparator
        /// The value as the client sent it, not yet converted to the field's type.
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

    /// The query with its values converted to the types of `type`, and held against its indexes.
    /// - Parameters:
    ///   - type: the schema of `recordType`.
    ///   - zone: the zone searched; nil for a search of all zones, where references keep their zone.
    ///   - container: for the command that an error about a missing index names.
    /// - Throws: `BAD_REQUEST` naming the field at fault, when it is unknown, lacks the index, or does not go with the
    ///   comparator or the value; a retry does not help before the schema was changed.
    package func resolve(
        schema type: RecordType, zone: ZoneID? = nil, container: String
    ) throws(ServiceError) -> Query {
        try service { () throws(FormError) in
            guard type.name != RecordType.usersName else { throw Self.noUsers }
            if type.name.hasPrefix("cloudkit.") {
                throw FormError("sharing is not built yet in this version of Zonekeeper", at: "query.recordType")
            }
            let fields = QueryFields(type: type, container: container)
            var query = Query(recordType: recordType, sorts: sorts)
            for (index, filter) in filters.enumerated() {
                query.filters.append(
                    try at("query.filterBy[\(index)]") { () throws(FormError) in
                        try filter.resolve(fields, zone: zone)
                    })
            }
            for (index, sort) in sorts.enumerated() {
                try at("query.sortBy[\(index)]") { () throws(FormError) in try Self.check(sort, fields) }
            }
            if filters.isEmpty, sorts.isEmpty {
                try fields.require(.queryable, try fields.definition(of: SystemField.recordID.rawValue))
            }
            return query
        }
    }

    private static let noUsers = FormError(
        "the records of users are read by name: records/lookup with the userRecordName of users/caller",
        at: "query.recordType", words: "Can't query system types")

    private static func check(_ sort: Sort, _ fields: QueryFields) throws(FormError) {
        let definition = try fields.definition(of: sort.field)
        let type = definition.type
        if sort.relativeLocation != nil {
            guard type.scalar == .location, !type.isList else {
                throw FormError("'\(sort.field)' is of type \(type.webName); only a LOCATION has a distance")
            }
        } else if type.scalar == .location, !type.isList {
            throw FormError(
                "'\(sort.field)' is of type LOCATION, which has no order; give a relativeLocation to sort by "
                    + "distance")
        } else if type.isList || type.scalar == .asset {
            throw FormError("'\(sort.field)' is of type \(type.webName), which has no order")
        }
        try fields.require(.sortable, definition)
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

/// The fields and indexes of the record type that is searched.
struct QueryFields {
    var type: RecordType
    /// For the command that adds an index.
    var container: String

    /// The field's definition; a system field that the schema does not list has no index.
    func definition(of name: String) throws(FormError) -> FieldDefinition {
        guard name != SystemField.etag.rawValue else { throw FormError("change tags cannot be searched or sorted by") }
        if let system = SystemField(rawValue: name) {
            return FieldDefinition(name: name, type: system.type, indexes: type.field(named: name)?.indexes ?? [])
        }
        if name == "___share" {
            throw FormError("'share': sharing is not built yet in this version of Zonekeeper")
        }
        guard let definition = type.field(named: name) else {
            throw FormError("the record type '\(type.name)' has no field '\(name)'")
        }
        guard !definition.type.isEncrypted else {
            throw FormError("'\(name)' is encrypted; encrypted fields cannot be searched or sorted by")
        }
        return definition
    }

    /// CloudKit's words first: clients look for them.
    func require(_ index: IndexOptions, _ definition: FieldDefinition) throws(FormError) {
        guard !definition.indexes.contains(index) else { return }
        let word = index.words.joined(separator: " ")
        throw FormError(
            "this needs the index \(word) on field \(definition.name) of record type \(type.name); add it with "
                + "`\(command(definition.name, word))`",
            words: "Field '\(QueryField.webName(definition.name))' is not marked \(word.lowercased())",
            missingIndex: MissingIndex(recordType: type.name, field: definition.name, index: word))
    }

    /// A search of all fields needs one that can be searched.
    func requireSearchable() throws(FormError) {
        guard !type.fields.contains(where: { $0.indexes.contains(.searchable) }) else { return }
        let need = "a search of all fields needs one with the index SEARCHABLE, and record type \(type.name) has none"
        guard
            let field = type.fields.first(where: {
                !$0.isSystem && SchemaRules.problem(indexes: .searchable, on: $0.type) == nil
            })
        else { throw FormError("\(need), nor a STRING field that could have it") }
        throw FormError(
            "\(need); add it with `\(command(field.name, "SEARCHABLE"))`",
            missingIndex: MissingIndex(recordType: type.name, field: field.name, index: "SEARCHABLE"))
    }

    private func command(_ field: String, _ word: String) -> String {
        "zonekeeper schema add-index \(container) \(type.name) \(field) \(word)"
    }
}

extension QueryInput.FilterInput {
    fileprivate func resolve(_ fields: QueryFields, zone: ZoneID?) throws(FormError) -> Filter {
        guard let field else {
            try fields.requireSearchable()
            return Filter(field: nil, comparator: comparator, value: try text())
        }
        let definition = try fields.definition(of: field)
        let rule = ComparatorRule(comparator)
        try rule.check(definition, comparator)
        try fields.require(rule.index, definition)
        if comparator.looksForWords { return Filter(field: field, comparator: comparator, value: try text()) }
        var target = definition.type
        target.isList = rule.value == .list
        // System fields name records of the same zone, or users, who are in no zone: the SDKs send the default zone
        // there.
        let value = try at("fieldValue.value") { () throws(FormError) in
            try converted(to: target, zone: definition.isSystem ? nil : zone)
        }
        return Filter(
            field: field, comparator: comparator, value: definition.isSystem ? value.withoutZones : value,
            distance: distance)
    }

    /// The text whose words are looked for; that it has any is seen where it is cut into words.
    private func text() throws(FormError) -> FieldValue {
        try at("fieldValue.value") { () throws(FormError) in try converted(to: FieldType(.string), zone: nil) }
    }

    private func converted(to target: FieldType, zone: ZoneID?) throws(FormError) -> FieldValue {
        var input = value
        // Record names may come as strings.
        if target.scalar == .reference, let stated = input.type, stated == "STRING" || stated == "STRING_LIST" {
            input.type = target.isList ? "REFERENCE_LIST" : "REFERENCE"
        }
        if target.isList, let count = input.json.array?.count, count > Limits.inListMax {
            throw FormError("\(count) members given, at most \(Limits.inListMax)")
        }
        guard let found = try input.resolve(as: target, with: ValueConverter(zone: zone, isQuery: true)) else {
            throw FormError("is null, with which nothing can be compared")
        }
        return found
    }
}

extension FieldValue {
    /// The value with the records that it names in the zone that is searched.
    fileprivate var withoutZones: FieldValue {
        switch self {
        case .reference(let reference): .reference(Reference(recordName: reference.recordName))
        case .list(let element, let members): .list(element, members.map(\.withoutZones))
        default: self
        }
    }
}

/// What a comparator is for: fields of which shape and types, with which index, and what stands beside it.
struct ComparatorRule {
    enum Value { case scalar, list }

    /// Whether the field is a list, has one value, or may be either.
    private var isForLists: Bool?
    private var types: [ScalarType]
    /// What the field must be marked.
    private(set) var index: IndexOptions = .queryable
    /// The filter's own value.
    private(set) var value: Value = .scalar

    private static let ordered: [ScalarType] = [.string, .int64, .double, .timestamp, .bytes, .number]
    private static let equatable = ordered + [.reference]

    init(_ comparator: Comparator) {
        switch comparator {
        case .equals, .notEquals: self.init(false, Self.equatable)
        case .in, .notIn: self.init(false, Self.equatable, value: .list)
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals:
            self.init(false, Self.ordered, index: .sortable)
        case .beginsWith, .notBeginsWith: self.init(false, [.string])
        case .near: self.init(false, [.location])
        case .containsAllTokens, .containsAnyTokens: self.init(nil, [.string], index: .searchable)
        case .listContains, .notListContains: self.init(true, Self.equatable)
        case .listContainsAll, .notListContainsAll, .listContainsAny, .notListContainsAny:
            self.init(true, Self.equatable, value: .list)
        case .listMemberBeginsWith, .notListMemberBeginsWith: self.init(true, [.string])
        }
    }

    private init(_ isForLists: Bool?, _ types: [ScalarType], index: IndexOptions = .queryable, value: Value = .scalar) {
        self.isForLists = isForLists
        self.types = types
        self.index = index
        self.value = value
    }

    /// Throws where the comparator says nothing about a field of this type.
    func check(_ field: FieldDefinition, _ comparator: Comparator) throws(FormError) {
        let type = field.type
        if let isForLists, isForLists != type.isList {
            let wanted = isForLists ? "lists" : "fields with one value"
            let found = type.isList ? "a list" : "no list"
            throw FormError(
                "\(comparator.rawValue) is for \(wanted); '\(field.name)' is \(found)\(Self.advice(type, comparator))")
        }
        guard types.contains(type.scalar) else {
            throw FormError(
                "\(comparator.rawValue) is not for '\(field.name)', which is of type \(type.webName)"
                    + Self.advice(type, comparator))
        }
    }

    /// What to use instead, where there is something.
    private static func advice(_ type: FieldType, _ comparator: Comparator) -> String {
        switch (type.scalar, type.isList) {
        case (.location, false): "; places are compared with NEAR and a distance"
        case (.location, true): "; places in a list cannot be searched"
        case (.asset, _): "; assets cannot be searched"
        case (_, true): "; use LIST_CONTAINS, LIST_CONTAINS_ALL or LIST_CONTAINS_ANY"
        case (_, false) where comparator.rawValue.contains("LIST"): "; use EQUALS or IN"
        default: ""
        }
    }
}
