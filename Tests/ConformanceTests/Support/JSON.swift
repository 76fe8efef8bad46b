package import RecordModel
import Testing

// Bodies are written as Swift literals.
extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(floatLiteral value: Double) { self = .number(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(elements.map { Member($0, $1) })
    }
}

extension JSONValue {
    /// As JSON.
    var text: String { String(decoding: serialized(), as: UTF8.self) }

    /// Keys of an object.
    var keys: [String] {
        if case .object(let members) = self { members.map(\.key) } else { [] }
    }

    var integer: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }

    /// An item's error code; nil where it did not fail.
    var code: String? { self["serverErrorCode"]?.string }
    var reason: String { self["reason"]?.string ?? "" }
    var name: String { self["recordName"]?.string ?? "" }
    var tag: String { self["recordChangeTag"]?.string ?? "" }

    /// The value of a record's field.
    func field(_ name: String) -> JSONValue? { self["fields"]?[name]?["value"] }

    /// The same object with more members.
    func with(_ more: JSONValue) -> JSONValue {
        guard case .object(let own) = self, case .object(let others) = more else { return self }
        return .object(own.filter { member in !others.contains { $0.key == member.key } } + others)
    }

    static func strings(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
}

extension Answer {
    var code: String? { json.code }
    var reason: String { json.reason }

    /// The array that an answer must have.
    func items(_ key: String = "records", sourceLocation: SourceLocation = #_sourceLocation) throws -> [JSONValue] {
        try #require(json[key]?.array, "\(self)", sourceLocation: sourceLocation)
    }

    /// The only item of an array that must have one.
    func item(_ key: String = "records", sourceLocation: SourceLocation = #_sourceLocation) throws -> JSONValue {
        let items = try items(key, sourceLocation: sourceLocation)
        try #require(items.count == 1, "\(self)", sourceLocation: sourceLocation)
        return items[0]
    }

    var names: [String] { json["records"]?.array?.map(\.name) ?? [] }
}

/// A request failed as a whole.
func expectFailure(
    _ answer: Answer, _ status: Int, _ code: String, _ reason: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(answer.status == status, "\(answer)", sourceLocation: sourceLocation)
    #expect(answer.code == code, "\(answer)", sourceLocation: sourceLocation)
    #expect(reason.isEmpty || answer.reason.contains(reason), "\(answer)", sourceLocation: sourceLocation)
}

/// An item failed.
func expectError(
    _ item: JSONValue, _ code: String, _ reason: String = "", sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(item.code == code, "\(item.text)", sourceLocation: sourceLocation)
    #expect(reason.isEmpty || item.reason.contains(reason), "\(item.text)", sourceLocation: sourceLocation)
}
