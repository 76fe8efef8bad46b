/// A piece of a predicate format.
struct PredicateToken: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        /// A name or a keyword, as written.
        case word(String)
        /// `#name`: a name, even where it is spelled like a keyword.
        case escaped(String)
        /// A function's name with its colons, such as `distanceToLocation:fromLocation:`.
        case function(String)
        case string(String)
        /// A whole number without its sign; one that needs more than 64 bits is a `double`.
        case integer(UInt64)
        case double(Double)
        case placeholder(PredicatePlaceholder)
        /// `$name`.
        case variable(String)
        /// `@name`.
        case collectionOperator(String)
        /// An operator of signs or a bracket.
        case symbol(String)
        case end
    }

    var kind: Kind
    /// Unicode scalars from the start of the format.
    var offset: Int

    /// The keyword that this is, in capitals; nil for anything but a word.
    var keyword: PredicateKeyword? {
        if case .word(let text) = kind { PredicateKeyword(rawValue: text.uppercased()) } else { nil }
    }

    /// What this is, for messages.
    var found: String {
        switch kind {
        case .word(let text), .function(let text): "'\(text)'"
        case .escaped(let text): "'#\(text)'"
        case .string: "a string"
        case .integer, .double: "a number"
        case .placeholder(let placeholder): "'\(placeholder.text)'"
        case .variable(let name): "'$\(name)'"
        case .collectionOperator(let name): "'@\(name)'"
        case .symbol(let text): "'\(text)'"
        case .end: "the end"
        }
    }
}

/// `%@`, `%K` and the rest, which stand for arguments.
struct PredicatePlaceholder: Sendable, Equatable {
    enum Conversion: Sendable, Equatable {
        /// `%@`: any value.
        case value
        /// `%K`: the name of a field.
        case field
        /// `%d`, `%i`, `%u`, `%x`, `%c` and their like.
        case integer
        /// `%f`, `%e`, `%g`, `%a`.
        case double
        /// `%s`.
        case text
    }

    var conversion: Conversion
    /// As written, `%lld`.
    var text: String
}

/// The words that mean something of themselves, in any case. `FIRST`, `LAST` and `SIZE` mean something only in
/// brackets, which CloudKit does not have: here they are names.
enum PredicateKeyword: String, Sendable, CaseIterable {
    case and = "AND"
    case or = "OR"
    case not = "NOT"
    case `in` = "IN"
    case any = "ANY"
    case some = "SOME"
    case all = "ALL"
    case none = "NONE"
    case between = "BETWEEN"
    case contains = "CONTAINS"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case like = "LIKE"
    case matches = "MATCHES"
    case tokenMatches = "TOKENMATCHES"
    case null = "NULL"
    case `nil` = "NIL"
    case `true` = "TRUE"
    case `false` = "FALSE"
    case yes = "YES"
    case no = "NO"
    case itself = "SELF"
    case truePredicate = "TRUEPREDICATE"
    case falsePredicate = "FALSEPREDICATE"
    case anyKey = "ANYKEY"
    case cast = "CAST"
    case subquery = "SUBQUERY"
    case fetch = "FETCH"
    case ternary = "TERNARY"
    case function = "FUNCTION"
}
