/// Writes a predicate as a format with arguments; reading that gives the same predicate.
struct PredicatePrinter {
    private(set) var format = ""
    /// One for each placeholder; a name for `%K` is a string.
    private(set) var arguments: [PredicateValue] = []

    init(_ node: PredicateNode) { write(node) }

    private mutating func write(_ node: PredicateNode) {
        switch node {
        case .constant(let flag): format += flag ? "TRUEPREDICATE" : "FALSEPREDICATE"
        case .comparison(let comparison): write(comparison)
        case .not(let inner, _):
            format += "NOT "
            writeMember(inner)
        case .and(let members): join(members, " AND ")
        case .or(let members, _): join(members, " OR ")
        }
    }

    private mutating func join(_ members: [PredicateNode], _ separator: String) {
        for (index, member) in members.enumerated() {
            if index > 0 { format += separator }
            writeMember(member)
        }
    }

    private mutating func writeMember(_ node: PredicateNode) {
        switch node {
        case .and, .or:
            format += "("
            write(node)
            format += ")"
        default: write(node)
        }
    }

    private mutating func write(_ comparison: PredicateComparison) {
        if let quantifier = comparison.quantifier { format += quantifier.rawValue + " " }
        write(comparison.left)
        format += " " + comparison.comparator.rawValue
        if !comparison.options.isEmpty { format += "[\(comparison.options)]" }
        format += " "
        write(comparison.right)
    }

    private mutating func write(_ expression: PredicateTerm) {
        switch expression {
        case .value(let value): write(value)
        case .field(let name): write(name: name)
        case .keyPath(let names): write(path: names)
        case .itself: format += PredicateKeyword.itself.rawValue
        case .list(let members): write(members, "{", "}")
        case .function(let name, let members):
            format += name
            write(members, "(", ")")
        }
    }

    private mutating func write(_ members: [PredicateTerm], _ begin: String, _ end: String) {
        format += begin
        for (index, member) in members.enumerated() {
            if index > 0 { format += ", " }
            write(member)
        }
        format += end
    }

    private mutating func write(name: String) {
        if Self.isPlain(name) { format += Self.escaped(name) } else { substitute(name) }
    }

    private mutating func write(path: [String]) {
        guard path.allSatisfy(Self.isPlain) else { return substitute(path.joined(separator: ".")) }
        for (index, name) in path.enumerated() {
            if index > 0 { format += "." }
            // A path may begin with SELF; a field of that name does not occur in one.
            format += index == 0 && name == PredicateKeyword.itself.rawValue ? name : Self.escaped(name)
        }
    }

    private mutating func substitute(_ key: String) {
        format += "%K"
        arguments.append(.string(key))
    }

    private static func isPlain(_ name: String) -> Bool {
        guard let first = name.unicodeScalars.first, PredicateLexer.isNameStart(first) else { return false }
        return name.unicodeScalars.allSatisfy {
            $0.isASCII && (PredicateLexer.isNameStart($0) || PredicateLexer.isDigit($0))
        }
    }

    private static func escaped(_ name: String) -> String {
        PredicateKeyword(rawValue: name.uppercased()) == nil ? name : "#" + name
    }

    private mutating func write(_ value: PredicateValue) {
        switch value {
        case .null: format += "NULL"
        case .string(let text): format += Self.quoted(text)
        case .integer(let number): format += String(number)
        case .double(let number): format += number.description
        case .date, .data, .location, .reference:
            format += "%@"
            arguments.append(value)
        case .list(let members): write(members.map { .value($0) }, "{", "}")
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = String.UnicodeScalarView("'".unicodeScalars)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "'", "\\":
                quoted.append("\\")
                quoted.append(scalar)
            case "\n": quoted.append(contentsOf: "\\n".unicodeScalars)
            case "\r": quoted.append(contentsOf: "\\r".unicodeScalars)
            default: quoted.append(scalar)
            }
        }
        quoted.append("'")
        return String(quoted)
    }
}
