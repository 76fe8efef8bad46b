extension QueryInput {
    /// The query with its values converted to the types of `type`, and held against its indexes.
    /// - Parameters:
    ///   - type: the schema of `recordType`.
    ///   - zone: the zone searched; nil for a search of all zones, where references keep their zone.
    /// - Throws: `BAD_REQUEST` naming the field at fault, when it is unknown, lacks the index, or does not go with the
    ///   comparator or the value; a retry does not help before the schema was changed.
    package func resolve(schema type: RecordType, zone: ZoneID? = nil) throws(ServiceError) -> Query {
        try service { () throws(FormError) in
            var query = Query(recordType: recordType, sorts: sorts)
            for (index, filter) in filters.enumerated() {
                query.filters.append(
                    try at("query.filterBy[\(index)]") { () throws(FormError) in
                        try filter.resolve(type, zone: zone)
                    })
            }
            for (index, sort) in sorts.enumerated() {
                try at("query.sortBy[\(index)]") { () throws(FormError) in try Self.check(sort, type) }
            }
            if filters.isEmpty, sorts.isEmpty {
                let recordID = try QueryIndex.definition(of: SystemField.recordID.rawValue, in: type)
                try QueryIndex.require(.queryable, recordID, type)
            }
            return query
        }
    }

    private static func check(_ sort: Sort, _ type: RecordType) throws(FormError) {
        let definition = try QueryIndex.definition(of: sort.field, in: type)
        guard !definition.type.isList, definition.type.scalar != .asset, definition.type.scalar != .location else {
            throw FormError("'\(sort.field)' is of type \(definition.type.webName), which has no order")
        }
        try QueryIndex.require(.sortable, definition, type)
    }
}

extension QueryInput.FilterInput {
    fileprivate func resolve(_ type: RecordType, zone: ZoneID?) throws(FormError) -> Filter {
        let definition = try QueryIndex.definition(of: field, in: type)
        let rule = try ComparatorRule(comparator)
        guard !definition.type.isList else {
            throw FormError("'\(field)' is a list; \(comparator.rawValue) is for fields with one value")
        }
        var scalar = definition.type
        if scalar.scalar == .number, let preferred = scalar.preferred { scalar = FieldType(preferred) }
        guard rule.types.contains(scalar.scalar) else {
            throw FormError("\(comparator.rawValue) is not for '\(field)', which is of type \(scalar.webName)")
        }
        try QueryIndex.require(rule.index, definition, type)
        let value = try at("fieldValue.value") { () throws(FormError) in
            try converted(as: scalar, takesList: rule.takesList, zone: zone)
        }
        return Filter(field: field, comparator: comparator, value: value)
    }

    private func converted(as scalar: FieldType, takesList: Bool, zone: ZoneID?) throws(FormError) -> FieldValue {
        var target = scalar
        target.isList = takesList
        var input = value
        // Record names may come as strings.
        if scalar.scalar == .reference, let stated = input.type, stated == "STRING" || stated == "STRING_LIST" {
            input.type = takesList ? "REFERENCE_LIST" : "REFERENCE"
        }
        if takesList, let count = input.json.array?.count, count > Limits.inListMax {
            throw FormError("\(count) members given, at most \(Limits.inListMax)")
        }
        let converter = ValueConverter(zone: zone, isQuery: true)
        guard let found = try input.resolve(as: target, with: converter) else {
            throw FormError("is null, with which nothing can be compared")
        }
        return field.hasPrefix("___") ? found.withoutZones : found
    }
}

extension FieldValue {
    /// System fields name records of the same zone, or users, who are in no zone: clients' zones say nothing.
    fileprivate var withoutZones: FieldValue {
        switch self {
        case .reference(let reference): .reference(Reference(recordName: reference.recordName))
        case .list(let element, let members): .list(element, members.map(\.withoutZones))
        default: self
        }
    }
}

/// What a comparator is for.
private struct ComparatorRule {
    var types: [ScalarType]
    var index: IndexOptions
    var takesList = false

    private static let ordered: [ScalarType] = [.string, .int64, .double, .timestamp, .number]

    init(_ comparator: Comparator) throws(FormError) {
        switch comparator {
        case .equals, .notEquals: self.init(types: Self.ordered + [.bytes, .reference], index: .queryable)
        case .lessThan, .lessThanOrEquals, .greaterThan, .greaterThanOrEquals:
            self.init(types: Self.ordered, index: .sortable)
        case .in, .notIn: self.init(types: Self.ordered + [.reference], index: .queryable, takesList: true)
        case .beginsWith, .notBeginsWith: self.init(types: [.string], index: .queryable)
        case .near, .containsAllTokens, .containsAnyTokens, .listContains, .notListContains, .listContainsAll,
            .notListContainsAll, .listContainsAny, .notListContainsAny, .listMemberBeginsWith,
            .notListMemberBeginsWith:
            throw FormError("\(comparator.rawValue) is not built yet in this version of Zonekeeper", at: "comparator")
        }
    }

    private init(types: [ScalarType], index: IndexOptions, takesList: Bool = false) {
        self.types = types
        self.index = index
        self.takesList = takesList
    }
}

/// Fields and indexes of the record type that is searched.
private enum QueryIndex {
    /// The field's definition; a system field that the schema does not list has no index.
    static func definition(of name: String, in type: RecordType) throws(FormError) -> FieldDefinition {
        guard name != SystemField.etag.rawValue else { throw FormError("change tags cannot be searched or sorted by") }
        if let system = SystemField(rawValue: name) {
            return FieldDefinition(name: name, type: system.type, indexes: type.field(named: name)?.indexes ?? [])
        }
        if name == "___share" || name == "___parent" {
            throw FormError("'\(QueryField.webName(name))': sharing is not built yet in this version of Zonekeeper")
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
    static func require(
        _ index: IndexOptions, _ definition: FieldDefinition, _ type: RecordType
    ) throws(FormError) {
        guard !definition.indexes.contains(index) else { return }
        let word = index == .sortable ? "sortable" : "queryable"
        throw FormError(
            "Field '\(QueryField.webName(definition.name))' is not marked \(word): add the index with `zonekeeper "
                + "schema import`, \(word.uppercased()) on \"\(definition.name)\" of record type \(type.name)")
    }
}
