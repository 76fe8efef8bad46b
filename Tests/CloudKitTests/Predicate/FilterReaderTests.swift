import CoreLocation
import Foundation
import RecordModel
import Testing

@testable import CloudKit

@Suite("Filters of other programs are read as predicates")
struct FilterReaderTests {
    private let reader = FilterReader(zone: .default, distanceUnit: .kilometers)

    private func read(_ filters: String) throws -> CKQuery {
        let json = try JSONParser.parse(Array(filters.utf8))
        return CKQuery(recordType: "Item", predicate: try reader.predicate(json.array ?? []))
    }

    private func format(_ filters: String) throws -> String {
        guard case .success(let node) = try read(filters).reading else { return "not read" }
        return PredicatePrinter(node).format
    }

    @Test("What a predicate becomes is read as one that becomes the same", arguments: FilterTable.all)
    func table(_ row: FilterCase) throws {
        let form = try #require(try query(row.format, row.arguments()).webForm(now: Date(timeIntervalSince1970: 1)))
        let again = CKQuery(recordType: "Item", predicate: try reader.predicate(form["filterBy"]?.array ?? []))
        #expect(try filters(again) == row.json)
    }

    @Test("Every comparator has a predicate", arguments: RecordModel.Comparator.allCases)
    func comparators(_ comparator: RecordModel.Comparator) throws {
        let value =
            switch comparator {
            case .in, .notIn, .listContainsAll, .listContainsAny, .notListContainsAll, .notListContainsAny: "[\"a\"]"
            case .near: "{\"latitude\": 1, \"longitude\": 2}"
            default: "\"a\""
            }
        let text = """
            [{"comparator": "\(comparator.rawValue)", "fieldName": "f", "fieldValue": {"value": \(value)}, "distance": 5}]
            """
        // Several members are asked for one by one, and so is a single one.
        let found: RecordModel.Comparator =
            switch comparator {
            case .listContainsAll: .listContains
            case .notListContainsAll: .notListContains
            default: comparator
            }
        #expect(try filters(try read(text)).contains("\"\(found.rawValue)\""))
    }

    @Test("Several members of a list are asked for one by one")
    func members() throws {
        let filter = #""fieldName": "tags", "fieldValue": {"value": ["a", "b"], "type": "STRING_LIST"}}]"#
        #expect(
            try format(#"[{"comparator": "LIST_CONTAINS_ALL", "# + filter) == "ANY tags == 'a' AND ANY tags == 'b'")
        #expect(
            try format(#"[{"comparator": "NOT_LIST_CONTAINS_ALL", "# + filter)
                == "NOT (ANY tags == 'a' AND ANY tags == 'b')")
        #expect(try format("[]") == "TRUEPREDICATE")
    }

    @Test("A record's own properties have the names that they have in predicates, and values the types they are of")
    func properties() throws {
        func filter(_ name: String, _ value: String) -> String {
            "[{\"comparator\": \"EQUALS\", \(name), \"fieldValue\": \(value)}]"
        }
        let date = #"{"value": 1500, "type": "TIMESTAMP"}"#
        #expect(try format(filter("\"systemFieldName\": \"createdTimestamp\"", date)) == "creationDate == %@")
        #expect(try format(filter("\"fieldName\": \"___modTime\"", date)) == "modificationDate == %@")
        #expect(try format(filter("\"fieldName\": \"___recordId\"", #"{"value": "r"}"#)) == "recordID == 'r'")
        #expect(try format(filter("\"fieldName\": \"n\"", #"{"value": "7", "type": "INT64"}"#)) == "n == 7")
        #expect(try format(filter("\"fieldName\": \"n\"", #"{"value": 7, "type": "DOUBLE"}"#)) == "n == 7.0")
        #expect(try format(filter("\"fieldName\": \"n\"", #"{"value": true}"#)) == "n == 1")
    }

    @Test(
        "What no predicate says is an error that names it",
        arguments: [
            (#"{"comparator": "LATER", "fieldName": "f", "fieldValue": {"value": 1}}"#, "LATER"),
            (#"{"comparator": "EQUALS", "fieldName": "f", "fieldValue": {"value": [1]}}"#, "EQUALS of a list"),
            (#"{"comparator": "IN", "fieldName": "f", "fieldValue": {"value": 1}}"#, "IN of a number"),
            (#"{"comparator": "EQUALS", "fieldName": "parent", "fieldValue": {"value": 1}}"#, "the field parent"),
            (#"{"comparator": "EQUALS", "fieldName": "f", "fieldValue": {"value": {}, "type": "ASSET"}}"#, "ASSET"),
        ])
    func unsaid(_ filter: String, _ named: String) throws {
        let error = #expect(throws: CKError.self) { try read("[\(filter)]") }
        #expect(error?.code == .invalidArguments)
        #expect(error?.localizedDescription.contains(named) == true, "\(error?.localizedDescription ?? "")")
    }
}
