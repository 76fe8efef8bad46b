import GRDB
import RecordModel
import Testing

@testable import KeyValueStore

@Suite("Removing a container's preferences")
struct RemoveContainerTests {
    @Test("stores go in bounded parts, those of other containers stay, and tokens of the old life end")
    func removed() throws {
        let shard = try Shard()
        let kept = StoreKey(container: "kept", environment: StoreKey.one.environment, user: "u")
        try shard.apply(
            KeyValueCommand(store: kept, time: 1, writes: [set("k", .int64(1))]))
        try shard.write((0..<10).map { set("k\($0)", .int64(1)) })
        let token = try shard.page(since: nil).token
        guard case .page(let page) = try shard.changes(since: nil, of: kept) else { return }
        let container = StoreKey.one.container
        var parts = 1
        while try !shard.queue.write({ try KeyValueTables.removeContainer(container, rowsMax: 3, in: $0) }) {
            parts += 1
            try #require(parts < 100)
        }
        #expect(parts > 3)
        #expect(try shard.queue.write { try KeyValueTables.removeContainer(container, in: $0) })
        #expect(try shard.list().isEmpty && shard.list(of: kept).count == 1)
        guard case .page(let later) = try shard.changes(since: page.token, of: kept) else {
            Issue.record("another container's token has ended")
            return
        }
        #expect(later.changes.isEmpty && later.token == page.token)
        try shard.write([set("new", .int64(2))])
        #expect(try shard.changes(since: token) == .expired(.restored))
        // Stores that are empty so far have no row. Another container's are of the life that they were.
        func feed(_ container: String) throws -> KeyValueFeed {
            let store = StoreKey(container: container, environment: .production, user: "empty")
            return try shard.changes(
                since: KeyValueToken(incarnation: 1, sequence: 0).text(for: store), of: store)
        }
        guard case .page = try feed("kept") else {
            Issue.record("the token of another container's empty store has ended")
            return
        }
        #expect(try feed(container) == .expired(.restored))
        // A restore ends them all the same.
        #expect(try !shard.queue.write { try KeyValueTables.startNewIncarnation(2, in: $0) })
        #expect(try shard.queue.write { try KeyValueTables.startNewIncarnation(3, in: $0) })
        #expect(try feed("kept") == .expired(.restored))
        try shard.checkCounters()
    }
}
