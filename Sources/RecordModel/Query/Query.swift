package import Wire

/// What a client looks for: records of one type for which every filter holds, in an order.
package struct Query: Hashable, Sendable, WireMessage {
    /// The name of the one record type that is searched.
    package var recordType: String
    /// Conditions that must all hold; if empty, every record of the type matches.
    package var filters: [Filter]
    /// The most significant key first; ties are broken by the record's id.
    package var sorts: [Sort]

    package init(recordType: String, filters: [Filter] = [], sorts: [Sort] = []) {
        self.recordType = recordType
        self.filters = filters
        self.sorts = sorts
    }

    /// The query as bytes, with what decides in which order its records come: the fields that it sorts by, whose values
    /// may come to compare in another way; without sorts the indexes of the fields that it filters by, and of names. A
    /// position in the order means something only while these stay.
    package func encodedWithOrder(in type: RecordType) -> [UInt8] {
        var fields = type.fields.filter { !$0.indexes.isEmpty }
        if sorts.isEmpty {
            let names = Set(filters.compactMap(\.field) + [SystemField.recordID.rawValue])
            let isForAllWords = filters.contains { $0.field == nil }
            fields = fields.filter { names.contains($0.name) || isForAllWords && $0.indexes.contains(.searchable) }
        } else {
            let names = Set(sorts.map(\.field))
            fields = fields.filter { names.contains($0.name) }
            for place in fields.indices { fields[place].indexes = [] }
        }
        return encoded() + RecordType(name: type.name, fields: fields).encoded()
    }

    package static var blank: Self { Query(recordType: "", filters: [], sorts: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &recordType)
        try wire.field(2, &filters)
        try wire.field(3, &sorts)
    }
}

/// One condition. System fields have their schema names (`___recordID`, `___createTime`, ...).
package struct Filter: Hashable, Sendable, WireMessage {
    /// Nil, with `containsAllTokens` and `containsAnyTokens` only, stands for every searchable field of the record
    /// type.
    package var field: String?
    /// How the field's value must compare with `value`.
    package var comparator: Comparator
    /// A list for `in`, `notIn` and the comparators with all or any values of a list; else a scalar.
    package var value: FieldValue
    /// With `near`, and only there: the greatest distance from the value, in metres.
    package var distance: Double?

    package init(field: String?, comparator: Comparator, value: FieldValue, distance: Double? = nil) {
        self.field = field
        self.comparator = comparator
        self.value = value
        self.distance = distance
    }

    package static var blank: Self { Filter(field: nil, comparator: .equals, value: .int64(0), distance: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &field)
        try wire.required(2, &comparator)
        try wire.required(3, &value)
        try wire.field(4, &distance)
    }
}

/// CloudKit's comparators; the raw value is the one on the wire.
package enum Comparator: String, Hashable, Sendable, CaseIterable, WireValue {
    case equals = "EQUALS"
    case notEquals = "NOT_EQUALS"
    case lessThan = "LESS_THAN"
    case lessThanOrEquals = "LESS_THAN_OR_EQUALS"
    case greaterThan = "GREATER_THAN"
    case greaterThanOrEquals = "GREATER_THAN_OR_EQUALS"
    case near = "NEAR"
    case `in` = "IN"
    case notIn = "NOT_IN"
    case beginsWith = "BEGINS_WITH"
    case notBeginsWith = "NOT_BEGINS_WITH"
    case containsAllTokens = "CONTAINS_ALL_TOKENS"
    case containsAnyTokens = "CONTAINS_ANY_TOKENS"
    case listContains = "LIST_CONTAINS"
    case notListContains = "NOT_LIST_CONTAINS"
    case listContainsAll = "LIST_CONTAINS_ALL"
    case notListContainsAll = "NOT_LIST_CONTAINS_ALL"
    case listContainsAny = "LIST_CONTAINS_ANY"
    case notListContainsAny = "NOT_LIST_CONTAINS_ANY"
    case listMemberBeginsWith = "LIST_MEMBER_BEGINS_WITH"
    case notListMemberBeginsWith = "NOT_LIST_MEMBER_BEGINS_WITH"
}

/// One key of an order; records without the field come first when ascending, and last where it is by distance.
package struct Sort: Hashable, Sendable, WireMessage {
    /// The field's name in the schema, such as `___createTime` for a system field.
    package var field: String
    /// Whether the least value, or the shortest distance, comes first.
    package var isAscending: Bool
    /// For a location field, and only there: the order is by distance from this place.
    package var relativeLocation: Location?

    package init(field: String, isAscending: Bool = true, relativeLocation: Location? = nil) {
        self.field = field
        self.isAscending = isAscending
        self.relativeLocation = relativeLocation
    }

    package static var blank: Self { Sort(field: "") }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &field)
        try wire.field(2, &isDescending, unless: false)
        try wire.field(3, &relativeLocation)
    }

    private var isDescending: Bool {
        get { !isAscending }
        set { isAscending = !newValue }
    }
}
