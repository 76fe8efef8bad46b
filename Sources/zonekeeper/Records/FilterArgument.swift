import ArgumentParser
import RecordModel

/// A filter on the command line: `code = AD`, `population >= 1000`, `timeZone BEGINS_WITH Europe/`, `code IN AD,FR`.
///
/// Comparators are CloudKit's words, or `=`, `==`, `!=`, `<`, `<=`, `>` and `>=`. A value in quotation marks or brackets is read
/// as JSON; any other is text, which the server converts to the field's type.
struct FilterArgument: Hashable {
    var field: String
    var comparator: Comparator
    var value: JSONValue

    private static let symbols: [(text: String, comparator: Comparator)] = [
        ("==", .equals), ("!=", .notEquals), ("<=", .lessThanOrEquals), (">=", .greaterThanOrEquals), ("=", .equals),
        ("<", .lessThan), (">", .greaterThan),
    ]

    /// - Throws: `ValidationError` that says what is expected.
    init(parsing text: String) throws {
        var rest = text.trimmedStart
        let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        guard !name.isEmpty else { throw Self.malformed(text) }
        field = String(name)
        rest = rest.dropFirst(name.count).trimmedStart
        if let symbol = Self.symbols.first(where: { rest.hasPrefix($0.text) }) {
            comparator = symbol.comparator
            rest = rest.dropFirst(symbol.text.count)
        } else {
            let word = rest.prefix { $0.isLetter || $0 == "_" }
            guard !word.isEmpty else { throw Self.malformed(text) }
            guard let known = Comparator(rawValue: word.uppercased()) else {
                let words = Comparator.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("'\(text)': '\(word)' is no comparator; there are = != < <= > >= and \(words)")
            }
            comparator = known
            rest = rest.dropFirst(word.count)
        }
        value = try Self.value(String(rest.trimmed), isList: comparator == .in || comparator == .notIn, of: text)
    }

    private static func malformed(_ text: String) -> ValidationError {
        ValidationError("'\(text)': a filter such as 'code = AD' or 'population >= 1000' is expected")
    }

    private static func value(_ text: String, isList: Bool, of filter: String) throws -> JSONValue {
        guard !text.isEmpty else {
            throw ValidationError("'\(filter)': the value is missing; \"\" is the empty string")
        }
        if ["\"", "[", "{"].contains(text.prefix(1)) {
            do throws(JSONError) {
                return try JSONParser.parse(Array(text.utf8))
            } catch {
                throw ValidationError("'\(filter)': the value begins like JSON and is none: \(error)")
            }
        }
        guard isList else { return .string(text) }
        return .array(text.split(separator: ",").map { .string(String($0.trimmed)) })
    }

    /// The filter in the protocol's form.
    var json: JSONValue {
        .members([
            FieldName.key(field): .string(field), "comparator": .string(comparator.rawValue),
            "fieldValue": .members(["value": value]),
        ])
    }
}

/// A sort key on the command line: `timeZone`, or `-timeZone` for the greatest first.
struct SortArgument: Hashable {
    var field: String
    var isAscending: Bool

    init(_ text: String) {
        isAscending = !text.hasPrefix("-")
        field = isAscending ? text : String(text.dropFirst())
    }

    /// The sort key in the protocol's form.
    var json: JSONValue { .members([FieldName.key(field): .string(field), "ascending": .bool(isAscending)]) }
}

/// Names of fields in queries.
enum FieldName {
    private static let system: Set<String> = [
        "recordName", "createdTimestamp", "modifiedTimestamp", "createdUserRecordName", "modifiedUserRecordName",
    ]

    /// The protocol has one key for the names of the schema and one for those of its own.
    static func key(_ name: String) -> String { system.contains(name) ? "systemFieldName" : "fieldName" }
}

extension StringProtocol {
    fileprivate var trimmedStart: Substring { Substring(drop(while: \.isWhitespace)) }

    fileprivate var trimmed: Substring {
        var text = trimmedStart
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
