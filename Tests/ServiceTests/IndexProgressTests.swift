import Testing

@testable import RecordStore
@testable import Service

@Suite("How far the indexes of a schema are built")
struct IndexProgressTests {
    private static func state(_ field: String, _ isReady: Bool, _ done: UInt64, of total: UInt64) -> IndexState {
        IndexState(type: "Note", field: field, purpose: "QUERYABLE", isReady: isReady, done: done, total: total)
    }

    @Test("an index is the sum of what shards say of it, and ready once all of them say so")
    func sums() {
        let sums = IndexProgress.sums(of: [
            Self.state("b", true, 0, of: 0), Self.state("a", false, 5, of: 10), Self.state("a", false, 1, of: 2),
            Self.state("b", true, 0, of: 0), Self.state("c", false, 10, of: 10), Self.state("c", true, 0, of: 0),
        ])
        #expect(sums.map(\.field) == ["a", "b", "c"])
        #expect(sums.map(\.done) == [6, 0, 10] && sums.map(\.total) == [12, 0, 10])
        // The shard that was at the last record has not ended yet: it refuses queries.
        #expect(sums.map(\.isReady) == [false, true, false])
    }
}
