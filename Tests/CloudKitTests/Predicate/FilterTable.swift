import CloudKit
import CoreLocation
import Foundation
import RecordModel

/// Formats and the filters that they become; `PredicateFilterTests` compares them, `ServerAcceptanceTests` gives them
/// to the server's own parser. The fields are those of `ServerAcceptanceTests.schema`.
enum FilterTable {
    static let comparisons: [FilterCase] = [
        FilterCase("title = 'red'", [], filter("title", .equals, "\"red\"", "STRING")),
        FilterCase("title == \"red\"", [], filter("title", .equals, "\"red\"", "STRING")),
        FilterCase("'red' == title", [], filter("title", .equals, "\"red\"", "STRING")),
        FilterCase("title != 'red'", [], filter("title", .notEquals, "\"red\"", "STRING")),
        FilterCase("title <> 'red'", [], filter("title", .notEquals, "\"red\"", "STRING")),
        FilterCase("count < 1", [], filter("count", .lessThan, "1")),
        FilterCase("count <= -1", [], filter("count", .lessThanOrEquals, "-1")),
        FilterCase("count =< 0x1F", [], filter("count", .lessThanOrEquals, "31")),
        FilterCase("count > 0b101", [], filter("count", .greaterThan, "5")),
        FilterCase("count >= 0o17", [], filter("count", .greaterThanOrEquals, "15")),
        FilterCase("count => 9223372036854775807", [], filter("count", .greaterThanOrEquals, "9223372036854775807")),
        FilterCase("count == -9223372036854775808", [], filter("count", .equals, "-9223372036854775808")),
        FilterCase("1 < count", [], filter("count", .greaterThan, "1")),
        FilterCase("1 >= count", [], filter("count", .lessThanOrEquals, "1")),
        FilterCase("score > 4", [], filter("score", .greaterThan, "4")),
        FilterCase("score > 1.5e-3", [], filter("score", .greaterThan, "0.0015")),
        FilterCase("score > .5", [], filter("score", .greaterThan, "0.5")),
        FilterCase("score < -2E2", [], filter("score", .lessThan, "-200.0")),
        FilterCase("count == YES", [], filter("count", .equals, "1")),
        FilterCase("count = true", [], filter("count", .equals, "1")),
        FilterCase("count = No", [], filter("count", .equals, "0")),
        FilterCase("count = FALSE", [], filter("count", .equals, "0")),
        FilterCase("#count = 1", [], filter("count", .equals, "1")),
        FilterCase("#in = 'x'", [], filter("in", .equals, "\"x\"", "STRING")),
        FilterCase("((title) = ('red'))", [], filter("title", .equals, "\"red\"", "STRING")),
        FilterCase("title BEGINSWITH 'M'", [], filter("title", .beginsWith, "\"M\"", "STRING")),
        FilterCase("title beginswith %@", ["M"], filter("title", .beginsWith, "\"M\"", "STRING")),
        FilterCase(
            "count BETWEEN {1, 10}", [], filter("count", .greaterThanOrEquals, "1"),
            filter("count", .lessThanOrEquals, "10")),
        FilterCase(
            "count between %@", [[1, 10]], filter("count", .greaterThanOrEquals, "1"),
            filter("count", .lessThanOrEquals, "10")),
        FilterCase("when < now()", [], filter("when", .lessThan, "1000", "TIMESTAMP")),
        FilterCase(
            "title = 'it\\'s \\\"a\\\" \\\\ \\n \\u00e9 \\x41 %@ %d'", [],
            filter("title", .equals, "\"it's \\\"a\\\" \\\\ \\n é A %@ %d\"", "STRING")),
    ]

    static let lists: [FilterCase] = [
        FilterCase("tags CONTAINS 'red'", [], filter("tags", .listContains, "\"red\"", "STRING")),
        FilterCase("ANY tags = 'red'", [], filter("tags", .listContains, "\"red\"", "STRING")),
        FilterCase("some tags = 'red'", [], filter("tags", .listContains, "\"red\"", "STRING")),
        FilterCase("ANY tags CONTAINS 'red'", [], filter("tags", .listContains, "\"red\"", "STRING")),
        FilterCase("'red' IN tags", [], filter("tags", .listContains, "\"red\"", "STRING")),
        FilterCase("%K CONTAINS %@", ["tags", "red"], filter("tags", .listContains, "\"red\"", "STRING")),
        FilterCase("title IN {'a', 'b'}", [], filter("title", .in, "[\"a\",\"b\"]", "STRING_LIST")),
        FilterCase("ANY {'a', 'b'} = title", [], filter("title", .in, "[\"a\",\"b\"]", "STRING_LIST")),
        FilterCase("{'a', 'b'} CONTAINS title", [], filter("title", .in, "[\"a\",\"b\"]", "STRING_LIST")),
        FilterCase("title IN %@", [["a", "b"]], filter("title", .in, "[\"a\",\"b\"]", "STRING_LIST")),
        FilterCase("score IN {1, 2.5}", [], filter("score", .in, "[1,2.5]")),
        FilterCase("title IN {}", [], filter("title", .in, "[]")),
        FilterCase("ANY tags IN {'a', 'b'}", [], filter("tags", .listContainsAny, "[\"a\",\"b\"]", "STRING_LIST")),
        FilterCase("ANY {'a', 'b'} IN tags", [], filter("tags", .listContainsAny, "[\"a\",\"b\"]", "STRING_LIST")),
        FilterCase("NONE tags IN {'a'}", [], filter("tags", .notListContainsAny, "[\"a\"]", "STRING_LIST")),
        FilterCase("NONE tags = 'a'", [], filter("tags", .notListContains, "\"a\"", "STRING")),
        FilterCase("ANY tags BEGINSWITH 're'", [], filter("tags", .listMemberBeginsWith, "\"re\"", "STRING")),
        FilterCase(
            "when IN {now(), %@}", [Date(timeIntervalSince1970: 2)],
            filter("when", .in, "[1000,2000]", "TIMESTAMP_LIST")),
    ]

    static let compounds: [FilterCase] = [
        FilterCase("TRUEPREDICATE", []),
        FilterCase("truepredicate AND count = 1", [], filter("count", .equals, "1")),
        FilterCase("NOT FALSEPREDICATE", []),
        FilterCase(
            "count = 1 AND title = 'a' && score = 2", [], filter("count", .equals, "1"),
            filter("title", .equals, "\"a\"", "STRING"), filter("score", .equals, "2")),
        FilterCase(
            "count = 1 AND (title = 'a' AND score = 2)", [], filter("count", .equals, "1"),
            filter("title", .equals, "\"a\"", "STRING"), filter("score", .equals, "2")),
        FilterCase("NOT count = 1 AND score = 2", [], filter("count", .notEquals, "1"), filter("score", .equals, "2")),
        FilterCase("!(count = 1)", [], filter("count", .notEquals, "1")),
        FilterCase(
            "NOT NOT (count = 1 AND score = 2)", [], filter("count", .equals, "1"), filter("score", .equals, "2")),
        FilterCase("NOT count != 1", [], filter("count", .equals, "1")),
        FilterCase("NOT count < 1", [], filter("count", .greaterThanOrEquals, "1")),
        FilterCase("NOT count >= 1", [], filter("count", .lessThan, "1")),
        FilterCase("NOT (title IN {'a'})", [], filter("title", .notIn, "[\"a\"]", "STRING_LIST")),
        FilterCase("NOT title BEGINSWITH 'a'", [], filter("title", .notBeginsWith, "\"a\"", "STRING")),
        FilterCase("NOT tags CONTAINS 'a'", [], filter("tags", .notListContains, "\"a\"", "STRING")),
        FilterCase("NOT ANY tags IN {'a'}", [], filter("tags", .notListContainsAny, "[\"a\"]", "STRING_LIST")),
        FilterCase("NOT NONE tags = 'a'", [], filter("tags", .listContains, "\"a\"", "STRING")),
        FilterCase("NOT ANY tags BEGINSWITH 'a'", [], filter("tags", .notListMemberBeginsWith, "\"a\"", "STRING")),
    ]

    static let words: [FilterCase] = [
        FilterCase("self contains 'bob smith'", [], filter(nil, .containsAnyTokens, "\"bob smith\"", "STRING")),
        FilterCase("SELF CONTAINS[cd] %@", ["bob"], filter(nil, .containsAnyTokens, "\"bob\"", "STRING")),
        FilterCase("%K CONTAINS %@", ["self", "bob"], filter(nil, .containsAnyTokens, "\"bob\"", "STRING")),
        FilterCase(
            "self contains 'bob' AND self contains 'smith'", [], filter(nil, .containsAnyTokens, "\"bob\"", "STRING"),
            filter(nil, .containsAnyTokens, "\"smith\"", "STRING")),
        FilterCase(
            "allTokens TOKENMATCHES[cdl] %@", ["bob lee"], filter(nil, .containsAllTokens, "\"bob lee\"", "STRING")),
        FilterCase("title TOKENMATCHES[cdl] 'bob'", [], filter("title", .containsAllTokens, "\"bob\"", "STRING")),
        FilterCase(
            "ALL tokenize:using:(%@, 'Cdl') IN allTokens", ["a b"], filter(nil, .containsAllTokens, "\"a b\"", "STRING")
        ),
        FilterCase(
            "ANY tokenize(%@, 'cdl') IN allTokens", ["a b"], filter(nil, .containsAnyTokens, "\"a b\"", "STRING")),
        FilterCase("self CONTAINS tokenize:using:('a', 'cdl')", [], filter(nil, .containsAnyTokens, "\"a\"", "STRING")),
    ]

    static let values: [FilterCase] = [
        FilterCase("when > %@", [Date(timeIntervalSince1970: 1.5)], filter("when", .greaterThan, "1500", "TIMESTAMP")),
        FilterCase(
            "when > %@", [NSDate(timeIntervalSince1970: 1.5)], filter("when", .greaterThan, "1500", "TIMESTAMP")),
        FilterCase("when > %@", [Date(timeIntervalSince1970: -0.0004)], filter("when", .greaterThan, "0", "TIMESTAMP")),
        FilterCase("blob = %@", [Data([1, 2, 255])], filter("blob", .equals, "\"AQL/\"", "BYTES")),
        FilterCase("title = %@", ["x" as NSString], filter("title", .equals, "\"x\"", "STRING")),
        FilterCase("count = %@", [3 as NSNumber], filter("count", .equals, "3")),
        FilterCase("count = %@", [NSNumber(value: true)], filter("count", .equals, "1")),
        FilterCase("count = %@", [true], filter("count", .equals, "1")),
        FilterCase("score = %@", [NSNumber(value: 2.5)], filter("score", .equals, "2.5")),
        FilterCase("score = %@", [Float(0.5)], filter("score", .equals, "0.5")),
        FilterCase("score = %f", [CGFloat(0.25)], filter("score", .equals, "0.25")),
        FilterCase(
            "count = %d AND count = %ld", [1, Int64(2)], filter("count", .equals, "1"), filter("count", .equals, "2")),
        FilterCase(
            "count = %i AND count = %lld", [Int8(1), 2], filter("count", .equals, "1"), filter("count", .equals, "2")),
        FilterCase(
            "count = %u AND count = %llu", [UInt(1), UInt64(2)], filter("count", .equals, "1"),
            filter("count", .equals, "2")),
        FilterCase(
            "count = %x AND count = -%d", [255, 2], filter("count", .equals, "255"), filter("count", .equals, "-2")),
        FilterCase("title = %s", ["x"], filter("title", .equals, "\"x\"", "STRING")),
        FilterCase("title IN %@", [NSArray(array: ["a"])], filter("title", .in, "[\"a\"]", "STRING_LIST")),
        FilterCase(
            "other = %@", [CKRecord.Reference(recordID: CKRecord.ID(recordName: "r"), action: .deleteSelf)],
            filter("other", .equals, referenceJSON("r"), "REFERENCE")),
        FilterCase(
            "other = %@", [CKRecord(recordType: "Item", recordID: CKRecord.ID(recordName: "r"))],
            filter("other", .equals, referenceJSON("r"), "REFERENCE")),
        FilterCase(
            "recordID = %@", [CKRecord.ID(recordName: "r")],
            filter("___recordID", .equals, referenceJSON("r"), "REFERENCE")),
        FilterCase(
            "recordID IN %@", [[CKRecord.ID(recordName: "r")]],
            filter("___recordID", .in, "[\(referenceJSON("r"))]", "REFERENCE_LIST")),
        FilterCase("recordID = 'r'", [], filter("___recordID", .equals, "\"r\"", "STRING")),
        FilterCase(
            "creatorUserRecordID = %@", [CKRecord.ID(recordName: "_u")],
            filter("___createdBy", .equals, referenceJSON("_u"), "REFERENCE")),
        FilterCase(
            "%K = %@", ["lastModifiedUserRecordID", CKRecord.ID(recordName: "_u")],
            filter("___modifiedBy", .equals, referenceJSON("_u"), "REFERENCE")),
        FilterCase(
            "parent = %@", [CKRecord.ID(recordName: "r")],
            filter("___parent", .equals, referenceJSON("r"), "REFERENCE")),
        FilterCase(
            "creationDate > %@ AND modificationDate < %@",
            [Date(timeIntervalSince1970: 1), Date(timeIntervalSince1970: 2)],
            filter("___createTime", .greaterThan, "1000", "TIMESTAMP"),
            filter("___modTime", .lessThan, "2000", "TIMESTAMP")),
        FilterCase(
            "distanceToLocation:fromLocation:(place, %@) < 10", [CLLocation(latitude: 1, longitude: 2)],
            filter("place", .near, "{\"latitude\":1.0,\"longitude\":2.0}", "LOCATION", distance: "10000.0")),
        FilterCase(
            "distanceToLocation:fromLocation:(%@, place) <= %f", [CLLocation(latitude: 1, longitude: 2), 0.5],
            filter("place", .near, "{\"latitude\":1.0,\"longitude\":2.0}", "LOCATION", distance: "500.0")),
        FilterCase(
            "3 > distanceToLocation:fromLocation:(place, %@)", [CLLocation(latitude: 1, longitude: 2)],
            filter("place", .near, "{\"latitude\":1.0,\"longitude\":2.0}", "LOCATION", distance: "3000.0")),
    ]

    static let all = comparisons + lists + compounds + words + values
}
