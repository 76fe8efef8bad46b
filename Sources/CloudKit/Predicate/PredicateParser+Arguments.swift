import Foundation

extension PredicateParser {
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
