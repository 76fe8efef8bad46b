import GRDB
import RecordModel
import Testing
import Wire

@testable import KeyValueStore

@Suite("Key-value writes: versions, retries, state")
struct KeyValueApplyTests {
    private func retry(_ writes: [KeyValueCommand.Write], key: [UInt8] = [1, 2], time: Int64 = 1000) -> KeyValueCommand
    {
        KeyValueCommand(store: .one, time: time, writes: writes, idempotencyKey: key)
    }

    @Test("Deleting what is not there changes nothing, not even a version")
    func missing() throws {
        let shard = try Shard()
        let before = try shard.state()
        #expect(try shard.write([delete("a")]) == .applied(versions: [nil], usage: KeyValueUsage()))
        #expect(try shard.state() == before)
        try shard.write([set("a", .int64(1))])
        try shard.write([delete("a")])
        let after = try shard.state()
        #expect(try shard.write([delete("a")]).versions == [nil])
        #expect(try shard.state() == after)
    }

    @Test("A write that expects a version yields to a newer one, with the value that is there")
    func conflict() throws {
        let shard = try Shard()
        let first = try #require(try shard.write([set("level", .int64(1))]).versions?.first ?? nil)
        let second = try #require(try shard.write([set("level", .int64(13))]).versions?.first ?? nil)
        let stale = KeyValueCommand.Write(key: "level", value: .int64(2), expectedVersion: first)
        let conflict = KeyValueConflict(key: "level", value: .int64(13), version: second)
        #expect(try shard.write([stale]) == .conflict([conflict]))
        let fresh = KeyValueCommand.Write(key: "level", value: .int64(14), expectedVersion: second)
        #expect(try shard.write([fresh]).usage != nil)
        let new = KeyValueCommand.Write(key: "level", value: .int64(0), expectedVersion: KeyValueTables.absent)
        #expect(try shard.write([new]).conflicts?.first?.value == .int64(14))
        try shard.write([delete("level")])
        #expect(try shard.write([fresh]).conflicts?.first?.value == .some(nil))
        #expect(try shard.write([new]).usage?.keys == 1)
    }

    @Test("A batch that comes twice with one idempotency key is applied once and answered alike")
    func idempotency() throws {
        let shard = try Shard()
        let command = retry([set("a", .int64(1))])
        let first = try shard.apply(command)
        try shard.write([set("a", .int64(2))])
        let state = try shard.state()
        #expect(try shard.apply(retry([set("a", .int64(1))], time: 2000)) == first)
        #expect(try shard.list().first?.value == .int64(2))
        #expect(try shard.state() == state)
        #expect(try shard.apply(retry([set("a", .int64(3))])).refusal?.rule == .idempotencyKeyReused)
        #expect(try shard.apply(retry([set("a", .int64(3))], key: [9])).usage != nil)
    }

    @Test("A late copy of a refused or yielding batch does not happen after all")
    func lateCopies() throws {
        var limits = KeyValueLimits()
        limits.keysMax = 1
        let shard = try Shard()
        try shard.write([set("a", .int64(1))])
        let refused = try shard.apply(retry([set("b", .int64(1))]), limits: limits)
        #expect(refused.refusal?.rule == .keys)
        #expect(try shard.apply(retry([set("b", .int64(1))])) == refused)
        let expecting = KeyValueCommand.Write(key: "a", value: .int64(5), expectedVersion: KeyValueTables.absent)
        #expect(try shard.apply(retry([expecting], key: [7])).conflicts?.first?.value == .int64(1))
        try shard.write([delete("a")])
        let late = try shard.apply(retry([expecting], key: [7]))
        let gone = KeyValueConflict(key: "a", value: nil, version: ChangeTag(incarnation: 1, sequence: 2))
        #expect(late == .conflict([gone]))
        #expect(try shard.list().isEmpty)
    }

    @Test(
        "An answer is kept in few bytes, whatever the batch holds, and a repeat gets all of it, also what an earlier level kept",
        arguments: [7, 8] as [UInt64])
    func shortAnswers(level: UInt64) throws {
        let shard = try Shard()
        let names = (0..<1_024).map { "key\($0)" + String(repeating: "x", count: 50) }
        let halves = names.enumerated().map { $0 % 2 == 0 ? delete("no" + $1) : set($1, .int64(2)) }
        let stale = names.map { KeyValueCommand.Write(key: $0, value: nil, expectedVersion: KeyValueTables.absent) }
        let batches = [
            names.map { set($0, .int64(1)) }, halves, stale, Array(stale[1...7]) + [set(names[9], .int64(1))],
            [delete("none")], [],
        ]
        let commands = batches.enumerated().map { retry($1, key: [UInt8($0)]) }
        let answers = try commands.map { try shard.apply($0, at: 1_000, level: FeatureLevel(level)) }
        #expect(answers.prefix(2).allSatisfy { $0.usage?.keys == 1_024 })
        #expect(answers.map { $0.conflicts?.count } == [nil, nil, 1_024, 7, nil, nil])
        for (command, answer) in zip(commands, answers) { #expect(try shard.apply(command) == answer) }
        let longest = try shard.queue.read { try Int.fetchOne($0, sql: "SELECT max(length(outcome)) FROM kv_answer") }
        #expect(try #require(longest) < 200 || level < FeatureLevel.shortAnswers.rawValue)
        try shard.checkCounters()
    }

    @Test("Answers are kept a day; a key from before is refused rather than done again")
    func oldKeys() throws {
        let shard = try Shard()
        let day: Int64 = 86_400_000
        var uuid = Array(repeating: UInt8(0), count: 16)
        uuid[4] = 3
        uuid[5] = 0xE8  // 1000 ms
        uuid[6] = 0x70
        #expect(try shard.apply(retry([set("a", .int64(1))], key: uuid)).usage != nil)
        let edge = try shard.apply(retry([set("a", .int64(1))], key: uuid, time: 1000 + day))
        #expect(edge.usage != nil)
        #expect(try shard.list().first?.version.sequence == 1)
        #expect(try shard.apply(retry([set("a", .int64(1))], key: uuid, time: 1001 + day)) == edge)
        #expect(try shard.queue.write { try KeyValueTables.forgetAnswers(before: .max, limit: 5, in: $0) } == 1)
        for time in [1000, 1001 + day] {
            let late = try shard.apply(retry([set("a", .int64(1))], key: uuid, time: time))
            #expect(late.refusal?.rule == .idempotencyKeyTooOld)
        }
        // One that was never seen is too old by the clock of its own command.
        uuid[4] = 4
        #expect(
            try shard.apply(retry([set("a", .int64(1))], key: uuid, time: 1257 + day)).refusal?.rule
                == .idempotencyKeyTooOld)
        #expect(try shard.apply(retry([set("a", .int64(1))], key: uuid, time: 1256 + day)).usage != nil)
    }

    /// A UUID of version 7.
    private func key(made time: Int64) -> [UInt8] {
        (0..<6).map { UInt8(truncatingIfNeeded: time >> Int64(40 - 8 * $0)) } + [0x70]
            + Array(repeating: 0, count: 9)
    }

    @Test("A node whose clock is days ahead makes no other store's batch happen twice, and harms no store for good")
    func wrongClock() throws {
        let shard = try Shard()
        let now: Int64 = 1_700_000_000_000
        let ahead = now + 3 * 86_400_000
        let command = retry([set("a", .int64(1))], key: key(made: now), time: now)
        let first = try shard.apply(command)
        // The shard's time follows by a minute a command.
        var time = now
        func wrong(_ store: StoreKey) throws {
            time = ShardClock.time(time, after: ahead)
            try shard.apply(KeyValueCommand(store: store, time: ahead, writes: [set("x", .int64(1))]), at: time)
        }
        for _ in 0..<50 { try wrong(.two) }
        #expect(try shard.apply(command, at: time) == first)
        #expect(try shard.list().first?.version.sequence == 1)
        // Also where that went on until all was forgotten: a repeat is refused, and new batches are taken.
        #expect(try shard.queue.write { try KeyValueTables.forgetAnswers(before: .max, limit: 99, in: $0) } == 1)
        #expect(try shard.apply(command, at: time).refusal?.rule == .idempotencyKeyTooOld)
        let next = retry([set("a", .int64(2))], key: key(made: now + 1), time: now + 1)
        #expect(try shard.apply(next, at: time).usage != nil)
        // The store that the node wrote to is judged and stamped by right clocks again.
        try wrong(.one)
        let later = retry([set("a", .int64(3))], key: key(made: now + 2), time: now + 2)
        #expect(try shard.apply(later, at: time).usage != nil)
        #expect(try shard.list().first?.modified == now + 2)
    }

    @Test("Stores do not see each other")
    func separate() throws {
        let shard = try Shard()
        var other = StoreKey.one
        other.environment = .development
        try shard.write([set("a", .int64(1))])
        try shard.apply(KeyValueCommand(store: .two, time: 0, writes: [set("a", .int64(2))]))
        try shard.apply(KeyValueCommand(store: other, time: 0, writes: [set("a", .int64(3))]))
        #expect(try shard.list().map(\.value) == [.int64(1)])
        #expect(try shard.list(of: .two).map(\.value) == [.int64(2)])
        #expect(try shard.list(of: other).map(\.version.sequence) == [1])
    }

    @Test("The state hash sees every table, and a damaged value is corruption, not an answer")
    func damage() throws {
        let statements = [
            "UPDATE kv_pair SET device = x'41'", "UPDATE kv_pair SET value = x'FF'", "UPDATE kv_store SET floor = 1",
            "UPDATE kv_answer SET digest = digest + 1", "UPDATE kv_shard SET incarnation = 5", "DELETE FROM kv_pair",
        ]
        for sql in statements {
            let shard = try Shard()
            try shard.apply(retry([set("a", .int64(1))]))
            let before = try shard.state()
            try shard.queue.write { try $0.execute(sql: sql) }
            #expect(try shard.state() != before, "\(sql)")
        }
        let shard = try Shard()
        try shard.write([set("a", .int64(1))])
        try shard.queue.write { try $0.execute(sql: "UPDATE kv_pair SET value = x'FF'") }
        #expect(throws: KeyValueCorruption.self) { try shard.list() }
    }

    @Test("The hot statements use their indexes")
    func plans() throws {
        let shard = try Shard()
        let queries = [
            ("SELECT id FROM kv_pair WHERE store = 1 AND key = x'41'", "kv_pair_key"),
            (
                "SELECT key FROM kv_pair WHERE store = 1 AND key > x'41' AND value IS NOT NULL ORDER BY key",
                "kv_pair_key"
            ),
            (
                "SELECT key FROM kv_pair WHERE store = 1 AND sequence > 1 AND (value IS NOT NULL OR sequence > 3) "
                    + "ORDER BY sequence", "kv_pair_feed"
            ),
            (
                "SELECT sequence FROM kv_pair WHERE store = 1 AND value IS NULL ORDER BY sequence DESC "
                    + "LIMIT 1 OFFSET 5",
                "kv_tombstone"
            ),
            (
                "SELECT id FROM kv_pair WHERE value IS NULL AND modified < 5 "
                    + "ORDER BY modified, store, sequence LIMIT 5",
                "kv_tombstone_age"
            ),
        ]
        for (sql, index) in queries {
            let plan = try shard.queue.read { try Row.fetchAll($0, sql: "EXPLAIN QUERY PLAN " + sql) }
            let text = plan.map { ($0["detail"] as String?) ?? "" }.joined(separator: "; ")
            #expect(text.contains(index) && !text.contains("TEMP B-TREE"), "\(sql): \(text)")
        }
    }

    @Test(
        "Deletions and answers that are past their time are forgotten by whatever is written in the shard next, a few at a time"
    )
    func forgetting() throws {
        let day: Int64 = 86_400_000
        let shard = try Shard()
        try shard.write((0..<10).map { set("k\($0)", .bool(true)) } + [set("kept", .int64(1))], time: 0)
        let begin = try shard.page(since: nil).token
        for number in 0..<10 { try shard.write([delete("k\(number)")], time: Int64(number)) }
        for number in 0..<10 { try shard.apply(retry([set("a", .int64(1))], key: [UInt8(number)], time: 10)) }
        func count(_ what: String) throws -> Int {
            try shard.queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM \(what)") ?? -1 }
        }
        func other(_ time: Int64) throws {
            try shard.apply(KeyValueCommand(store: .two, time: time, writes: [set("x", .int64(time))]))
            try shard.checkCounters()
        }
        try other(25 * 3_600_000)
        #expect(try count("kv_answer") == 10, "an answer counts for a day, and stays an hour longer")
        try other(25 * 3_600_000 + 11)
        #expect(try count("kv_answer") == 6)
        try other(90 * day)
        #expect(try count("kv_answer") == 2 && count("kv_pair WHERE value IS NULL") == 10)
        #expect(try shard.page(since: begin).changes.count == 11)
        try other(90 * day + 10)
        #expect(try count("kv_answer") == 0 && count("kv_pair WHERE value IS NULL") == 6)
        #expect(try shard.changes(since: begin) == .expired(.tooOld))
        try other(90 * day + 10)
        try other(90 * day + 10)
        #expect(try count("kv_pair WHERE value IS NULL") == 0)
        #expect(try shard.list().map(\.key) == ["a", "kept"])
        try other(.min)
        try other(.max)
    }
}
