import Foundation

extension PredicateParser {
    /// A side of a comparison, or a predicate in brackets.
    mutating func unit() throws(NSPredicate.FormatError) -> Unit {
        if accept(.truePredicate) { return .predicate(.constant(true)) }
        if accept(.falsePredicate) { return .predicate(.constant(false)) }
        guard accept("(") else { return .expression(try expression()) }
        try enter()
        let unit = try disjunction()
        if token.kind == .symbol(",") { throw failure("')'; lists are written with braces, as in {1, 2}") }
        guard accept(")") else { throw failure("')'") }
        leave()
        if case .expression = unit { try refuseArithmetic() }
        return unit
    }

    private mutating func expression() throws(NSPredicate.FormatError) -> PredicateTerm {
        let expression = try primary()
        let found = try keyPath(expression)
        try refuseArithmetic()
        return found
    }

    /// What may follow an expression elsewhere, and not in a query.
    private func refuseArithmetic() throws(NSPredicate.FormatError) {
        guard case .symbol(let text) = token.kind else { return }
        switch text {
        case "+", "-", "*", "/", "**":
            throw failure("no arithmetic: CloudKit compares fields with values, so work the value out before")
        case "[": throw failure("no index: CloudKit has no members of a list by number; use CONTAINS or IN")
        case ":=": throw failure("an operator; a predicate assigns nothing")
        default: return
        }
    }

    private mutating func keyPath(_ first: PredicateTerm) throws(NSPredicate.FormatError) -> PredicateTerm {
        guard token.kind == .symbol(".") else { return first }
        var path: [String]
        switch first {
        case .field(let name): path = [name]
        case .keyPath(let names): path = names
        case .itself: path = [PredicateKeyword.itself.rawValue]
        default: throw failure("an operator")
        }
        while accept(".") {
            switch token.kind {
            case .word(let name), .escaped(let name): path.append(name)
            case .collectionOperator(let name): throw failure(collectionOperator(name))
            default: throw failure("a name after '.'")
            }
            advance()
        }
        return .keyPath(path)
    }

    private mutating func primary() throws(NSPredicate.FormatError) -> PredicateTerm {
        let found = token
        switch found.kind {
        case .word(let text): return try word(text)
        case .function(let name):
            advance()
            return try call(name)
        case .escaped(let name): return advancing(.field(name))
        case .string(let text): return advancing(.value(.string(text)))
        case .integer, .double, .symbol("-"): return .value(try number())
        case .placeholder(let placeholder):
            let expression = try argument(for: placeholder)
            return advancing(expression)
        case .symbol("{"): return try list()
        case .variable(let name):
            throw failure("a value; variables such as $\(name) are not replaced in a query, pass an argument for %@")
        case .collectionOperator(let name): throw failure(collectionOperator(name))
        case .symbol, .end: throw failure("a field, a value or '('")
        }
    }

    private func collectionOperator(_ name: String) -> String {
        "a field; CloudKit has no collection operators such as @\(name)"
    }

    private mutating func advancing(_ expression: PredicateTerm) -> PredicateTerm {
        advance()
        return expression
    }

    private mutating func word(_ text: String) throws(NSPredicate.FormatError) -> PredicateTerm {
        switch token.keyword {
        case nil:
            advance()
            return token.kind == .symbol("(") ? try call(text) : .field(text)
        case .null, .nil: return advancing(.value(.null))
        case .true, .yes: return advancing(.value(.integer(1)))
        case .false, .no: return advancing(.value(.integer(0)))
        case .itself: return advancing(.itself)
        case .cast: throw failure("a value; CloudKit casts nothing, pass an argument of the right type for %@")
        case .subquery, .fetch, .ternary, .function, .anyKey:
            throw failure("a field or a value; CloudKit has no \(text.uppercased())")
        default: throw failure("a field, a value or '('; a field of this name is written #\(text)")
        }
    }

    private mutating func number() throws(NSPredicate.FormatError) -> PredicateValue {
        // Two signs would be arithmetic.
        let isNegative = accept("-")
        let value: PredicateValue
        switch token.kind {
        case .integer(let magnitude):
            guard let number = Self.signed(magnitude, isNegative: isNegative) else {
                throw failure("a whole number that fits 64 bits", found: "\(isNegative ? "-" : "")\(magnitude)")
            }
            value = .integer(number)
        case .double(let number): value = .double(isNegative ? -number : number)
        case .placeholder(let placeholder) where placeholder.conversion != .field:
            value = try negated(try argument(for: placeholder))
        default: throw failure("a number after '-'")
        }
        advance()
        return value
    }

    private static func signed(_ magnitude: UInt64, isNegative: Bool) -> Int64? {
        guard isNegative else { return Int64(exactly: magnitude) }
        return magnitude <= Int64.min.magnitude ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil
    }

    private func negated(_ expression: PredicateTerm) throws(NSPredicate.FormatError) -> PredicateValue {
        switch expression {
        case .value(.integer(let number)) where number != .min: return .integer(-number)
        case .value(.double(let number)): return .double(-number)
        default: throw failure("a number after '-'")
        }
    }

    /// `{a, b}`; of values alone, a value.
    private mutating func list() throws(NSPredicate.FormatError) -> PredicateTerm {
        try enter()
        let members = try members(until: "}")
        leave()
        var values: [PredicateValue] = []
        for case .value(let value) in members { values.append(value) }
        return values.count == members.count ? .value(.list(values)) : .list(members)
    }

    private mutating func call(_ name: String) throws(NSPredicate.FormatError) -> PredicateTerm {
        guard token.kind == .symbol("(") else { throw failure("'(' and the arguments of \(name)") }
        try enter()
        let members = try members(until: ")")
        leave()
        return .function(name, members)
    }

    /// The expressions from the opening bracket at hand to the closing one, by commas.
    private mutating func members(until end: String) throws(NSPredicate.FormatError) -> [PredicateTerm] {
        advance()
        var members: [PredicateTerm] = []
        if accept(end) { return members }
        while true {
            guard case .expression(let member) = try unit() else { throw failure("a value before this") }
            members.append(member)
            if accept(end) { return members }
            guard accept(",") else { throw failure("',' or '\(end)'") }
        }
    }
}
