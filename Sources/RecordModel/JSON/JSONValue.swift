/// A JSON document in memory.
package enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    /// A number written without fraction and exponent that fits 64 bits; all digits are kept.
    case integer(Int64)
    /// Any other number; always finite.
    case number(Double)
    case string(String)
    case array([JSONValue])
    /// Members in the order of the document; no key occurs twice.
    case object([Member])

    /// A key and its value.
    package struct Member: Hashable, Sendable {
        /// The key without quotation marks and escapes.
        package var key: String
        /// Null where the document says so; a missing member has no entry at all.
        package var value: JSONValue
        package init(_ key: String, _ value: JSONValue) {
            self.key = key
            self.value = value
        }
    }

    /// The value of an object's member whose key has the same bytes, by linear search.
    package subscript(key: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        // Equal characters may be other bytes; to compare those alone would be slower for all that differ.
        return members.first { $0.key == key && Bytewise($0.key) == Bytewise(key) }?.value
    }

    /// Whether this is JSON's `null`, which is not the same as a missing member.
    package var isNull: Bool { self == .null }

    /// The text, if this is a string.
    package var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The members, if this is an array.
    package var array: [JSONValue]? {
        if case .array(let members) = self { members } else { nil }
    }

    /// What this is, for error messages: `a string`, `an object`, `null`, ...
    package var kind: String {
        switch self {
        case .null: "null"
        case .bool(let flag): flag ? "true" : "false"
        case .integer, .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// Why a text is not JSON. The text is at fault, so a retry does not help.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The offset of the byte at fault from the start of the text.
    package var position: Int
    /// What would have been right there.
    package var expected: String
    /// What is there.
    package var found: String

    package init(position: Int, expected: String, found: String) {
        self.position = position
        self.expected = expected
        self.found = found
    }

    /// The error in words, with the offset of the byte at fault.
    package var description: String { "byte \(position): expected \(expected), found \(found)" }
}
