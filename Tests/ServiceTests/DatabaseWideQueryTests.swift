import Testing

@testable import Service

@Suite("Queries over all zones of a database")
struct DatabaseWideQueryTests {
    @Test("cost a token more for each MB that the shards send beyond one page")
    func tokens() {
        #expect(DatabaseWideQuery.tokens(forGathered: 0) == 0)
        #expect(DatabaseWideQuery.tokens(forGathered: 5_000_000) == 0)
        #expect(DatabaseWideQuery.tokens(forGathered: 100_000_000) == 95)
    }
}
