import CoreLocation
import Foundation
import Testing

@testable import CloudKit

/// A format that is well formed, and what a query with it says of it.
struct Refused: Sendable, CustomTestStringConvertible {
    var format: String
    var arguments: @Sendable () -> [Any]
    var text: String
    /// The place of the fault in the format.
    var position: Int

    init(
        _ format: String, _ arguments: @autoclosure @escaping @Sendable () -> [Any] = [], at position: Int,
        _ text: String
    ) {
        self.format = format
        self.arguments = arguments
        self.position = position
        self.text = text
    }

    var testDescription: String { format }

    static let table: [Refused] = [
        Refused("a = 1 OR b = 2", at: 6, "CloudKit has no OR; use IN"),
        Refused("c = 3 AND (a = 1 || b = 2)", at: 17, "CloudKit has no OR; use IN"),
        Refused("NOT (a = 1 OR b = 2)", at: 11, "CloudKit has no OR"),
        Refused("a = 1 AND NOT (b = 2 AND c = 3)", at: 10, "negates single comparisons, not AND"),
        Refused("NOT self CONTAINS 'a'", at: 9, "does not negate words"),
        Refused("NOT a BETWEEN {1, 2}", at: 6, "does not negate BETWEEN"),
        Refused(
            "NOT distanceToLocation:fromLocation:(p, %@) < 1", [CLLocation(latitude: 0, longitude: 0)], at: 44,
            "does not negate distances"),
        Refused(
            "distanceToLocation:fromLocation:(p, %@) > 1", [CLLocation(latitude: 0, longitude: 0)], at: 40,
            "inside a circle only"),
        Refused(
            "1 < distanceToLocation:fromLocation:(p, %@)", [CLLocation(latitude: 0, longitude: 0)], at: 2,
            "inside a circle only"),
        Refused(
            "distanceToLocation:fromLocation:(p, %@) < 0", [CLLocation(latitude: 0, longitude: 0)], at: 40,
            "the radius is not above 0"),
        Refused("distanceToLocation:fromLocation:(p, 'x') < 1", at: 41, "between a field and a CLLocation"),
        Refused("distanceToLocation:fromLocation:(p) < 1", at: 36, "between a field and a CLLocation"),
        Refused(
            "distanceToLocation:fromLocation:(p, %@) < 'x'", [CLLocation(latitude: 0, longitude: 0)], at: 40,
            "compared with a number, the radius"),
        Refused("p = %@", [CLLocation(latitude: 0, longitude: 0)], at: 2, "places are compared by their distance"),
        Refused("a LIKE 'x*'", at: 2, "CloudKit has no LIKE"),
        Refused("a MATCHES '.*'", at: 2, "CloudKit has no MATCHES"),
        Refused("a ENDSWITH[cd] 'x'", at: 2, "CloudKit has no ENDSWITH"),
        Refused("a BEGINSWITH[c] 'x'", at: 2, "CloudKit has no [c] for BEGINSWITH"),
        Refused("a CONTAINS[cd] 'x'", at: 2, "only words, self CONTAINS, are compared without case"),
        Refused("a BEGINSWITH 1", at: 2, "BEGINSWITH is for strings, this is a number"),
        Refused("'x' BEGINSWITH a", at: 4, "a BEGINSWITH 'a'"),
        Refused("ALL tags = 'x'", at: 9, "CloudKit has no ALL"),
        Refused("ANY tags != 'x'", at: 9, "CloudKit has no ANY !="),
        Refused("ANY tags < 3", at: 9, "CloudKit has no ANY <"),
        Refused("a = {1, 2}", at: 2, "a IN {1, 2}"),
        Refused("tags CONTAINS {1, 2}", at: 5, "ANY tags IN {1, 2}"),
        Refused("a IN 1", at: 2, "IN needs a list"),
        Refused("{1} IN a", at: 4, "has no IN like this"),
        Refused("a IN {1, 'x'}", at: 2, "a list is of one type; this one has a number and a string"),
        Refused("a BETWEEN {1}", at: 2, "age BETWEEN {18, 30}"),
        Refused("a BETWEEN 1", at: 2, "age BETWEEN {18, 30}"),
        Refused("1 BETWEEN a", at: 2, "age BETWEEN {18, 30}"),
        Refused("a = NULL", at: 2, "nothing is compared with NULL"),
        Refused("a != nil", at: 2, "nothing is compared with NULL"),
        Refused("a = %@", [NSNull()], at: 2, "nothing is compared with NULL"),
        Refused("a < %@", [CKRecord.ID(recordName: "r")], at: 2, "references have no order"),
        Refused("a = b", at: 2, "not with another field"),
        Refused("1 = 1", at: 2, "one side must be the name of a field"),
        Refused("employee.name = 'x'", at: 14, "CloudKit has no key paths, so 'employee.name' reaches nothing"),
        Refused("%K = 'x'", ["a.b"], at: 3, "CloudKit has no key paths"),
        Refused("self.name = 'x'", at: 10, "write name without 'self.'"),
        Refused("%K = 1", ["größe"], at: 3, "'größe' is no field"),
        Refused("_a = 1", at: 3, "'_a' is no field"),
        Refused("recordChangeTag = 'x'", at: 16, "change tags cannot be searched"),
        Refused("a < sum(1)", at: 2, "CloudKit has no function sum"),
        Refused("self = 'x'", at: 5, "self CONTAINS 'bob smith'"),
        Refused("self CONTAINS 1", at: 5, "words are looked for in a string"),
        Refused("self CONTAINS tokenize:using:('a', 'x')", at: 5, "'cdl'"),
        Refused("a = self", at: 2, "self CONTAINS 'bob smith'"),
    ]
}

@Suite("What CloudKit cannot search for is refused when the query is run")
struct PredicateRefusalTests {
    @Test(
        "Every format of the table is well formed, and refused with its reason and its place", arguments: Refused.table)
    func table(_ row: Refused) throws {
        let query = query(row.format, row.arguments())
        #expect(query.predicate.formatError == nil)
        let text = try #require(refusal(query))
        #expect(text.contains(row.text), "\(text)")
        #expect(text.hasPrefix("Invalid predicate (character \(row.position)): "), "\(text)")
        #expect(text.hasSuffix("\n" + row.format + "\n" + String(repeating: " ", count: row.position) + "^"))
    }

    @Test("A record type that cannot be searched is refused")
    func recordTypes() {
        #expect(refusal(CKQuery(recordType: "", predicate: NSPredicate(value: true)))?.contains("is empty") == true)
        #expect(
            refusal(CKQuery(recordType: "Users", predicate: NSPredicate(value: true)))?.contains("by their ID") == true)
    }

    @Test("A sort descriptor without a key, or with one that is no field, is refused")
    func sorts() {
        let query = CKQuery(recordType: "Item", predicate: NSPredicate(value: true))
        query.sortDescriptors = [NSSortDescriptor(keyPath: \String.count, ascending: true)]
        #expect(refusal(query)?.contains("sort descriptor 1 has no key") == true)
        query.sortDescriptors = [NSSortDescriptor(key: nil, ascending: true)]
        #expect(refusal(query)?.contains("sort descriptor 1 has no key") == true)
        query.sortDescriptors = [
            NSSortDescriptor(key: "a", ascending: true), NSSortDescriptor(key: "a.b", ascending: true),
        ]
        #expect(refusal(query)?.contains("sort descriptor 2: 'a.b' is no field") == true)
    }
}
