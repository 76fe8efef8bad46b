import Foundation

/// Reads a predicate format with its arguments.
///
/// The grammar is that of `NSPredicate` as far as a query can have any use of it. What is well formed and yet nothing
/// CloudKit can search for (`OR`, `LIKE`, key paths) is read, and refused when filters are made of it; arithmetic,
/// variables, casts and subqueries are refused here, with the reason.
struct PredicateParser {
    let format: String
    private let tokens: [PredicateToken]
    private var index = 0
    let arguments: [Any?]
    /// Arguments that placeholders have taken.
    var argumentsTaken = 0
    private var depth = 0

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

    private init(format: String, tokens: [PredicateToken], arguments: [Any?]) {
        self.format = format
        self.tokens = tokens
        self.arguments = arguments
    }

    // The tokens.

    /// The token at hand.
    var token: PredicateToken { tokens[index] }

    /// The one after it.
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

    /// An error at the token at hand.
    func failure(_ expected: String, found: String? = nil) -> NSPredicate.FormatError {
        NSPredicate.FormatError(
            format: format, position: mark.position, expected: expected, found: found ?? token.found)
    }

    /// The place of the token at hand.
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
