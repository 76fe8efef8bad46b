import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("stored data that contradict themselves stop a replica, and nothing of the command is kept")
struct InvariantTests {
    /// What is done to a sound shard, and the words that then name it.
    static let damages = [
        ("UPDATE zone SET tombstones = -1", "has -1 tombstones"),
        ("UPDATE zone SET floor = 1000", "forgot changes up to 1000"),
        ("UPDATE zone SET incarnation = 0", "has incarnation 0"),
        ("UPDATE zone SET bytes = -5", "holds"),
        ("UPDATE database SET bytes = 0", "of its database"),
        ("UPDATE database SET sequence = -7", "changed at -6"),
        ("UPDATE database SET zones = -2", "with -2 zones"),
        ("UPDATE database SET returned_bytes = received_bytes + 1", "gave back"),
        ("UPDATE zone SET sequence = 0, floor = 0, tombstones = 0", "record 1 changed at 1, and its zone"),
        ("UPDATE record SET sequence = 1000 WHERE name = 'a'", "comes to 3 only now"),
        ("UPDATE record SET sequence = 0 WHERE name = 'a'", "changed at 0"),
    ]

    @Test("what a command meets", arguments: damages)
    func damaged(sql: String, words: String) throws {
        let shard = try Fixture(zone: Fixture.work)
        _ = try shard.modify(Fixture.work, .make(.create, "a", [("plain", .string("x"))]))
        _ = try shard.modify(Fixture.work, .make(.create, "b"))
        try shard.queue.write { try $0.execute(sql: sql) }
        let before = try contents(of: shard)
        do {
            _ = try shard.modify(Fixture.work, .make(.forceUpdate, "a", [("plain", .string("y"))]))
            Issue.record("nothing was noticed of: \(sql)")
        } catch let violation as InvariantViolation {
            #expect(violation.description.contains(words), "\(violation)")
        }
        #expect(try contents(of: shard) == before)
    }

    @Test("a deleted record is not deleted again, and its tombstone has no values")
    func tombstones() throws {
        for sql in ["UPDATE record SET body = x'00' WHERE deleted = 1", "UPDATE zone SET tombstones = 0"] {
            let shard = try Fixture(zone: Fixture.work)
            _ = try shard.modify(Fixture.work, .make(.create, "a"))
            _ = try shard.modify(Fixture.work, .make(.forceDelete, "a"))
            try shard.queue.write { try $0.execute(sql: sql) }
            #expect(throws: InvariantViolation.self, "\(sql)") {
                try shard.modify(Fixture.work, .make(.create, "a"))
            }
        }
    }

    @Test(
        "what waits to be delivered, and what was told",
        arguments: [
            ("UPDATE outbox_stream SET rows = 0", "-1 effects"),
            ("UPDATE outbox_stream SET bytes = 1", "effects of -"),
            ("UPDATE registry SET floor = 100", "up to 100 they went"),
        ])
    func subscriptions(sql: String, words: String) throws {
        let pair = try Pair()
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        for fixture in [pair.shard, pair.home] { try fixture.queue.write { try $0.execute(sql: sql) } }
        do {
            try pair.deliverAll()
            try pair.shard.zone(.create, ZoneKey(database: Fixture.annsData, name: "other"))
            Issue.record("nothing was noticed of: \(sql)")
        } catch let violation as InvariantViolation {
            #expect(violation.description.contains(words), "\(violation)")
        }
    }

    @Test("effects of which one is missing are not delivered")
    func gap() throws {
        let pair = try Pair()
        try pair.watch(Pair.subscription("all"))
        for name in ["a", "b", "c"] { try pair.shard.zone(.create, ZoneKey(database: Fixture.annsData, name: name)) }
        try pair.shard.queue.write { try $0.execute(sql: "DELETE FROM outbox WHERE sequence = 2") }
        #expect(throws: InvariantViolation.self) { try pair.deliverAll() }
    }

    @Test("replicas are compared by every table")
    func tables() throws {
        let shard = try Fixture()
        let names = try shard.queue.read { db in
            try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        }
        let compared = try shard.stateBytes().map { String(decoding: $0, as: UTF8.self) }
        for name in names { #expect(compared.contains(name), "\(name) is missing in allTables") }
    }

    private func contents(of shard: Fixture) throws -> [Row] {
        try shard.queue.read { db in
            try ["zone", "database", "record"].flatMap { try Row.fetchAll(db, sql: "SELECT * FROM \($0) ORDER BY id") }
        }
    }
}
