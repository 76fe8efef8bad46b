import Foundation
import Testing

@testable import CloudKit

extension EndToEnd {
    @Suite("Queries")
    struct QueryCases {
        private func filled(_ count: Int) async throws -> (database: CKDatabase, zone: CKRecordZone.ID) {
            let (database, zone) = try await Cloud.zone()
            var rest = (0..<count).map { note($0, in: zone, text: $0 % 2 == 0 ? "even" : "odd") }[...]
            while !rest.isEmpty {
                let part = Array(rest.prefix(200))
                rest = rest.dropFirst(part.count)
                try await database.modifyRecords(saving: part, deleting: [])
            }
            return (database, zone)
        }

        private func sorted(_ format: String, _ argument: Any? = nil) -> CKQuery {
            let predicate =
                argument.map { NSPredicate(format: format, argumentArray: [$0]) } ?? NSPredicate(format: format)
            let query = CKQuery(recordType: "Note", predicate: predicate)
            query.sortDescriptors = [NSSortDescriptor(key: "number", ascending: true)]
            return query
        }

        @Test("A cursor leads through all pages: no record twice, none left out, whatever the size of a page")
        func paging() async throws {
            let (database, zone) = try await filled(250)
            for limit in [CKQueryOperation.maximumResults, 70, 249] {
                var (results, cursor) = try await database.records(
                    matching: sorted("TRUEPREDICATE"), inZoneWith: zone, desiredKeys: ["number"], resultsLimit: limit)
                #expect(results.count == (limit == 0 ? 200 : limit))
                while let next = cursor {
                    let more = try await database.records(
                        continuingMatchFrom: next, desiredKeys: ["number"], resultsLimit: limit)
                    results += more.matchResults
                    cursor = more.queryCursor
                }
                let numbers = try results.map { try $0.1.get()["number"] as? Int }
                #expect(numbers == Array(0..<250))
            }
        }

        @Test("A cursor out of an archive goes on where it was")
        func archivedCursor() async throws {
            let (database, zone) = try await filled(5)
            let first = try await database.records(matching: sorted("TRUEPREDICATE"), inZoneWith: zone, resultsLimit: 2)
            let data = try NSKeyedArchiver.archivedData(
                withRootObject: try #require(first.queryCursor), requiringSecureCoding: true)
            let cursor = try #require(
                try NSKeyedUnarchiver.unarchivedObject(ofClass: CKQueryOperation.Cursor.self, from: data))
            let rest = try await database.records(continuingMatchFrom: cursor)
            #expect(rest.matchResults.map(\.0.recordName) == ["note-2", "note-3", "note-4"])
            #expect(rest.queryCursor == nil)
        }

        @Test(
            "Filters are the server's; every zone is searched where none is named; nothing is asked that cannot match")
        func filters() async throws {
            let (database, zone) = try await filled(6)
            try await database.save(note(100, text: "even"))
            func numbers(_ query: CKQuery, _ zone: CKRecordZone.ID? = nil) async throws -> [Int?] {
                try await database.records(matching: query, inZoneWith: zone).matchResults.map {
                    try $0.1.get()["number"] as? Int
                }
            }
            #expect(try await numbers(sorted("text = %@", "even"), zone) == [0, 2, 4])
            #expect(try await numbers(sorted("text = %@", "even")) == [0, 2, 4, 100])
            #expect(try await numbers(sorted("number IN %@", [1, 5, 9])) == [1, 5])
            #expect(try await numbers(sorted("FALSEPREDICATE")) == [])
            let everywhere = try await database.records(matching: sorted("number = 100")).matchResults
            #expect(everywhere.map(\.0.zoneID) == [.default])
        }

        @Test("What is wrong with a query is said: unknown type, missing index, predicate that is none")
        func mistakes() async throws {
            let (database, zone) = try await Cloud.zone()
            let unknown = CKQuery(recordType: "Unheard", predicate: NSPredicate(value: true))
            #expect(
                await failure { try await database.records(matching: unknown, inZoneWith: zone) }?.code == .unknownItem)
            let unindexed = CKQuery(recordType: "Note", predicate: NSPredicate(format: "body = %@", Data([1])))
            let error = await failure { try await database.records(matching: unindexed, inZoneWith: zone) }
            #expect(error?.code == .invalidArguments)
            #expect(error?.localizedDescription.contains("not marked queryable") == true)
            let broken = CKQuery(recordType: "Note", predicate: NSPredicate(format: "number ="))
            #expect(await failure { try await database.records(matching: broken) }?.code == .invalidArguments)
        }

        @Test("An operation hands records over while it runs, and a cursor at its end")
        func operation() async throws {
            let (database, zone) = try await filled(120)
            let operation = CKQueryOperation(query: sorted("TRUEPREDICATE"))
            operation.zoneID = zone
            operation.desiredKeys = ["text"]
            operation.resultsLimit = 50
            operation.queuePriority = .veryHigh
            let found = Log<CKRecord>()
            let end = Log<CKQueryOperation.Cursor?>()
            operation.recordMatchedBlock = { _, result in if let record = try? result.get() { found.add(record) } }
            operation.queryResultBlock = { result in end.add((try? result.get()) ?? nil) }
            await run(operation, on: database)
            #expect(found.all.map(\.recordID.recordName) == (0..<50).map { "note-\($0)" })
            #expect(found.all.allSatisfy { $0.allKeys() == ["text"] })
            let next = CKQueryOperation(cursor: try #require(end.all.first ?? nil))
            next.recordFetchedBlock = { found.add($0) }
            await run(next, on: database)
            #expect(found.all.count == 120)
        }
    }
}
