/// What a predicate says, read from its format or from the objects that it was put together of.
///
/// Invariants: `and` and `or` have two or more members. The depth is bounded by `PredicateLimits.depthMax`, so that
/// walks over it may recurse.
indirect enum PredicateNode: Sendable, Equatable {
    case constant(Bool)
    case comparison(PredicateComparison)
    case not(PredicateNode, PredicateMark)
    case and([PredicateNode])
    case or([PredicateNode], PredicateMark)
}

/// One comparison, such as `ANY tags = 'red'`.
struct PredicateComparison: Sendable, Equatable {
    /// How many members of the left side must compare.
    enum Quantifier: String, Sendable, CaseIterable {
        /// `SOME` is another word for it.
        case anyOf = "ANY"
        case allOf = "ALL"
        case noneOf = "NONE"
    }

    var quantifier: Quantifier?
    var left: PredicateTerm
    var comparator: PredicateOperator
    /// The letters in brackets behind the operator, in lower case and as written, such as `cd`.
    var options = ""
    var right: PredicateTerm
    /// Where the operator is.
    var mark: PredicateMark
}

/// The operators that the format knows; the raw value is how they are printed.
enum PredicateOperator: String, Sendable, CaseIterable {
    case equals = "=="
    case notEquals = "!="
    case less = "<"
    case lessOrEquals = "<="
    case greater = ">"
    case greaterOrEquals = ">="
    case between = "BETWEEN"
    case `in` = "IN"
    case contains = "CONTAINS"
    case beginsWith = "BEGINSWITH"
    case endsWith = "ENDSWITH"
    case like = "LIKE"
    case matches = "MATCHES"
    case tokenMatches = "TOKENMATCHES"
}

/// One side of a comparison.
indirect enum PredicateTerm: Sendable, Equatable {
    case value(PredicateValue)
    /// A field of the record, by the name that the format has.
    case field(String)
    /// `a.b`: recognised to say why it is refused.
    case keyPath([String])
    /// `SELF`.
    case itself
    /// `{...}` with members that are not all values.
    case list([PredicateTerm])
    /// A function by its name with colons, `now` or `distanceToLocation:fromLocation:`.
    case function(String, [PredicateTerm])
}

/// A place in a format, for messages. It says nothing about what a predicate means: all marks are equal.
struct PredicateMark: Sendable, Equatable {
    /// The text, as the caller gave it; empty for a predicate that has none.
    var format: String
    /// Unicode scalars from the start of `format`.
    var offset: Int

    /// The mark of what has no format.
    static let none = PredicateMark(format: "", offset: 0)

    /// Characters from the start of `format`, which is how readers count. Found only when there is a message to write.
    var position: Int { String(format.unicodeScalars.prefix(offset)).count }

    static func == (left: PredicateMark, right: PredicateMark) -> Bool { true }
}

/// Bounds on what is read, far above what queries need: a hostile format costs no more than its length, and no stack.
enum PredicateLimits {
    /// Nested parentheses, lists, calls, negations and compound predicates.
    static let depthMax = 100
    /// Unicode scalars of one format.
    static let lengthMax = 65_536
}
