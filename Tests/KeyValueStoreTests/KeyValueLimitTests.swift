import GRDB
import RecordModel
import Testing

@testable import KeyValueStore

@Suite("Key-value limits")
struct KeyValueLimitTests {
    private let million = 1_048_576

    @Test("1,024 keys fit, 1,025 do not, and the refusal says which limit")
    func keys() throws {
        let shard = try Shard()
        try shard.write((0..<1023).map { set("k\($0)", .bool(true)) })
        #expect(try shard.write([set("last", .bool(true))]).usage == KeyValueUsage(keys: 1024, bytes: 1024))
        let outcome = try shard.write([set("more", .bool(true))])
        #expect(outcome == .refused(KeyValueRefusal(.keys, actual: 1025, max: 1024)))
        #expect(outcome.refusal?.isQuotaViolation == true)
        // At the limit keys may change, change places and go.
        #expect(try shard.write([set("k0", .int64(1))]).usage?.keys == 1024)
        #expect(try shard.write([set("more", .bool(true)), delete("k0")]).usage?.keys == 1024)
        #expect(try shard.write([delete("k1")]).usage?.keys == 1023)
        try shard.checkCounters()
    }

    @Test("1,048,576 bytes fit in all, one more does not; keys do not count")
    func storeBytes() throws {
        let shard = try Shard()
        try shard.write([set("a", filler(million - 10)), set("b", filler(9))])
        #expect(try shard.write([set("b", filler(10))]).usage == KeyValueUsage(keys: 2, bytes: million))
        let refused = KeyValueOutcome.refused(KeyValueRefusal(.storeBytes, actual: million + 1, max: million))
        #expect(try shard.write([set("b", filler(11))]) == refused)
        #expect(try shard.write([set("c", .bool(false))]) == refused)
        #expect(try shard.write([set("c", .bool(false)), set("b", filler(9))]).usage?.bytes == million)
        #expect(try shard.write([set("d", filler(0))]).usage == KeyValueUsage(keys: 4, bytes: million))
        #expect(try shard.write([delete("a")]).usage?.bytes == 10)
        try shard.checkCounters()
    }

    @Test("A value may have 1,048,576 bytes and no more", arguments: [1_048_575, 1_048_576, 1_048_577])
    func valueBytes(count: Int) throws {
        let outcome = try Shard().write([set("a", .data(Array(repeating: 7, count: count)))])
        if count <= million {
            #expect(outcome.usage?.bytes == count)
        } else {
            #expect(outcome == .refused(KeyValueRefusal(.valueBytes, key: "a", actual: count, max: million)))
        }
    }

    @Test("A key has 1 to 64 bytes of UTF-8")
    func keyBytes() throws {
        let shard = try Shard()
        let longest = String(repeating: "ä", count: 32)
        #expect(try shard.write([set(longest, .bool(true))]).usage?.keys == 1)
        #expect(
            try shard.write([set(longest + "a", .bool(true))])
                == .refused(KeyValueRefusal(.keyBytes, key: longest + "a", actual: 65, max: 64)))
        #expect(
            try shard.write([set("", .bool(true))]) == .refused(KeyValueRefusal(.keyBytes, key: "", actual: 0, max: 64))
        )
        #expect(try shard.write([set("a", .bool(true))]).usage?.keys == 2)
    }

    @Test("Members, depth, writes and names are bounded")
    func others() throws {
        let shard = try Shard()
        let members = Array(repeating: PropertyValue.string(""), count: 10_000)
        #expect(try shard.write([set("a", .array(members))]).usage?.bytes == 80_000)
        let refused = try shard.write([set("a", .array([.array(members)]))])
        #expect(refused == .refused(KeyValueRefusal(.valueMembers, key: "a", actual: 10_001, max: 10_000)))
        var deep = PropertyValue.bool(true)
        for _ in 0..<PropertyValue.depthMax { deep = .array([deep]) }
        #expect(try shard.write([set("a", deep)]).usage?.bytes == 8 * PropertyValue.depthMax)
        #expect(try shard.write([set("a", .array([deep]))]).refusal?.rule == .valueDepth)
        #expect(try shard.write((0..<2048).map { delete("k\($0)") }).usage?.keys == 1)
        #expect(try shard.write((0..<2049).map { delete("k\($0)") }).refusal?.rule == .writes)
        let nameless = StoreKey(container: "c", environment: .development, user: "")
        #expect(try shard.apply(KeyValueCommand(store: nameless, time: 0, writes: [])).refusal?.rule == .name)
        #expect(
            try shard.apply(KeyValueCommand(store: .one, time: 0, writes: [], idempotencyKey: [])).refusal?.rule
                == .name)
        #expect(try shard.apply(KeyValueCommand(store: .one, time: 0, writes: [], device: "")).refusal?.rule == .name)
    }

    @Test("Two writes for one key are refused; two spellings of a letter are two keys")
    func duplicates() throws {
        let shard = try Shard()
        let outcome = try shard.write([set("a", .bool(true)), delete("a")])
        #expect(outcome.refusal == KeyValueRefusal(.duplicateKey, key: "a", actual: 2, max: 1))
        #expect(try shard.write([set("\u{E4}", .int64(1)), set("a\u{308}", .int64(2))]).usage?.keys == 2)
        #expect(try shard.write([set("n\u{0}1", .int64(1)), set("n\u{0}2", .int64(2))]).usage?.keys == 4)
        // In byte order: a + diaeresis, n NUL 1, n NUL 2, ä.
        #expect(try shard.list().map(\.value) == [.int64(2), .int64(1), .int64(2), .int64(1)])
    }

    @Test("What no store takes is refused for the command alone, before it is logged")
    func stateless() {
        let limits = KeyValueLimits.standard
        func problem(_ writes: [KeyValueCommand.Write]) -> KeyValueRefusal? {
            limits.problem(with: KeyValueCommand(store: .one, time: 0, writes: writes))
        }
        #expect(
            problem([set("a", filler(million + 1))])
                == KeyValueRefusal(.valueBytes, key: "a", actual: million + 1, max: million))
        #expect(
            problem((0..<1_025).map { set("k\($0)", .bool(true)) })
                == KeyValueRefusal(.keys, actual: 1_025, max: 1_024))
        #expect(problem((0..<1_025).map { delete("k\($0)") }) == nil)
        #expect(
            problem([set("a", filler(million)), set("b", .bool(true))])
                == KeyValueRefusal(.storeBytes, actual: million + 1, max: million))
        #expect(problem([set("a", filler(million)), delete("b")]) == nil)
    }

    @Test("Members without content fill a store: 131,072 of them are all that it holds")
    func emptyMembers() throws {
        let shard = try Shard()
        let value = PropertyValue.array(Array(repeating: .string(""), count: 10_000))
        for number in 0..<13 { #expect(try shard.write([set("k\(number)", value)]).usage != nil) }
        #expect(
            try shard.write([set("k13", value)])
                == .refused(KeyValueRefusal(.storeBytes, actual: 14 * 80_000, max: million)))
        let rest = PropertyValue.array(Array(repeating: .array([]), count: 1_072))
        #expect(try shard.write([set("k13", rest)]).usage?.bytes == million)
        #expect(try shard.write([set("k14", .array([.string("")]))]).refusal?.rule == .storeBytes)
    }

    @Test("A store from when empty members were free is counted, read, shrunk, and takes nothing that grows it")
    func earlierSizes() throws {
        let shard = try Shard()
        let value = PropertyValue.array(Array(repeating: .string(""), count: 10_000))
        // What that time left: rows that count nothing, in a database without the newer table.
        var limits = KeyValueLimits()
        limits.storeBytesMax = .max
        for number in 0..<20 { try shard.write([set("k\(number)", value)], limits: limits) }
        try shard.queue.write {
            try $0.execute(sql: "UPDATE kv_pair SET bytes = 0; UPDATE kv_store SET bytes = 0; DROP TABLE kv_state")
        }
        try shard.queue.write { try KeyValueTables.upgrade(in: $0) }
        try shard.checkCounters()
        let state = try shard.state()
        try shard.queue.write { try KeyValueTables.upgrade(in: $0) }
        #expect(try shard.state() == state)
        #expect(try shard.list().map(\.value) == Array(repeating: value, count: 20))
        let full = 20 * 80_000
        #expect(
            try shard.write([set("small", .int64(1))])
                == .refused(KeyValueRefusal(.storeBytes, actual: full + 8, max: million)))
        #expect(try shard.write([set("k0", .array([]))]).usage?.bytes == full - 80_000)
        #expect(try shard.write([delete("k1")]).usage?.bytes == full - 160_000)
        #expect(try shard.write((2..<8).map { delete("k\($0)") }).usage?.bytes == full - 8 * 80_000)
        #expect(try shard.write([set("small", .int64(1))]).usage?.bytes == 12 * 80_000 + 8)
        try shard.checkCounters()
    }

    @Test("A conflict repeats the first values that fit a megabyte, and always one")
    func conflictBytes() throws {
        let shard = try Shard()
        let keys = (0..<8).map { "k\($0)" }
        try shard.write(keys.map { set($0, filler(100)) })
        let stale = keys.map { KeyValueCommand.Write(key: $0, value: nil, expectedVersion: KeyValueTables.absent) }
        #expect(try shard.write(stale).conflicts?.map(\.key) == keys)
        var limits = KeyValueLimits()
        limits.conflictBytesMax = 350
        #expect(try shard.write(stale, limits: limits).conflicts?.map(\.key) == ["k0", "k1", "k2"])
        limits.conflictBytesMax = 1
        #expect(try shard.write(stale, limits: limits).conflicts?.map(\.value) == [filler(100)])
        // A repeat under a key is held to it as well.
        let command = KeyValueCommand(store: .one, time: 1000, writes: stale, idempotencyKey: [1])
        #expect(try shard.apply(command).conflicts?.count == 8)
        #expect(try shard.apply(command, limits: limits).conflicts?.count == 1)
    }

    @Test("A store that is over lowered limits takes what shrinks it and nothing that grows it")
    func lowered() throws {
        let shard = try Shard()
        try shard.write([set("a", filler(50)), set("b", filler(50)), set("c", filler(50))])
        var limits = KeyValueLimits()
        limits.keysMax = 1
        limits.storeBytesMax = 10
        limits.valueBytesMax = 10
        #expect(try shard.write([set("d", .bool(true)), set("a", filler(1))], limits: limits).refusal?.rule == .keys)
        #expect(try shard.write([set("a", filler(51))], limits: limits).refusal?.rule == .valueBytes)
        #expect(try shard.write([set("a", filler(49))], limits: limits).refusal?.rule == .valueBytes)
        #expect(try shard.write([set("a", filler(9))], limits: limits).usage?.bytes == 109)
        #expect(try shard.write([set("d", .bool(true)), delete("b")], limits: limits).usage?.keys == 3)
        #expect(try shard.write([delete("c")], limits: limits).usage?.keys == 2)
        #expect(try shard.write([set("d", filler(2))], limits: limits).refusal?.rule == .storeBytes)
        try shard.checkCounters()
    }

    @Test("A refused batch leaves no trace")
    func atomic() throws {
        let shard = try Shard()
        try shard.write([set("a", .int64(1))])
        let before = try shard.state()
        #expect(try shard.write([set("a", .int64(2)), delete("b"), set("c", filler(million + 1))]).refusal != nil)
        let stale = ChangeTag(incarnation: 9, sequence: 9)
        let write = KeyValueCommand.Write(key: "a", value: nil, expectedVersion: stale)
        #expect(try shard.write([set("b", .int64(2)), write]).conflicts?.count == 1)
        #expect(try shard.state() == before)
    }
}
