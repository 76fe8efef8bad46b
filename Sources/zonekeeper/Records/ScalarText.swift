import ArgumentParser
import RecordModel
import ServiceClient

/// Values of a stated type, as they are written on the command line.
enum ScalarText {
    /// The JSON of a value in the protocol's form.
    /// - Throws: `ValidationError` that says what is expected.
    static func json(_ text: String, as type: ScalarType) throws -> JSONValue {
        switch type {
        case .string, .asset, .number: return .string(text)
        case .int64:
            guard let number = Int64(text) else {
                throw ValidationError("INT64: a whole number of at most 64 bits is expected, not '\(text)'")
            }
            return .integer(number)
        case .double:
            guard let number = JSONParser.parseNumber(text) else {
                throw ValidationError("DOUBLE: a number such as 1.5 is expected, not '\(text)'")
            }
            return number
        case .timestamp:
            guard let milliseconds = Times.milliseconds(text) else {
                throw ValidationError(
                    "TIMESTAMP: milliseconds since 1970, or a time such as 2026-01-31T12:00:00Z, is expected, not '\(text)'"
                )
            }
            return .integer(milliseconds)
        case .bytes:
            guard Base64.decode(text) != nil else {
                throw ValidationError("BYTES: base64 with padding is expected, not '\(text.shortened(to: 40))'")
            }
            return .string(text)
        case .location: return try location(text)
        case .reference: return .members(["recordName": .string(text), "action": .string("NONE")])
        }
    }

    private static func location(_ text: String) throws -> JSONValue {
        let sides = text.split(separator: ",", omittingEmptySubsequences: false)
        guard sides.count == 2, let latitude = Double(sides[0]), let longitude = Double(sides[1]),
            (-90...90).contains(latitude), (-180...180).contains(longitude)
        else {
            throw ValidationError(
                "LOCATION: latitude,longitude in degrees, such as 42.5,1.5167, is expected, not '\(text)'")
        }
        return .members(["latitude": .number(latitude), "longitude": .number(longitude)])
    }
}
