package import RecordModel

extension JSONValue {
    /// An object of the members that have a value.
    package static func members(_ members: KeyValuePairs<String, JSONValue?>) -> JSONValue {
        .object(members.compactMap { key, value in value.map { Member(key, $0) } })
    }

    /// When an error says to come back, in seconds from now, never less than none: exactly by `retryAfterMilliseconds`,
    /// else by `retryAfter`, as other servers have it. Nil where it names no time.
    package var retryAfterSeconds: Double? {
        let exact = self["retryAfterMilliseconds"]?.plainNumber.map { $0 / 1_000 }
        return (exact ?? self["retryAfter"]?.plainNumber).map { max($0, 0) }
    }

    private var plainNumber: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }
}
