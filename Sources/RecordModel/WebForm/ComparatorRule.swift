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
