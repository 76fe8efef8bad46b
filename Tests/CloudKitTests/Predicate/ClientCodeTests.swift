import CloudKit
import Foundation
import Testing

/// Code as applications write it, with the modules that they import: what counts is that it compiles, without
/// ambiguity.
@Suite("Client code of predicates and queries compiles and is understood")
struct ClientCodeTests {
    struct Model {
        var start: Date?
        var name: String?
    }

    @Test("Arguments of every kind, optional ones too")
    func arguments() {
        let date = Date(timeIntervalSince1970: 0)
        let interval = DateInterval(start: date, duration: 60)
        let model = Model(start: date, name: nil)
        let id = CKRecord.ID(recordName: "r")
        let predicates = [
            NSPredicate(format: "start >= %@ AND end <= %@", interval.start as NSDate, interval.end as NSDate),
            NSPredicate(format: "start >= %@", date),
            NSPredicate(format: "start >= %@", date as any CVarArg),
            NSPredicate(format: "start >= %@", model.start! as NSDate),
            NSPredicate(format: "start >= %@", model.start ?? date as Any),
            NSPredicate(format: "name == %@", model.name ?? ""),
            NSPredicate(format: "name == %@", model.start.map { _ in "x" } as Any),
            NSPredicate(format: "title BEGINSWITH %@", "M"),
            NSPredicate(format: "booster = %d", 1),
            NSPredicate(format: "%K IN %@", "name", ["a", "b"]),
            NSPredicate(format: "%K IN %@", "name", ["a", "b"] as NSArray),
            NSPredicate(format: "name IN %@", ["a", "b"] as NSArray as any CVarArg),
            NSPredicate(format: "name IN %@", argumentArray: [["a", "b"]]),
            NSPredicate(format: "n = %@", NSNumber(value: 1)),
            NSPredicate(format: "n = %@", NSNumber(value: 1) as any CVarArg),
            NSPredicate(format: "owner = %@", CKRecord.Reference(recordID: id, action: .none)),
            NSPredicate(format: "recordID = %@", id),
            NSPredicate(format: "recordID = %@", id as any CVarArg),
            NSPredicate(format: "recordID IN %@", [id]),
            NSPredicate(format: "TRUEPREDICATE"),
            NSPredicate(format: "self contains %@", "bob"),
            NSPredicate(
                format: "distanceToLocation:fromLocation:(%K,%@) < %f", "Location",
                CLLocation(latitude: 37.33, longitude: -122.03), CGFloat(3000) / 1000),
            NSPredicate(value: true),
            NSCompoundPredicate(andPredicateWithSubpredicates: [
                NSPredicate(format: "a = 1"), .init(format: "b = %@", "x"),
            ]),
        ]
        for predicate in predicates {
            #expect(predicate.formatError == nil, "\(predicate.formatError?.description ?? "")")
        }
    }

    @Test("Queries and their order")
    func queries() {
        let query = CKQuery(recordType: "Fasting", predicate: .init(format: "end > %@", Date() as NSDate))
        query.sortDescriptors = [.init(key: "end", ascending: true)]
        query.sortDescriptors?.append(NSSortDescriptor(key: "createdAt", ascending: false))
        query.sortDescriptors?.append(
            CKLocationSortDescriptor(key: "place", relativeLocation: CLLocation(latitude: 0, longitude: 0)))
        #expect(query.sortDescriptors?.map(\.key) == ["end", "createdAt", "place"])
        #expect(query.recordType == "Fasting" && query.predicate.formatError == nil)
    }

    @Test("Foundation's own predicates and macros go on as they were")
    func foundation() throws {
        let block = NSPredicate { object, _ in object as? Int == 1 }
        #expect(block.evaluate(with: 1) && !block.evaluate(with: 2))
        #expect(NSPredicate(value: true).evaluate(with: nil))
        #expect([3, 1].sorted(using: SortDescriptor(\Int.self)) == [1, 3])
        #expect(try [1, 2].filter(#Predicate { $0 > 1 }) == [2])
    }

    @Test("A format of C prints objects that are arguments now")
    func formats() {
        let date = NSDate(timeIntervalSince1970: 0)
        #expect(String(format: "%@ %d", NSNumber(value: 7), 3) == "7 3")
        #expect(String(format: "%@", date) == "1970-01-01 00:00:00 +0000")
        #expect(String(format: "%@|%d", date as Date, 3) == "1970-01-01 00:00:00 +0000|3")
        #expect(String(format: "%@ %@", "a", "b") == "a b")
        #expect(String(format: "%@", ["a"] as NSArray as any CVarArg) == NSArray(array: ["a"]).description)
        #expect(String(format: "%d %d", arguments: [1, 2]) == "1 2")
    }
}
