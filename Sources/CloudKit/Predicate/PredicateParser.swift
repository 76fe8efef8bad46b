import Foundation

/// Reads a predicate format with its arguments.
///
/// The grammar is that of `NSPredicate` as far as a query can have any use of it. What is well formed and yet nothing
/// CloudKit can search for (`OR`, `LIKE`, key paths) is read, and refused when filters are made of it; arithmetic,
/// variables, casts and subqueries are refused here, with the reason.
struct PredicateParser {
    let format: String
    let tokens: [PredicateToken]
    let arguments: [Any?]
    var index = 0
    var argumentsTaken = 0
    var depth = 0

    /// What stands in brackets, or on one side of an operator: which of the two shows only when it is read.
    enum Unit {
        case predicate(PredicateNode)
        case expression(PredicateTerm)
    }

    /// - Throws: the first fault with its place; a retry does not help.
    static func parse(_ format: String, arguments: [Any?]) throws(NSPredicate.FormatError) -> PredicateNode {
        var parser = PredicateParser(
            format: format, tokens: try PredicateLexer.tokens(of: format), arguments: arguments)
        let unit = try parser.disjunction()
        let node = try parser.predicate(unit)
        guard parser.token.kind == .end else { throw parser.failure("AND, OR or the end") }
        guard parser.argumentsTaken == arguments.count else {
            let quoted = format.contains("%") ? " (one in quotes is text and takes none)" : ""
            throw parser.failure(
                "as many arguments as placeholders, \(parser.argumentsTaken)\(quoted)", found: "\(arguments.count)")
        }
        return node
    }

    // The tokens.

    var token: PredicateToken { tokens[index] }

    var following: PredicateToken { tokens[min(index + 1, tokens.count - 1)] }

    mutating func advance() { index = min(index + 1, tokens.count - 1) }

    mutating func accept(_ symbol: String) -> Bool {
        guard token.kind == .symbol(symbol) else { return false }
        advance()
        return true
    }

    mutating func accept(_ keyword: PredicateKeyword) -> Bool {
        guard token.keyword == keyword else { return false }
        advance()
        return true
    }

    func failure(_ expected: String, found: String? = nil) -> NSPredicate.FormatError {
        NSPredicate.FormatError(
            format: format, position: mark.position, expected: expected, found: found ?? token.found)
    }

    var mark: PredicateMark { PredicateMark(format: format, offset: token.offset) }

    mutating func enter() throws(NSPredicate.FormatError) {
        guard depth < PredicateLimits.depthMax else {
            throw failure("at most \(PredicateLimits.depthMax) nested brackets, calls and negations")
        }
        depth += 1
    }

    mutating func leave() { depth -= 1 }

    // Predicates, from the loosest to the tightest.

    /// The unit, which was read right before, as a predicate; an expression lacks its operator.
    private func predicate(_ unit: Unit) throws(NSPredicate.FormatError) -> PredicateNode {
        if case .predicate(let node) = unit { return node }
        if token.keyword == .not {
            throw failure("an operator; NOT stands in front of the whole comparison, as in NOT (x IN {1, 2})")
        }
        throw failure("an operator such as =, <, IN, CONTAINS or BEGINSWITH")
    }

    mutating func disjunction() throws(NSPredicate.FormatError) -> Unit {
        let first = try conjunction()
        let mark = mark
        guard accept(.or) || accept("||") else { return first }
        var members = [try predicate(first)]
        repeat {
            let next = try conjunction()
            members.append(try predicate(next))
        } while accept(.or) || accept("||")
        return .predicate(.or(members, mark))
    }

    private mutating func conjunction() throws(NSPredicate.FormatError) -> Unit {
        let first = try negation()
        guard accept(.and) || accept("&&") else { return first }
        var members = [try predicate(first)]
        repeat {
            let next = try negation()
            members.append(try predicate(next))
        } while accept(.and) || accept("&&")
        return .predicate(.and(members))
    }

    private mutating func negation() throws(NSPredicate.FormatError) -> Unit {
        let mark = mark
        guard accept(.not) || accept("!") else { return try comparison() }
        try enter()
        let unit = try negation()
        let node = try predicate(unit)
        leave()
        return .predicate(.not(node, mark))
    }

    private mutating func comparison() throws(NSPredicate.FormatError) -> Unit {
        let quantifier = quantifier()
        let first = try unit()
        let mark = mark
        guard case .expression(let left) = first, let comparator = comparator() else {
            if quantifier != nil { throw failure("an operator; a quantifier such as ANY is for one comparison") }
            return first
        }
        let options = try options()
        guard case .expression(let right) = try unit() else { throw failure("a field or a value before this") }
        return .predicate(
            .comparison(
                PredicateComparison(
                    quantifier: quantifier, left: left, comparator: comparator, options: options, right: right,
                    mark: mark)))
    }

    private mutating func quantifier() -> PredicateComparison.Quantifier? {
        if accept(.any) || accept(.some) { return .anyOf }
        if accept(.all) { return .allOf }
        return accept(.none) ? .noneOf : nil
    }

    private mutating func comparator() -> PredicateOperator? {
        let found: PredicateOperator?
        if let keyword = token.keyword {
            found = PredicateOperator(rawValue: keyword.rawValue)
        } else if case .symbol(let text) = token.kind {
            found =
                switch text {
                case "=", "==": .equals
                case "!=", "<>": .notEquals
                case "<": .less
                case "<=", "=<": .lessOrEquals
                case ">": .greater
                case ">=", "=>": .greaterOrEquals
                default: nil
                }
        } else {
            found = nil
        }
        if found != nil { advance() }
        return found
    }

    /// `[cd]` behind an operator.
    private mutating func options() throws(NSPredicate.FormatError) -> String {
        guard accept("[") else { return "" }
        guard case .word(let text) = token.kind, text.lowercased().allSatisfy({ "cdlnw".contains($0) }) else {
            throw failure("options such as cd; lists are written with braces, as in {1, 2}")
        }
        advance()
        guard accept("]") else { throw failure("']' after the options") }
        return text.lowercased()
    }
}

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

    /// The argument that the placeholder at hand stands for.
    mutating func argument(
        for placeholder: PredicatePlaceholder
    ) throws(NSPredicate.FormatError) -> PredicateTerm {
        guard argumentsTaken < arguments.count else {
            throw failure(
                "an argument for this placeholder, the one numbered \(argumentsTaken + 1)",
                found: arguments.isEmpty ? "none" : "\(arguments.count)")
        }
        let argument = arguments[argumentsTaken]
        argumentsTaken += 1
        do throws(PredicateValue.Unfit) {
            if placeholder.conversion == .text, let pointer = argument as? UnsafePointer<CChar> {
                return .value(.string(String(cString: pointer)))
            }
            return try Self.expression(try PredicateValue(argument: argument), for: placeholder)
        } catch {
            throw failure(
                "another argument for '\(placeholder.text)'", found: "argument \(argumentsTaken), which \(error.reason)"
            )
        }
    }

    private static func expression(
        _ value: PredicateValue, for placeholder: PredicatePlaceholder
    ) throws(PredicateValue.Unfit) -> PredicateTerm {
        switch (placeholder.conversion, value) {
        case (.value, _), (.integer, .integer), (.double, .double), (.text, .string): return .value(value)
        case (.field, .string(let name)): return try field(name)
        case (.integer, .double):
            throw PredicateValue.Unfit(reason: "is a number with a fraction; use %f or %@")
        case (.double, .integer):
            throw PredicateValue.Unfit(reason: "is a whole number, which %f misreads elsewhere; use %d or %@")
        default:
            let wanted =
                switch placeholder.conversion {
                case .field: "the name of a field"
                case .text: "a string"
                default: "a number; use %@"
                }
            throw PredicateValue.Unfit(reason: "is \(value.kind), not \(wanted)")
        }
    }

    /// What a key given for `%K` names.
    private static func field(_ name: String) throws(PredicateValue.Unfit) -> PredicateTerm {
        guard !name.isEmpty else { throw PredicateValue.Unfit(reason: "is an empty name") }
        if name.lowercased() == "self" { return .itself }
        let path = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        return path.count == 1 ? .field(name) : .keyPath(path)
    }
}
