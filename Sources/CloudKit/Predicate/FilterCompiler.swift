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

    init(metresPerUnit: Double, nowMilliseconds: Int64) {
        self.metresPerUnit = metresPerUnit
        self.nowMilliseconds = nowMilliseconds
    }

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
            // Never negated: a NOT right around it is refused above, two of them are none.
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
