import RecordModel
import Testing

/// A value that is sent, and what comes back.
struct ValueCase: Sendable, CustomTestStringConvertible {
    var name: String
    var field: String
    var sent: JSONValue
    /// The type stated; nil leaves it to the schema.
    var type: String?
    var value: JSONValue
    var answeredType: String

    /// What is sent comes back.
    init(_ name: String, _ field: String, _ sent: JSONValue, _ type: String?, as answeredType: String? = nil) {
        self.init(name, field, sent, type, value: sent, as: answeredType)
    }

    init(
        _ name: String, _ field: String, _ sent: JSONValue, _ type: String?, value: JSONValue,
        as answeredType: String? = nil
    ) {
        self.name = name
        self.field = field
        self.sent = sent
        self.type = type
        self.value = value
        self.answeredType = answeredType ?? type ?? ""
    }

    var testDescription: String { name }

    var input: JSONValue {
        type.map { ["value": sent, "type": .string($0)] } ?? ["value": sent]
    }

    private static let location: JSONValue = [
        "latitude": 48.2, "longitude": -16.5, "horizontalAccuracy": 5.5, "verticalAccuracy": 3.25, "altitude": 180.5,
        "speed": 1.5, "course": 90.25, "timestamp": 1_700_000_000_000,
    ]

    /// Every type of section 8, with and without the type stated.
    static let all: [ValueCase] = [
        ValueCase("STRING", "title", "text", "STRING"),
        ValueCase("STRING, empty", "title", "", "STRING"),
        ValueCase("STRING, Unicode", "title", "Grüße 👩‍👩‍👧 \u{0}\n\"\\ 日本語", "STRING"),
        ValueCase("INT64 as a number", "count", 7, "INT64"),
        ValueCase("INT64 as a decimal string", "count", "7", "INT64", value: 7),
        ValueCase("INT64, the greatest", "count", 9_223_372_036_854_775_807, "INT64"),
        ValueCase("INT64, the least", "count", -9_223_372_036_854_775_808, "INT64"),
        ValueCase(
            "INT64, the greatest, as a string", "count", "9223372036854775807", "INT64",
            value: 9_223_372_036_854_775_807),
        ValueCase("INT64 spelled NUMBER_INT64", "count", 7, "NUMBER_INT64", as: "INT64"),
        ValueCase("INT64 from true", "count", true, nil, value: 1, as: "INT64"),
        ValueCase("INT64 from false", "count", false, nil, value: 0, as: "INT64"),
        ValueCase("DOUBLE as a number", "ratio", 0.1, "DOUBLE"),
        ValueCase("DOUBLE as a string", "ratio", "0.1", "DOUBLE", value: 0.1),
        ValueCase("DOUBLE, very large", "ratio", 1.7976931348623157e308, "DOUBLE"),
        ValueCase("DOUBLE, very small", "ratio", 2.2250738585072014e-308, "DOUBLE"),
        ValueCase("TIMESTAMP", "due", 1_700_000_000_123, "TIMESTAMP"),
        ValueCase("TIMESTAMP before 1970", "due", -86_400_000, "TIMESTAMP"),
        ValueCase("BYTES", "data", "aGVsbG8=", "BYTES"),
        ValueCase("BYTES, none", "data", "", "BYTES"),
        ValueCase("LOCATION", "place", location, "LOCATION"),
        ValueCase("REFERENCE", "link", ["recordName": "other", "action": "NONE"], "REFERENCE"),
        ValueCase("STRING_LIST", "labels", ["b", "a", "b"], "STRING_LIST"),
        ValueCase("INT64_LIST", "counts", [3, -1, 3], "INT64_LIST"),
        ValueCase("DOUBLE_LIST", "ratios", [0.5, -2.25], "DOUBLE_LIST"),
        ValueCase("TIMESTAMP_LIST", "dues", [1, 2], "TIMESTAMP_LIST"),
        ValueCase("BYTES_LIST", "datas", ["AA==", "/w=="], "BYTES_LIST"),
        ValueCase("LOCATION_LIST", "places", [location], "LOCATION_LIST"),
        ValueCase(
            "REFERENCE_LIST", "links",
            [["recordName": "a", "action": "NONE"], ["recordName": "b", "action": "NONE"]], "REFERENCE_LIST"),
        ValueCase("an empty list", "labels", [], "STRING_LIST", as: "UNKNOWN_LIST"),
        ValueCase("an empty UNKNOWN_LIST", "counts", [], "UNKNOWN_LIST"),
        ValueCase("untyped STRING", "title", "x", nil, as: "STRING"),
        ValueCase("untyped INT64", "count", 1, nil, as: "INT64"),
        ValueCase("untyped DOUBLE", "ratio", 2.5, nil, as: "DOUBLE"),
        ValueCase("untyped whole DOUBLE", "ratio", 2, nil, value: 2.0, as: "DOUBLE"),
        ValueCase("untyped TIMESTAMP, known by the schema", "due", 5, nil, as: "TIMESTAMP"),
        ValueCase("untyped BYTES, known by the schema", "data", "AA==", nil, as: "BYTES"),
        ValueCase("untyped LOCATION", "place", ["latitude": 1.5, "longitude": 2.5], nil, as: "LOCATION"),
        ValueCase("untyped REFERENCE", "link", ["recordName": "x", "action": "NONE"], nil, as: "REFERENCE"),
        ValueCase("untyped list", "labels", ["x"], nil, as: "STRING_LIST"),
        ValueCase("untyped list of bytes", "datas", ["AA=="], nil, as: "BYTES_LIST"),
    ]

    /// Values that do not fit.
    static let wrong: [ValueCase] = [
        ValueCase("a number in a STRING", "title", 1, nil),
        ValueCase("an INT64 stated for a STRING", "title", 1, "INT64"),
        ValueCase("a text in an INT64", "count", "one", nil),
        ValueCase("a fraction in an INT64", "count", 1.5, nil),
        ValueCase("2^63 in an INT64", "count", "9223372036854775808", nil),
        ValueCase("a text in a DOUBLE", "ratio", "half", nil),
        ValueCase("an object in a DOUBLE", "ratio", ["x": 1], nil),
        ValueCase("a text in a TIMESTAMP", "due", "yesterday", nil),
        ValueCase("no base64 in BYTES", "data", "*", nil),
        ValueCase("base64 without padding in BYTES", "data", "AA", nil),
        ValueCase("a number in BYTES", "data", 1, nil),
        ValueCase("a LOCATION without longitude", "place", ["latitude": 1], nil),
        ValueCase("a LOCATION beyond the pole", "place", ["latitude": 91, "longitude": 0], nil),
        ValueCase("a REFERENCE without recordName", "link", ["action": "NONE"], nil),
        ValueCase("a REFERENCE with an unknown action", "link", ["recordName": "a", "action": "EXPLODE"], nil),
        ValueCase("a scalar in a list", "labels", "x", nil),
        ValueCase("a list in a scalar", "title", ["x"], nil),
        ValueCase("a list of mixed types", "labels", ["x", 1], nil),
        ValueCase("a list with null", "labels", ["x", .null], nil),
        ValueCase("a list of lists", "labels", [["x"]], nil),
        ValueCase("an unknown type", "title", "x", "TEXT"),
        ValueCase("a STRING_LIST stated for a STRING", "title", ["x"], "STRING_LIST"),
    ]
}
