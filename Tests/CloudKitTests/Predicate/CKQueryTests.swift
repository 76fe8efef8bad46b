import CoreLocation
import Foundation
import RecordModel
import Testing

@testable import CloudKit

@Suite("CKQuery")
struct CKQueryTests {
    private func archived(_ query: CKQuery) throws -> CKQuery {
        let data = try NSKeyedArchiver.archivedData(withRootObject: query, requiringSecureCoding: true)
        return try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: CKQuery.self, from: data))
    }

    @Test("A query archived and read again asks for the same")
    func archive() throws {
        let query = query(
            "title = %@ AND when < %@ AND other = %@ AND blob = %@ AND count IN {1, 2} AND NOT tags CONTAINS 'x'",
            ["it's", Date(timeIntervalSince1970: 3), CKRecord.ID(recordName: "r"), Data([1])])
        query.sortDescriptors = [
            NSSortDescriptor(key: "title", ascending: false),
            CKLocationSortDescriptor(key: "place", relativeLocation: CLLocation(latitude: 1.5, longitude: 2)),
        ]
        let again = try archived(query)
        #expect(again.recordType == "Item")
        #expect(try again.webForm() == query.webForm())
        #expect(again.sortDescriptors?.map(\.key) == ["title", "place"])
    }

    @Test("Constants, faults and blocks survive an archive")
    func archiveOfOthers() throws {
        for flag in [true, false] {
            let query = CKQuery(recordType: "Item", predicate: NSPredicate(value: flag))
            #expect(try filters(archived(query)) == filters(query))
            #expect(try archived(query).sortDescriptors == nil)
        }
        let wrong = query("title =")
        #expect(try archived(wrong).predicate.formatError == wrong.predicate.formatError)
        let block = CKQuery(recordType: "Item", predicate: NSPredicate { _, _ in true })
        #expect(refusal(try archived(block)) == refusal(block))
    }

    @Test("A copy has the same and goes its own way")
    func copy() throws {
        let query = query("count = 1")
        query.sortDescriptors = [NSSortDescriptor(key: "count", ascending: true)]
        let copy = try #require(query.copy() as? CKQuery)
        #expect(try copy.webForm() == query.webForm())
        copy.sortDescriptors = nil
        #expect(query.sortDescriptors?.count == 1)
    }

    @Test("The query's JSON is that of records/query")
    func json() throws {
        let query = CKQuery(recordType: "Item", predicate: NSPredicate(format: "count = 1"))
        query.sortDescriptors = [
            .init(key: "creationDate", ascending: false),
            CKLocationSortDescriptor(key: "place", relativeLocation: CLLocation(latitude: 1, longitude: 2)),
        ]
        let text = try query.webForm().map { String(decoding: $0.serialized(), as: UTF8.self) }
        #expect(
            text
                == "{\"recordType\":\"Item\",\"filterBy\":[\(filter("count", .equals, "1"))],\"sortBy\":["
                + "{\"fieldName\":\"___createTime\",\"ascending\":false},"
                + "{\"fieldName\":\"place\",\"ascending\":true,\"relativeLocation\":"
                + "{\"value\":{\"latitude\":1.0,\"longitude\":2.0},\"type\":\"LOCATION\"}}]}")
    }

    @Test("A sort descriptor knows its key, also as a copy; one of a key path has none")
    func keys() throws {
        let descriptor = NSSortDescriptor(key: "createdAt", ascending: false)
        #expect(descriptor.key == "createdAt" && !descriptor.ascending)
        #expect((descriptor.copy() as? NSSortDescriptor)?.key == "createdAt")
        #expect(NSSortDescriptor(keyPath: \String.count, ascending: true).key == nil)
        let place = CLLocation(latitude: 1, longitude: 2)
        let location = CKLocationSortDescriptor(key: "place", relativeLocation: place)
        #expect(location.key == "place" && location.relativeLocation === place)
        let data = try NSKeyedArchiver.archivedData(withRootObject: location, requiringSecureCoding: true)
        let again = try NSKeyedUnarchiver.unarchivedObject(ofClass: CKLocationSortDescriptor.self, from: data)
        #expect(again?.key == "place" && again?.relativeLocation.coordinate.longitude == 2)
    }

    @Test("A query describes itself, and a wrong one too")
    func description() {
        let query = query("title = 'a' AND when < %@", [Date(timeIntervalSince1970: 3)])
        query.sortDescriptors = [NSSortDescriptor(key: "title", ascending: false)]
        #expect(query.description == "<CKQuery: Item; title == 'a' AND when < %@; by title descending>")
        let wrong = CKQuery(recordType: "Item", predicate: NSPredicate(format: "title ="))
        #expect(wrong.description == "<CKQuery: Item; wrong format \"title =\">")
    }

    @Test("A query can be used from several tasks")
    func tasks() async {
        let query = query("count = 1")
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<8 {
                group.addTask {
                    query.sortDescriptors = [NSSortDescriptor(key: "k\(index)", ascending: true)]
                    #expect(refusal(query) == nil)
                }
            }
        }
        #expect(query.sortDescriptors?.count == 1)
    }
}
