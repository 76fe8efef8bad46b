import RecordModel
import Testing

@testable import zonekeeper

@Suite("Subscriptions by type")
struct SubscriptionCountsTests {
    @Test("pages are added up, the most frequent first, and those of one type by name")
    func sums() throws {
        var counts = SubscriptionCounts()
        for types in [
            """
            {"subscriptionType": "query", "database": "public", "recordType": "Note", "subscriptions": 2, "users": 1},
            {"subscriptionType": "database", "database": "private", "subscriptions": 1, "users": 1}
            """,
            """
            {"subscriptionType": "query", "database": "public", "recordType": "Task", "subscriptions": 3, "users": 2},
            {"subscriptionType": "query", "database": "public", "recordType": "Note", "subscriptions": 1, "users": 1}
            """,
        ] { counts.add(try JSONParser.parse(Array(#"{"types": [\#(types)]}"#.utf8))) }
        #expect(counts.types.map { $0["recordType"]?.string } == ["Note", "Task", nil])
        #expect(counts.types.map { $0.amount("subscriptions") } == [3, 3, 1])
        #expect(counts.types.map { $0.amount("users") } == [2, 2, 1])
    }
}
