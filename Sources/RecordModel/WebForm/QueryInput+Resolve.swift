extension QueryInput {
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
