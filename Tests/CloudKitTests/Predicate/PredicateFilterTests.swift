import CoreLocation
import Foundation
import RecordModel
import Testing

@testable import CloudKit

@Suite("A predicate becomes the filters of records/query")
struct PredicateFilterTests {
    @Test("Every format of the table becomes exactly its filters", arguments: FilterTable.all)
    func table(_ row: FilterCase) throws {
        let query = query(row.format, row.arguments())
        #expect(query.predicate.formatError == nil)
        #expect(try filters(query) == row.json)
    }

    @Test("A predicate that nothing matches needs no request", arguments: ["FALSEPREDICATE", "NOT TRUEPREDICATE"])
    func never(_ format: String) throws {
        #expect(try filters(query(format)) == "never")
        #expect(try filters(query("count = 1 AND \(format)")) == "never")
        #expect(refusal(query("FALSEPREDICATE AND title LIKE 'x'")) != nil, "what is wrong is said all the same")
    }

    @Test("NSPredicate(value:) is all or nothing")
    func values() throws {
        #expect(try filters(CKQuery(recordType: "Item", predicate: NSPredicate(value: true))) == "[]")
        #expect(try filters(CKQuery(recordType: "Item", predicate: NSPredicate(value: false))) == "never")
    }

    @Test("Compound predicates of formats are read")
    func compounds() throws {
        let one = NSPredicate(format: "count = 1")
        let two = NSPredicate(format: "title = %@", "a")
        let both = filter("count", .equals, "1") + "," + filter("title", .equals, "\"a\"", "STRING")
        func run(_ predicate: NSPredicate) throws -> String {
            try filters(CKQuery(recordType: "Item", predicate: predicate))
        }
        #expect(try run(NSCompoundPredicate(andPredicateWithSubpredicates: [one, two])) == "[\(both)]")
        #expect(try run(NSCompoundPredicate(andPredicateWithSubpredicates: [])) == "[]")
        #expect(
            try run(NSCompoundPredicate(orPredicateWithSubpredicates: [one])) == "[\(filter("count", .equals, "1"))]")
        #expect(try run(NSCompoundPredicate(orPredicateWithSubpredicates: [])) == "never")
        #expect(
            try run(NSCompoundPredicate(notPredicateWithSubpredicate: one)) == "[\(filter("count", .notEquals, "1"))]")
        let either = CKQuery(
            recordType: "Item", predicate: NSCompoundPredicate(orPredicateWithSubpredicates: [one, two]))
        #expect(refusal(either)?.contains("use IN") == true)
        let neither = NSCompoundPredicate(
            notPredicateWithSubpredicate: NSCompoundPredicate(andPredicateWithSubpredicates: [one, two]))
        #expect(refusal(CKQuery(recordType: "Item", predicate: neither))?.contains("not AND") == true)
    }

    @Test("A fault in a part of a compound predicate is the compound's")
    func faultInPart() {
        let predicate = NSCompoundPredicate(andPredicateWithSubpredicates: [
            NSPredicate(format: "count = 1"), NSPredicate(format: "title ="),
        ])
        #expect(predicate.formatError?.position == 7)
        #expect(refusal(CKQuery(recordType: "Item", predicate: predicate))?.contains("title =\n       ^") == true)
    }

    @Test("Blocks, and compounds nested without end, are refused when the query is run")
    func unreadable() {
        let block = NSPredicate { _, _ in true }
        #expect(block.formatError == nil)
        #expect(refusal(CKQuery(recordType: "Item", predicate: block))?.contains("made of a block") == true)
        var deep = NSPredicate(format: "count = 1")
        for _ in 0..<200 { deep = NSCompoundPredicate(notPredicateWithSubpredicate: deep) }
        #expect(refusal(CKQuery(recordType: "Item", predicate: deep))?.contains("100 deep") == true)
    }

    @Test("The unit of distances is kilometres unless metres are asked for")
    func units() throws {
        let query = query(
            "distanceToLocation:fromLocation:(place, %@) < %f", [CLLocation(latitude: 0, longitude: 0), 5.0])
        #expect(try query.webForm()?["filterBy"]?.array?.first?["distance"] == .number(5000))
        #expect(try query.webForm(distanceUnit: .meters)?["filterBy"]?.array?.first?["distance"] == .number(5))
    }
}
