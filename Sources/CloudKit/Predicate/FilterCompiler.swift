import RecordModel

/// Makes a predicate into the filters of `records/query`, all of which must hold.
///
/// The rules are those of `CKQuery`'s documentation: no OR, and NOT for single comparisons only. Whether a field is a
/// list is known to the server alone: `CONTAINS` on a field asks for a member, and `ANY` says that the field is a list.
struct FilterCompiler {
    /// Metres in the unit of distances.
    let metresPerUnit: Double
    /// What `now()` is, in milliseconds since 1970.
    let nowMilliseconds: Int64
    private(set) var filters: [WebFilter] = []
    /// Whether no record can match, so that no request is needed.
    private(set) var isNever = false

    /// Adds what `node` asks for, or its opposite.
    /// - Throws: what CloudKit does not have, and what it has instead; a retry does not help.
    mutating func add(_ node: PredicateNode, isNegated: Bool = false) throws(PredicateRefusal) {
        switch node {
        case .constant(let flag): if flag == isNegated { isNever = true }
        case .comparison(let comparison): try add(comparison, isNegated: isNegated)
        case .not(let inner, let mark):
            if case .and = inner, !isNegated {
                throw PredicateRefusal(
                    text:
                        "CloudKit negates single comparisons, not AND; negate each of them, or turn operators around",
                    mark: mark)
            }
            try add(inner, isNegated: !isNegated)
        case .and(let members):
            // Never negated: a NOT right around it is refused above, and two of them cancel out.
            for member in members { try add(member) }
        case .or(_, let mark):
            throw PredicateRefusal(
                text: "CloudKit has no OR; use IN to compare one field with several values, as in "
                    + "color IN {'red', 'green'}, or run a query for each side",
                mark: mark)
        }
    }

    private mutating func add(_ comparison: PredicateComparison, isNegated: Bool) throws(PredicateRefusal) {
        let found: [WebFilter]
        if comparison.looksForWords {
            try comparison.refuseNegation(isNegated, "words")
            found = [try tokens(comparison)]
        } else if comparison.measuresDistance {
            try comparison.refuseNegation(isNegated, "distances")
            found = [try distance(comparison)]
        } else if comparison.comparator == .between {
            try comparison.refuseNegation(isNegated, "BETWEEN")
            found = try range(comparison)
        } else {
            found = [try single(comparison, isNegated: isNegated)]
        }
        filters += found
    }

    // One comparison of a field with a value.

    private func single(
        _ comparison: PredicateComparison, isNegated: Bool
    ) throws(PredicateRefusal) -> WebFilter {
        let sides = try comparison.sides(nowMilliseconds: nowMilliseconds)
        let isList = sides.value.isList
        let isAny = comparison.quantifier != nil
        let comparator: RecordModel.Comparator?
        switch comparison.comparator {
        case .equals where !isAny && !isList: comparator = .equals
        case .equals where isAny && isList && !sides.isFieldFirst: comparator = .in
        case .equals where isAny && !isList && sides.isFieldFirst: comparator = .listContains
        case .notEquals where !isAny && !isList: comparator = .notEquals
        case .less where !isAny: comparator = sides.isFieldFirst ? .lessThan : .greaterThan
        case .lessOrEquals where !isAny:
            comparator = sides.isFieldFirst ? .lessThanOrEquals : .greaterThanOrEquals
        case .greater where !isAny: comparator = sides.isFieldFirst ? .greaterThan : .lessThan
        case .greaterOrEquals where !isAny:
            comparator = sides.isFieldFirst ? .greaterThanOrEquals : .lessThanOrEquals
        case .in where sides.isFieldFirst && isList: comparator = isAny ? .listContainsAny : .in
        case .in where !sides.isFieldFirst && !isList: comparator = .listContains
        case .in where !sides.isFieldFirst && isAny: comparator = .listContainsAny
        case .contains where sides.isFieldFirst && !isList: comparator = .listContains
        case .contains where !sides.isFieldFirst && isList && !isAny: comparator = .in
        case .beginsWith where sides.isFieldFirst && !isList:
            comparator = isAny ? .listMemberBeginsWith : .beginsWith
        default: comparator = nil
        }
        guard let comparator else { throw comparison.refused(sides) }
        try comparison.check(sides.value, with: comparator)
        let isOpposite = isNegated != (comparison.quantifier == .noneOf)
        guard let wanted = isOpposite ? comparator.negated : comparator else { throw comparison.refused(sides) }
        return WebFilter(field: sides.field, comparator: wanted, value: sides.value)
    }

    private func range(_ comparison: PredicateComparison) throws(PredicateRefusal) -> [WebFilter] {
        let sides = try comparison.sides(nowMilliseconds: nowMilliseconds)
        guard sides.isFieldFirst, comparison.quantifier == nil, case .list(let bounds) = sides.value, bounds.count == 2
        else {
            throw comparison.refusal("BETWEEN is written with a field and two values, as in age BETWEEN {18, 30}")
        }
        for bound in bounds { try comparison.check(bound, with: .lessThanOrEquals) }
        return [
            WebFilter(field: sides.field, comparator: .greaterThanOrEquals, value: bounds[0]),
            WebFilter(field: sides.field, comparator: .lessThanOrEquals, value: bounds[1]),
        ]
    }
}

extension PredicateValue {
    var isList: Bool {
        if case .list = self { true } else { false }
    }
}

// Words and distances, which are functions and special names in a format.

extension PredicateComparison {
    /// The special name that stands for the words of all searchable fields.
    private static let allTokens = "allTokens"
    /// The function that cuts a text into words; the long name is the documented one.
    private static let tokenizers = ["tokenize:using:", "tokenize"]

    var looksForWords: Bool {
        comparator == .tokenMatches || left.isWords(Self.allTokens) || right.isWords(Self.allTokens)
            || tokenized(left) != nil || tokenized(right) != nil
    }

    var measuresDistance: Bool { left.distanceArguments != nil || right.distanceArguments != nil }

    fileprivate func tokenized(_ expression: PredicateTerm) -> [PredicateTerm]? {
        guard case .function(let name, let arguments) = expression, Self.tokenizers.contains(name) else { return nil }
        return arguments
    }

    /// The searched field and the text that is looked for; no field stands for all.
    fileprivate func searched() throws(PredicateRefusal) -> (field: String?, text: PredicateTerm, isTextFirst: Bool) {
        if left.isWords(Self.allTokens) { return (nil, right, false) }
        if right.isWords(Self.allTokens) { return (nil, left, true) }
        if case .field(let key) = left { return (try fieldName(key), right, false) }
        if case .field(let key) = right { return (try fieldName(key), left, true) }
        throw refusal("words are looked for in fields, as in self CONTAINS 'bob smith'")
    }

    /// The text that is looked for, taken out of its function.
    fileprivate func text(_ expression: PredicateTerm) throws(PredicateRefusal) -> PredicateValue {
        var inner = expression
        if let arguments = tokenized(expression) {
            guard let first = arguments.first, arguments.count <= 2 else {
                throw refusal("the function is written tokenize:using:('bob smith', 'cdl')")
            }
            if arguments.count == 2 {
                guard case .value(.string(let options)) = arguments[1], options.lowercased() == "cdl" else {
                    throw refusal("words are compared without case and diacritics: the options of tokenize are 'cdl'")
                }
            }
            inner = first
        }
        guard case .value(.string(let text)) = inner else {
            throw refusal("words are looked for in a string, as in self CONTAINS 'bob smith'")
        }
        return .string(text)
    }
}

extension PredicateTerm {
    /// Whether this is `SELF`, or the special name.
    fileprivate func isWords(_ special: String) -> Bool { self == .itself || self == .field(special) }

    /// The two places of a distance.
    fileprivate var distanceArguments: [PredicateTerm]? {
        guard case .function("distanceToLocation:fromLocation:", let arguments) = self else { return nil }
        return arguments
    }
}

extension FilterCompiler {
    /// `self CONTAINS 'a b'` looks for any of the words, `allTokens TOKENMATCHES[cdl] 'a b'` for all of them;
    /// `ANY tokenize:using:(...) IN allTokens` and `ALL ...` say which.
    func tokens(_ comparison: PredicateComparison) throws(PredicateRefusal) -> WebFilter {
        let searched = try comparison.searched()
        let value = try comparison.text(searched.text)
        let comparator: RecordModel.Comparator
        switch (comparison.comparator, comparison.quantifier) {
        case (.contains, nil) where !searched.isTextFirst, (.in, nil) where searched.isTextFirst,
            (.in, .anyOf) where searched.isTextFirst:
            comparator = .containsAnyTokens
        case (.in, .allOf) where searched.isTextFirst: comparator = .containsAllTokens
        case (.tokenMatches, nil) where !searched.isTextFirst: comparator = .containsAllTokens
        default:
            throw comparison.refusal(
                "words are looked for with self CONTAINS 'bob smith', which finds any of them; with AND, all")
        }
        return WebFilter(field: searched.field, comparator: comparator, value: value)
    }

    /// `distanceToLocation:fromLocation:(field, place) < radius`, either way around.
    func distance(_ comparison: PredicateComparison) throws(PredicateRefusal) -> WebFilter {
        let isFunctionFirst = comparison.left.distanceArguments != nil
        let radius = isFunctionFirst ? comparison.right : comparison.left
        switch comparison.comparator {
        case .less where isFunctionFirst, .lessOrEquals where isFunctionFirst, .greater where !isFunctionFirst,
            .greaterOrEquals where !isFunctionFirst:
            break
        default:
            throw comparison.refusal("CloudKit finds places inside a circle only: compare the distance with < or <=")
        }
        guard comparison.quantifier == nil,
            let arguments = comparison.left.distanceArguments ?? comparison.right.distanceArguments
        else { throw comparison.refusal("a distance has no \(comparison.quantifier?.rawValue ?? "quantifier")") }
        let key: String
        let centre: PredicateTerm
        switch (arguments.first, arguments.dropFirst().first, arguments.count) {
        case (.field(let name)?, let place?, 2), (let place?, .field(let name)?, 2): (key, centre) = (name, place)
        default: throw comparison.refusal(Self.distanceForm)
        }
        guard case .value(let value) = centre, case .location = value else {
            throw comparison.refusal(Self.distanceForm)
        }
        let metres = try comparison.radius(radius) * metresPerUnit
        guard metres > 0, metres.isFinite else {
            throw comparison.refusal("the radius is not above 0, so that nothing can be inside of it")
        }
        return WebFilter(field: try comparison.fieldName(key), comparator: .near, value: value, distanceMetres: metres)
    }

    private static let distanceForm =
        "a distance is between a field and a CLLocation: distanceToLocation:fromLocation:(%K, %@) < %f"
}

extension PredicateComparison {
    fileprivate func radius(_ expression: PredicateTerm) throws(PredicateRefusal) -> Double {
        switch expression {
        case .value(.double(let number)): return number
        case .value(.integer(let number)): return Double(number)
        default: throw refusal("a distance is compared with a number, the radius")
        }
    }

    struct Sides {
        /// The server's name.
        var field: String
        /// The name in the format, for messages.
        var key: String
        var value: PredicateValue
        var isFieldFirst: Bool
    }

    func refusal(_ text: String) -> PredicateRefusal { PredicateRefusal(text: text, mark: mark) }

    func refuseNegation(_ isNegated: Bool, _ what: String) throws(PredicateRefusal) {
        guard isNegated else { return }
        throw refusal("CloudKit does not negate \(what); NOT is for =, <, IN, CONTAINS, BEGINSWITH and their like")
    }

    func fieldName(_ key: String) throws(PredicateRefusal) -> String {
        do throws(QueryKey.Reason) { return try QueryKey.webName(key) } catch { throw refusal(error.text) }
    }

    /// The field and the value of a comparison that is about one of each.
    func sides(nowMilliseconds: Int64) throws(PredicateRefusal) -> Sides {
        if quantifier == .allOf {
            throw refusal(
                "CloudKit has no ALL; ask for each value with AND, as in tags CONTAINS 'a' AND tags CONTAINS 'b'")
        }
        switch comparator {
        case .like, .matches, .endsWith:
            throw refusal(
                "CloudKit has no \(comparator.rawValue); strings are compared with =, !=, IN and BEGINSWITH, and "
                    + "self CONTAINS finds words")
        default: break
        }
        guard options.isEmpty else {
            throw refusal(
                "CloudKit has no [\(options)] for \(comparator.rawValue); only words, self CONTAINS, are compared "
                    + "without case and diacritics")
        }
        switch (left, right) {
        case (.field, .field): throw refusal("CloudKit compares a field with a value, not with another field")
        case (.field(let key), let other), (let other, .field(let key)):
            return Sides(
                field: try fieldName(key), key: key, value: try value(other, nowMilliseconds: nowMilliseconds),
                isFieldFirst: left == .field(key))
        case (.keyPath(let path), _), (_, .keyPath(let path)): throw refusal(Self.words(about: path))
        default: throw refusal("no field of the record is compared; one side must be the name of a field")
        }
    }

    private static func words(about path: [String]) -> String {
        if path.count == 2, path[0].uppercased() == PredicateKeyword.itself.rawValue {
            return "write \(path[1]) without 'self.': CloudKit has no key paths"
        }
        return "CloudKit has no key paths, so '\(path.joined(separator: "."))' reaches nothing: only the record's own "
            + "fields can be searched. To follow a reference, compare the field with a CKRecord.Reference"
    }

    private func value(
        _ expression: PredicateTerm, nowMilliseconds: Int64
    ) throws(PredicateRefusal) -> PredicateValue {
        switch expression {
        case .value(let value): return value
        case .function("now", let arguments) where arguments.isEmpty,
            .function("now:", let arguments) where arguments.isEmpty:
            return .date(milliseconds: nowMilliseconds)
        case .function(let name, _):
            throw refusal(
                "CloudKit has no function \(name) here; it has now(), distanceToLocation:fromLocation:() and "
                    + "tokenize:using:()")
        case .list(let members):
            var values: [PredicateValue] = []
            for member in members { values.append(try value(member, nowMilliseconds: nowMilliseconds)) }
            return .list(values)
        case .field(let key): throw refusal("'\(key)' is a field; CloudKit compares a field with values")
        case .keyPath(let path): throw refusal(Self.words(about: path))
        case .itself: throw refusal("SELF is for words only, as in self CONTAINS 'bob smith'")
        }
    }

    /// Throws where the server has no order or equality for such a value.
    func check(_ value: PredicateValue, with comparator: RecordModel.Comparator) throws(PredicateRefusal) {
        switch (value, comparator) {
        case (.list(let members), _):
            for member in members { try check(member, with: comparator) }
            try checkKinds(members)
        case (.null, _):
            throw refusal("CloudKit cannot look for fields without a value, so nothing is compared with NULL")
        case (.location, _):
            throw refusal(
                "places are compared by their distance: distanceToLocation:fromLocation:(%K, %@) < %f")
        case (.reference, .lessThan), (.reference, .lessThanOrEquals), (.reference, .greaterThan),
            (.reference, .greaterThanOrEquals):
            throw refusal("references have no order; compare them with =, != or IN")
        case (.string, .beginsWith), (.string, .listMemberBeginsWith): return
        case (_, .beginsWith), (_, .listMemberBeginsWith):
            throw refusal("BEGINSWITH is for strings, this is \(value.kind)")
        default: return
        }
    }

    private func checkKinds(_ members: [PredicateValue]) throws(PredicateRefusal) {
        guard let first = members.first, let other = members.first(where: { $0.kind != first.kind }) else { return }
        throw refusal("a list is of one type; this one has \(first.kind) and \(other.kind)")
    }

    /// Why nothing of CloudKit's says what this says.
    func refused(_ sides: Sides) -> PredicateRefusal {
        let key = sides.key
        let quantified = quantifier.map { $0.rawValue + " " } ?? ""
        let text =
            switch (comparator, sides.value.isList) {
            case (.equals, true), (.notEquals, true), (.contains, true):
                "a field is compared with a list by \(key) IN {1, 2}, or, where the field is a list itself, by "
                    + "ANY \(key) IN {1, 2}"
            case (.in, false): "IN needs a list, as in \(key) IN {1, 2}"
            case (.beginsWith, _): "BEGINSWITH is written with a field and a string, as in \(key) BEGINSWITH 'a'"
            default:
                "CloudKit has no \(quantified)\(comparator.rawValue) like this; with ANY and SOME it has =, IN, "
                    + "CONTAINS and BEGINSWITH"
            }
        return refusal(text)
    }
}
