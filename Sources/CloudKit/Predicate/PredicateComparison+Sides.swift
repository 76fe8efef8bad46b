import RecordModel

extension PredicateComparison {
    /// A comparison seen as a field and a value.
    struct Sides {
        /// The server's name.
        var field: String
        /// The name in the format, for messages.
        var key: String
        var value: PredicateValue
        /// Whether the field is on the left.
        var isFieldFirst: Bool
    }

    func refusal(_ text: String) -> PredicateRefusal { PredicateRefusal(text: text, mark: mark) }

    func refuseNegation(_ isNegated: Bool, _ what: String) throws(PredicateRefusal) {
        guard isNegated else { return }
        throw refusal("CloudKit does not negate \(what); NOT is for =, <, IN, CONTAINS, BEGINSWITH and their like")
    }

    /// The server's name of a key.
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
