import GRDB
import KeyValueStore
import RecordModel
import Testing

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
        try shard.checkCounters()
    }
}
