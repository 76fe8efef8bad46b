import RecordModel

extension JSONValue {
    /// A member as people read it; empty where it is missing.
    func text(_ key: String) -> String { self[key]?.plainText ?? "" }

    /// A member that is in milliseconds since 1970, as a time.
    func time(_ key: String) -> String {
        guard case .integer(let milliseconds)? = self[key] else { return "" }
        return Times.text(milliseconds)
    }

    /// A string as it is, anything else as JSON.
    var plainText: String {
        switch self {
        case .string(let text): text
        case .null: ""
        default: String(decoding: serialized(), as: UTF8.self)
        }
    }
}
