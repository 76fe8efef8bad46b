import ArgumentParser
import RecordModel

/// The value of a limit as people write and read it.
enum LimitValue {
    /// In the unit's own words: `40 requests/s`, `100 MB`, `1,000 records`, `unlimited`.
    static func text(_ value: Int64, _ unit: ContainerLimit.Unit?) -> String {
        if value == ContainerLimit.unlimited { return "unlimited" }
        switch unit {
        case .bytes?: return Units.bytes(value)
        case .requestsPerSecond?, .requests?, .records?, .savesPerMinute?:
            return "\(Units.count(value)) \(unit?.rawValue ?? "")"
        case nil: return Units.count(value)
        }
    }

    /// A number of an answer, which may be a fraction; empty where it is missing.
    static func text(_ json: JSONValue?, _ unit: ContainerLimit.Unit?) -> String {
        switch json {
        case .integer(let value)?: text(value, unit)
        // Nothing that is limited reaches so far.
        case .number(let value)?: abs(value) < 9e18 ? text(Int64(value.rounded(.down)), unit) : "unlimited"
        case nil, .null?: ""
        case let other?: other.plainText
        }
    }

    /// Reads what is written on the command line.
    /// - Returns: nil for `default`.
    /// - Throws: `ValidationError` that says what is expected.
    static func parse(_ text: String, for limit: ContainerLimit) throws -> Int64? {
        switch text.lowercased() {
        case "default": return nil
        case "unlimited":
            guard limit.range.upperBound == ContainerLimit.unlimited else {
                throw ValidationError("\(limit.rawValue): cannot be unlimited; \(expected(limit))")
            }
            return ContainerLimit.unlimited
        default: break
        }
        let isPlain = text.allSatisfy { $0.isASCII && $0.isWholeNumber }
        guard limit.unit == .bytes || isPlain, let value = Units.parse(text), limit.range.contains(value) else {
            throw ValidationError("\(limit.rawValue): \(expected(limit)), not '\(text)'")
        }
        return value
    }

    private static func expected(_ limit: ContainerLimit) -> String {
        let (lower, upper) = (limit.range.lowerBound, limit.range.upperBound)
        return switch limit.unit {
        case .bytes: "an amount such as 10GB or 64MiB, 'unlimited' or 'default' is expected"
        case .records: "a number of records, 'unlimited' or 'default' is expected"
        case .requestsPerSecond, .requests, .savesPerMinute:
            "\(Units.count(lower)) to \(Units.count(upper)) \(limit.unit.rawValue) or 'default' is expected"
        }
    }
}

/// `name=value` on the command line.
struct LimitAssignment: Hashable {
    var limit: ContainerLimit
    /// Nil to set none.
    var value: Int64?

    /// - Throws: `ValidationError`.
    init(parsing text: String) throws {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw ValidationError("'\(text)': name=value is expected") }
        let name = String(parts[0])
        guard let limit = ContainerLimit.allCases.first(where: { $0.rawValue.lowercased() == name.lowercased() }) else {
            let names = ContainerLimit.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("there is no limit '\(name)'; there are \(names)")
        }
        self.limit = limit
        value = try LimitValue.parse(String(parts[1]), for: limit)
    }
}
