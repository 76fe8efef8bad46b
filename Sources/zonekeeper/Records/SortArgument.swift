import ArgumentParser
import RecordModel
import ServiceClient

/// A place on the earth and maybe a radius: `42.5,1.5` or `42.5,1.5,100km`; metres where the radius has no unit.
struct CircleArgument: Hashable {
    var latitude: Double
    var longitude: Double
    /// Metres, above 0.
    var radius: Double?

    private static let units: [(suffix: String, metres: Double)] = [("km", 1_000), ("m", 1), ("", 1)]

    /// - Parameter argument: the whole argument, for the error.
    /// - Throws: `ValidationError` that says what is expected.
    init(parsing text: String, of argument: String) throws {
        let sides = text.split(separator: ",", omittingEmptySubsequences: false).map { String($0.trimmed) }
        guard (2...3).contains(sides.count), let latitude = Double(sides[0]), let longitude = Double(sides[1]),
            (-90...90).contains(latitude), (-180...180).contains(longitude)
        else {
            throw ValidationError(
                "'\(argument)': latitude,longitude in degrees and a distance, such as 42.5,1.5,100km, is expected")
        }
        self.latitude = latitude
        self.longitude = longitude
        guard sides.count == 3 else { return }
        let unit = Self.units.first { sides[2].lowercased().hasSuffix($0.suffix) } ?? ("", 1)
        guard let number = Double(sides[2].dropLast(unit.suffix.count).trimmed), number > 0, number.isFinite else {
            throw ValidationError("'\(argument)': a distance such as 100km or 250m is expected, not '\(sides[2])'")
        }
        radius = number * unit.metres
    }

    /// The place in the protocol's form.
    var json: JSONValue { .members(["latitude": .number(latitude), "longitude": .number(longitude)]) }
}

/// What `--near` names: a field and a place, maybe with a radius, such as `coordinates=42.5,1.5,100km`.
struct NearArgument: Hashable {
    var field: String
    var circle: CircleArgument

    /// - Throws: `ValidationError` that says what is expected.
    init(parsing text: String) throws {
        let sides = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard sides.count == 2, !sides[0].trimmed.isEmpty else {
            throw ValidationError("'\(text)': field=latitude,longitude,distance is expected")
        }
        field = String(sides[0].trimmed)
        circle = try CircleArgument(parsing: String(sides[1]), of: text)
    }

    /// The filter for what is within the radius; nil without one.
    var filter: JSONValue? {
        guard let radius = circle.radius else { return nil }
        return .members([
            FieldName.key(field): .string(field), "comparator": .string(Comparator.near.rawValue),
            "fieldValue": .members(["value": circle.json, "type": .string(ScalarType.location.rawValue)]),
            "distance": .number(radius),
        ])
    }
}

/// A sort key on the command line: `timeZone`, or `-timeZone` for the greatest first; `distance`, where a place is named, is the
/// distance from it.
struct SortArgument: Hashable {
    var field: String
    var isAscending: Bool
    /// The place that distances are from.
    var place: CircleArgument?

    /// - Parameter near: what `--near` names.
    init(_ text: String, near: NearArgument? = nil) {
        isAscending = !text.hasPrefix("-")
        field = isAscending ? text : String(text.dropFirst())
        if field == Self.distance, let near { (field, place) = (near.field, near.circle) }
    }

    /// The word that stands for the distance from the place of `--near`.
    static let distance = "distance"

    /// The sort key in the protocol's form.
    var json: JSONValue {
        .members([
            FieldName.key(field): .string(field), "ascending": .bool(isAscending),
            "relativeLocation": place.map {
                .members(["value": $0.json, "type": .string(ScalarType.location.rawValue)])
            },
        ])
    }
}

/// Names of fields in queries.
enum FieldName {
    private static let system: Set<String> = [
        "recordName", "createdTimestamp", "modifiedTimestamp", "createdUserRecordName", "modifiedUserRecordName",
        "parent", "share",
    ]

    /// The protocol has one key for the names of the schema and one for those of its own.
    static func key(_ name: String) -> String { system.contains(name) ? "systemFieldName" : "fieldName" }
}
