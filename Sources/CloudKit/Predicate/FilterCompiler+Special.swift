import RecordModel

// Words and distances, which are functions and special names in a format.

extension PredicateComparison {
    /// The special name that stands for the words of all searchable fields.
    private static let allTokens = "allTokens"
    /// The function that cuts a text into words; the long name is the documented one.
    private static let tokenizers = ["tokenize:using:", "tokenize"]

    /// Whether this asks for words.
    var looksForWords: Bool {
        comparator == .tokenMatches || left.isWords(Self.allTokens) || right.isWords(Self.allTokens)
            || tokenized(left) != nil || tokenized(right) != nil
    }

    /// Whether this asks for a distance.
    var measuresDistance: Bool { left.distanceArguments != nil || right.distanceArguments != nil }

    /// The text in `tokenize:using:(text, 'cdl')`.
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
                "words are looked for with self CONTAINS 'bob smith', which finds any of them; with AND, all"
            )
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
}
