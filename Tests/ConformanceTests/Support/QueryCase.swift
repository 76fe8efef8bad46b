import RecordModel
import Testing

/// A filter, and the records that it must find among those of `QueryCase.records`.
struct QueryCase: Sendable, CustomTestStringConvertible {
    var name: String
    var filter: JSONValue
    var found: String

    init(_ comparator: String, _ field: String, _ value: JSONValue, _ found: String, _ more: JSONValue = [:]) {
        name = "\(field) \(comparator) \(value.text)"
        filter = Space.filter(field, comparator, value, more)
        self.found = found
    }

    var testDescription: String { name }

    /// a, b and c have each field; n has none.
    static let records: [JSONValue] = [
        Space.operation(
            "create", "a",
            [
                "title": ["value": "apple pie"], "count": ["value": 1], "ratio": ["value": 0.5], "due": ["value": 100],
                "data": ["value": "AA=="], "link": ["value": ["recordName": "x"]],
                "labels": ["value": ["red", "green"]],
                "counts": ["value": [1, 2]], "ratios": ["value": [0.5]], "dues": ["value": [100]],
                "datas": ["value": ["AA=="]], "links": ["value": [["recordName": "x"]]],
                "notes": ["value": "Ein süßer Kuchen"], "place": ["value": ["latitude": 48.2, "longitude": 16.37]],
            ]),
        Space.operation(
            "create", "b",
            [
                "title": ["value": "apricot"], "count": ["value": 2], "ratio": ["value": 1.5], "due": ["value": 200],
                "data": ["value": "AQ=="], "link": ["value": ["recordName": "y"]],
                "labels": ["value": ["green", "blue"]],
                "counts": ["value": [2, 3]], "ratios": ["value": [1.5]], "dues": ["value": [200]],
                "datas": ["value": ["AQ=="]], "links": ["value": [["recordName": "y"]]],
                "notes": ["value": "kuchenform und Teig"], "place": ["value": ["latitude": 47.07, "longitude": 15.44]],
            ]),
        Space.operation(
            "create", "c",
            [
                "title": ["value": "banana"], "count": ["value": 3], "ratio": ["value": 2.5], "due": ["value": 300],
                "data": ["value": "Ag=="], "link": ["value": ["recordName": "z"]], "labels": ["value": ["rosé"]],
                "counts": ["value": [4]], "ratios": ["value": [2.5]], "dues": ["value": [300]],
                "datas": ["value": ["Ag=="]], "links": ["value": [["recordName": "z"]]],
                "notes": ["value": "Teig, kneten; Kuchen backen"],
                "place": ["value": ["latitude": 52.52, "longitude": 13.4]],
            ]),
        Space.operation("create", "n"),
    ]

    static let all: [QueryCase] = scalars + texts + lists + places + words + system

    private static let scalars: [QueryCase] = [
        QueryCase("EQUALS", "count", 2, "b"), QueryCase("EQUALS", "ratio", 0.5, "a"),
        QueryCase("EQUALS", "due", 300, "c"), QueryCase("EQUALS", "data", "AQ==", "b"),
        QueryCase("EQUALS", "link", ["recordName": "y"], "b"), QueryCase("EQUALS", "title", "banana", "c"),
        QueryCase("NOT_EQUALS", "count", 2, "acn"), QueryCase("NOT_EQUALS", "title", "banana", "abn"),
        QueryCase("NOT_EQUALS", "link", ["recordName": "x"], "bcn"),
        QueryCase("LESS_THAN", "count", 2, "a"), QueryCase("LESS_THAN_OR_EQUALS", "count", 2, "ab"),
        QueryCase("GREATER_THAN", "count", 2, "c"), QueryCase("GREATER_THAN_OR_EQUALS", "count", 2, "bc"),
        QueryCase("LESS_THAN", "ratio", 1.5, "a"), QueryCase("GREATER_THAN_OR_EQUALS", "ratio", 1.5, "bc"),
        QueryCase("GREATER_THAN", "due", 100, "bc"), QueryCase("LESS_THAN", "title", "apricot", "a"),
        QueryCase("GREATER_THAN", "data", "AA==", "bc"),
        QueryCase("IN", "count", [1, 3, 9], "ac"), QueryCase("IN", "title", ["banana", "x"], "c"),
        QueryCase("IN", "count", [], ""), QueryCase("NOT_IN", "count", [1, 3], "bn"),
        QueryCase("IN", "link", [["recordName": "x"], ["recordName": "z"]], "ac"),
    ]

    private static let texts: [QueryCase] = [
        QueryCase("BEGINS_WITH", "title", "ap", "ab"), QueryCase("BEGINS_WITH", "title", "apple", "a"),
        QueryCase("BEGINS_WITH", "title", "", "abc"), QueryCase("NOT_BEGINS_WITH", "title", "ap", "cn"),
    ]

    private static let lists: [QueryCase] = [
        QueryCase("LIST_CONTAINS", "labels", "green", "ab"), QueryCase("NOT_LIST_CONTAINS", "labels", "green", "cn"),
        QueryCase("LIST_CONTAINS_ALL", "labels", ["green", "blue"], "b"),
        QueryCase("NOT_LIST_CONTAINS_ALL", "labels", ["green", "blue"], "acn"),
        QueryCase("LIST_CONTAINS_ANY", "labels", ["red", "blue"], "ab"),
        QueryCase("NOT_LIST_CONTAINS_ANY", "labels", ["red", "blue"], "cn"),
        QueryCase("LIST_CONTAINS", "counts", 2, "ab"), QueryCase("LIST_CONTAINS_ANY", "counts", [1, 4], "ac"),
        QueryCase("LIST_CONTAINS", "ratios", 1.5, "b"), QueryCase("LIST_CONTAINS", "dues", 300, "c"),
        QueryCase("LIST_CONTAINS", "datas", "AA==", "a"),
        QueryCase("LIST_CONTAINS", "links", ["recordName": "y"], "b"),
        // Any member, not the first (section 18, row 10).
        QueryCase("LIST_MEMBER_BEGINS_WITH", "labels", "gr", "ab"),
        QueryCase("LIST_MEMBER_BEGINS_WITH", "labels", "r", "ac"),
        QueryCase("NOT_LIST_MEMBER_BEGINS_WITH", "labels", "gr", "cn"),
    ]

    private static let vienna: JSONValue = ["latitude": 48.21, "longitude": 16.37]

    private static let places: [QueryCase] = [
        QueryCase("NEAR", "place", vienna, "a", ["distance": 10_000]),
        QueryCase("NEAR", "place", vienna, "ab", ["distance": 200_000]),
        QueryCase("NEAR", "place", vienna, "abc", ["distance": 1_000_000]),
        QueryCase("NEAR", "place", vienna, "", ["distance": 1]),
    ]

    private static let words: [QueryCase] = [
        QueryCase("CONTAINS_ALL_TOKENS", "notes", "kuchen", "ac"),
        QueryCase("CONTAINS_ALL_TOKENS", "notes", "kuchen teig", "c"),
        QueryCase("CONTAINS_ANY_TOKENS", "notes", "kuchen teig", "abc"),
        // Case and diacritics do not count: ß is ss.
        QueryCase("CONTAINS_ALL_TOKENS", "notes", "SÜSSER", "a"), QueryCase("CONTAINS_ALL_TOKENS", "notes", "such", ""),
        QueryCase("CONTAINS_ALL_TOKENS", "notes", "kuchen*", "abc"),
        QueryCase("CONTAINS_ALL_TOKENS", "title", "pie apple", "a"),
        QueryCase("CONTAINS_ANY_TOKENS", "labels", "ROSE", "c"),
    ]

    private static let system: [QueryCase] = [
        QueryCase("EQUALS", "___recordID", ["recordName": "b"], "b"),
        QueryCase("EQUALS", "___recordId", ["recordName": "b"], "b"),
        QueryCase("IN", "___recordID", [["recordName": "a"], ["recordName": "n"]], "an"),
        QueryCase("GREATER_THAN", "___createTime", 0, "abcn"), QueryCase("LESS_THAN", "___modTime", 0, ""),
    ]
}
