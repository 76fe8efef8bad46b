import ArgumentParser
import RecordModel
import ServiceClient

/// A filter on the command line: `code = AD`, `population >= 1000`, `timeZone BEGINS_WITH Europe/`, `code IN AD,FR`,
/// `coordinates NEAR 42.5,1.5,100km`, `comment CONTAINS_ALL_TOKENS north sea`, `* CONTAINS_ANY_TOKENS island`.
///
/// Comparators are CloudKit's words, or `=`, `==`, `!=`, `<`, `<=`, `>` and `>=`. A value in quotation marks or brackets is read
/// as JSON; any other is text, which the server converts to the field's type. Lists have commas between their members. The field
/// `*` is every searchable one.
struct FilterArgument: Hashable {
    /// Nil is every searchable field.
    var field: String?
    var comparator: Comparator
    var value: JSONValue
    /// With NEAR, in metres.
    var distance: Double?

    private static let symbols: [(text: String, comparator: Comparator)] = [
        ("==", .equals), ("!=", .notEquals), ("<=", .lessThanOrEquals), (">=", .greaterThanOrEquals), ("=", .equals),
        ("<", .lessThan), (">", .greaterThan),
    ]

    /// - Throws: `ValidationError` that says what is expected.
    init(parsing text: String) throws {
        var rest = text.trimmedStart
        let name = rest.hasPrefix("*") ? rest.prefix(1) : rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        guard !name.isEmpty else { throw Self.malformed(text) }
        field = name == "*" ? nil : String(name)
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
        guard field != nil || comparator.takesWords else {
            throw ValidationError(
                "'\(text)': * goes with CONTAINS_ALL_TOKENS and CONTAINS_ANY_TOKENS only; name a field")
        }
        guard comparator == .near else {
            value = try Self.value(String(rest.trimmed), isList: comparator.takesList, of: text)
            return
        }
        let circle = try CircleArgument(parsing: String(rest.trimmed), of: text)
        guard let radius = circle.radius else {
            throw ValidationError("'\(text)': the distance is missing, such as 100km: 'field NEAR 42.5,1.5,100km'")
        }
        (value, distance) = (circle.json, radius)
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
        var members: [JSONValue.Member] = []
        if let field { members.append(JSONValue.Member(FieldName.key(field), .string(field))) }
        members.append(JSONValue.Member("comparator", .string(comparator.rawValue)))
        let value = JSONValue.members([
            "value": value, "type": comparator == .near ? .string(ScalarType.location.rawValue) : nil,
        ])
        members.append(JSONValue.Member("fieldValue", value))
        if let distance { members.append(JSONValue.Member("distance", .number(distance))) }
        return .object(members)
    }
}

extension Comparator {
    /// Whether the value is a list.
    fileprivate var takesList: Bool {
        switch self {
        case .in, .notIn, .listContainsAll, .notListContainsAll, .listContainsAny, .notListContainsAny: true
        default: false
        }
    }

    /// Whether the value is text whose words are looked for.
    fileprivate var takesWords: Bool { self == .containsAllTokens || self == .containsAnyTokens }
}

extension StringProtocol {
    var trimmedStart: Substring { Substring(drop(while: \.isWhitespace)) }

    var trimmed: Substring {
        var text = trimmedStart
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
