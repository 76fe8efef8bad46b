import GRDB
import RecordModel
import Testing

@testable import KeyValueStore

@Suite("Preferences that contradict themselves stop a replica, and nothing of the command is kept")
struct KeyValueInvariantTests {
    /// What is done to a sound shard, and the words that then name it.
    static let damages = [
        ("UPDATE kv_store SET tombstones = -1", "counts -1 tombstones"),
        ("UPDATE kv_store SET keys = -1", "holds -1 keys"),
        ("UPDATE kv_store SET keys = 100", "has 100 keys"),
        ("UPDATE kv_store SET bytes = 0", "and its store 0 in 1 keys"),
        ("UPDATE kv_store SET keys = 0, bytes = 5", "has no key, and counts 5 bytes"),
        ("UPDATE kv_store SET floor = 1000", "forgot deletions up to 1000"),
        ("UPDATE kv_store SET incarnation = 0", "has incarnation 0"),
        ("UPDATE kv_pair SET sequence = 1000 WHERE value IS NOT NULL", "changed at 1000"),
        ("UPDATE kv_pair SET incarnation = 7", "is of incarnation 7"),
        ("UPDATE kv_pair SET bytes = -1 WHERE value IS NOT NULL", "counts -1 bytes"),
    ]

    @Test("what a batch meets", arguments: damages)
    func damaged(sql: String, words: String) throws {
        let shard = try Shard()
        try shard.write([set("a", .string("0123456789"))])
        try shard.write([set("b", .int64(1))])
        try shard.write([delete("b")])
        try shard.queue.write { try $0.execute(sql: sql) }
        let before = try shard.state()
        let violation = #expect(throws: InvariantViolation.self) { try shard.write([set("a", .int64(2))]) }
        #expect(violation?.description.contains(words) == true)
        #expect(try shard.state() == before)
    }
}
