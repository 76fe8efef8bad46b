import GRDB
import RecordModel
import Testing

@testable import KeyValueStore

@Suite("Key-value change feed and tokens")
struct KeyValueFeedTests {
    @Test("A token gives what changed after it: sets and deletions, each with version, time and device")
    func changes() throws {
        let shard = try Shard()
        try shard.write([set("a", .int64(1)), set("b", .int64(2))])
        let token = try shard.page(since: nil).token
        try shard.apply(
            KeyValueCommand(store: .one, time: 2000, writes: [delete("a"), set("c", .int64(3))], device: "phone"))
        let page = try shard.page(since: token)
        #expect(
            page.changes == [
                KeyValueChange(
                    key: "a", value: nil, version: ChangeTag(incarnation: 1, sequence: 3), modified: 2000,
                    device: "phone"),
                KeyValueChange(
                    key: "c", value: .int64(3), version: ChangeTag(incarnation: 1, sequence: 4), modified: 2000,
                    device: "phone"),
            ])
        #expect(!page.isMoreComing)
        let end = try shard.page(since: page.token)
        #expect(end.changes.isEmpty)
        #expect(end.token == page.token)
    }

    @Test("A store that was never written has an empty feed, whose token stays good")
    func emptyStore() throws {
        let shard = try Shard()
        let page = try shard.page(since: nil)
        #expect(page.changes.isEmpty)
        try shard.write([set("a", .int64(1))])
        #expect(try shard.page(since: page.token).changes.map(\.key) == ["a"])
        #expect(try shard.queue.read { try KeyValueTables.usage(of: .two, in: $0) } == KeyValueUsage())
    }

    @Test("Times never go back in a store, whatever clock the command had")
    func times() throws {
        let shard = try Shard()
        try shard.write([set("a", .int64(1))], time: 5000)
        try shard.write([set("b", .int64(1))], time: 4000)
        #expect(try shard.list().map(\.modified) == [5000, 5000])
        try shard.apply(KeyValueCommand(store: .two, time: .min, writes: [set("a", .int64(1))], idempotencyKey: [1]))
        #expect(try shard.list(of: .two).map(\.modified) == [.min])
    }

    @Test("A token of another store, a damaged one and mere text are no tokens")
    func foreign() throws {
        let shard = try Shard()
        try shard.write([set("a", .int64(1))])
        let token = try shard.page(since: nil).token
        #expect(try shard.changes(since: token, of: .two) == .invalidToken)
        for text in ["", "x", "AAAA", token + "=", String(token.dropLast(4)), String(repeating: "A", count: 4000)] {
            #expect(try shard.changes(since: text) == .invalidToken, "\(text.prefix(40))")
        }
        for index in token.indices where token[index] != "=" {
            var damaged = token
            damaged.replaceSubrange(index...index, with: token[index] == "B" ? "C" : "B")
            #expect(try shard.changes(since: damaged) == .invalidToken)
        }
    }

    @Test("A restore ends tokens and versions from before it, also of stores made after it")
    func restore() throws {
        let shard = try Shard()
        let version = try #require(try shard.write([set("a", .int64(1))]).versions?.first ?? nil)
        let token = try shard.page(since: nil).token
        let other = KeyValueToken(incarnation: 1, sequence: 0).text(for: .two)
        #expect(try shard.queue.write { try KeyValueTables.startNewIncarnation(2, in: $0) })
        #expect(try shard.changes(since: token) == .expired(.restored))
        #expect(try shard.changes(since: other, of: .two) == .expired(.restored))
        // What was not changed since keeps its version; what is changed gets one that was never given.
        let write = KeyValueCommand.Write(key: "a", value: .int64(2), expectedVersion: version)
        #expect(try shard.write([write]).versions == [ChangeTag(incarnation: 2, sequence: 2)])
        try shard.apply(KeyValueCommand(store: .two, time: 0, writes: [set("a", .int64(1))]))
        #expect(try shard.list(of: .two).first?.version == ChangeTag(incarnation: 2, sequence: 1))
        let before = try shard.state()
        #expect(try shard.queue.write { try KeyValueTables.startNewIncarnation(2, in: $0) } == false)
        #expect(try shard.state() == before)
        #expect(try shard.queue.write { try KeyValueTables.startNewIncarnation(.max, in: $0) })
        #expect(try shard.page(since: nil).changes.count == 1)
    }

    @Test("A token ahead of the store is expired")
    func ahead() throws {
        let shard = try Shard()
        try shard.write([set("a", .int64(1))])
        let token = KeyValueToken(incarnation: 1, sequence: 2).text(for: .one)
        #expect(try shard.changes(since: token) == .expired(.ahead))
        let reading = KeyValueToken(incarnation: 1, sequence: 0, firstReadEnd: 2).text(for: .one)
        #expect(try shard.changes(since: reading) == .expired(.ahead))
    }

    @Test("A token from before a forgotten deletion is expired, one from after it is not")
    func forgotten() throws {
        let shard = try Shard()
        try shard.write([set("a", .int64(1)), set("b", .int64(1))], time: 10)
        let before = try shard.page(since: nil).token
        try shard.write([delete("a")], time: 20)
        let after = try shard.page(since: before).token
        try shard.write([delete("b")], time: 30)
        #expect(try shard.queue.write { try KeyValueTables.forgetTombstones(before: 30, limit: 10, in: $0) } == 1)
        #expect(try shard.changes(since: before) == .expired(.tooOld))
        #expect(try shard.page(since: after).changes.map(\.key) == ["b"])
        #expect(try shard.queue.write { try KeyValueTables.forgetTombstones(before: 31, limit: 0, in: $0) } == 0)
        #expect(try shard.queue.write { try KeyValueTables.forgetTombstones(before: 31, limit: 10, in: $0) } == 1)
        #expect(try shard.changes(since: after) == .expired(.tooOld))
        #expect(try shard.page(since: nil).changes.isEmpty)
        try shard.checkCounters()
    }

    @Test("A store that deletes without end keeps a bounded number of deletions")
    func bounded() throws {
        var limits = KeyValueLimits()
        limits.tombstonesMax = 10
        let shard = try Shard()
        let token = try shard.page(since: nil).token
        for round in 0..<100 {
            try shard.write([set("k\(round)", .int64(1))], limits: limits)
            let mark = try shard.page(since: nil).token
            try shard.write([delete("k\(round)")], limits: limits)
            // Whoever was there a moment ago is never cut off.
            #expect(try shard.page(since: mark).changes.map(\.key) == ["k\(round)"])
            try shard.checkCounters()
        }
        let count = try shard.queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM kv_pair") }
        #expect((5...10).contains(count ?? 0))
        #expect(try shard.changes(since: token) == .expired(.tooOld))
    }

    @Test("A first read gets no deletions and is not expired by those forgotten while it lasts")
    func firstRead() throws {
        let shard = try Shard()
        try shard.write((0..<9).map { set("k\($0)", .int64(1)) }, time: 10)
        try shard.write([delete("k1"), delete("k2")], time: 20)
        var page = try shard.page(since: nil, limit: 3)
        #expect(page.changes.map(\.key) == ["k0", "k3", "k4"])
        #expect(try shard.queue.write { try KeyValueTables.forgetTombstones(before: 21, limit: 10, in: $0) } == 2)
        try shard.write([delete("k0"), set("k9", .int64(1))], time: 30)
        var keys: [String] = []
        while page.isMoreComing {
            page = try shard.page(since: page.token, limit: 3)
            keys += page.changes.map(\.key)
        }
        #expect(keys == ["k5", "k6", "k7", "k8", "k0", "k9"])
    }

    @Test("Pages end before what their reader has no room for, and go on with it")
    func room() throws {
        let shard = try Shard()
        let keys = (0..<10).map { "k\($0)" }
        try shard.write(keys.map { set($0, filler(100)) })
        var room = 0
        func takes(_ value: PropertyValue?) -> Bool {
            room -= value?.sizeBytes ?? 0
            return room >= 0
        }
        var listed: [[String]] = []
        var after: String?
        repeat {
            room = 350
            let page = try shard.queue.read { db in
                try KeyValueTables.list(.one, after: after, in: db) { takes($0.value) }
            }
            listed.append(page.entries.map(\.key))
            after = page.next
        } while after != nil
        #expect(listed.map(\.count) == [3, 3, 3, 1] && listed.flatMap { $0 } == keys)
        var changed: [[String]] = []
        var token: String?
        var isMoreComing = true
        while isMoreComing {
            room = 450
            let feed = try shard.queue.read { db in
                try KeyValueTables.changes(of: .one, since: token, in: db) { takes($0.value) }
            }
            guard case .page(let page) = feed else { throw Unexpected(text: "no page: \(feed)") }
            changed.append(page.changes.map(\.key))
            (token, isMoreComing) = (page.token, page.isMoreComing)
        }
        #expect(changed.map(\.count) == [4, 4, 2] && changed.flatMap { $0 } == keys)
        room = 250
        let got = try shard.queue.read { db in try KeyValueTables.get(keys, of: .one, in: db) { takes($0.value) } }
        #expect(got.map(\.key) == ["k0", "k1"])
    }

    @Test("Get returns what is there, in byte order, each once")
    func get() throws {
        let shard = try Shard()
        try shard.write([set("b", .int64(2)), set("a", .int64(1)), set("c", .int64(3))])
        try shard.write([delete("c")])
        let entries = try shard.queue.read { try KeyValueTables.get(["b", "x", "a", "c", "b"], of: .one, in: $0) }
        #expect(entries.map(\.key) == ["a", "b"])
        #expect(try shard.queue.read { try KeyValueTables.get(["a"], of: .two, in: $0) }.isEmpty)
    }
}
