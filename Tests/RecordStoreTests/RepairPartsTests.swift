import Authorization
import Foundation
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("numbers of an open kind, parts of maintenance, what a walk from the beginning shows")
struct RepairPartsTests {
    let shard: Fixture
    let zone = Fixture.work
    init() throws {
        shard = try Fixture(zone: Fixture.work)
    }

    func install(_ version: UInt64, _ type: FieldType) throws {
        var note = Fixture.note
        note.fields.append(Fixture.indexed("size", type))
        try shard.apply(Fixture.install(version, Schema(types: [note, Fixture.secret, Fixture.bare])))
    }

    func save(_ name: String, _ value: FieldValue, version: UInt64) throws -> ErrorCode? {
        try shard.modify(zone, version: version, .make(.create, name, [("size", value)])).codes.first ?? nil
    }

    func sizes(_ names: String...) throws -> [FieldValue?] {
        try names.map { try shard.lookup($0, in: zone)?.fields["size"] }
    }

    func sorted(_ version: UInt64) throws -> [String] {
        let query = Query(recordType: "Note", sorts: [Sort(field: "size")])
        guard case .found(let page) = try shard.query(zone, query, version: version) else { return ["refused"] }
        return page.records.map(\.name)
    }

    static let huge: Int64 = (1 << 53) + 1

    func fillNumbers() throws {
        try install(2, FieldType(.number))
        for (name, value) in [
            ("c", FieldValue.int64(2)), ("a", .double(0.5)), ("b", .double(1)), ("d", .int64(Self.huge)),
        ] {
            #expect(try save(name, value, version: 2) == nil)
        }
        #expect(try save("x", .string("1"), version: 2) == .badRequest)
        #expect(try sizes("a", "b", "c", "d") == [.double(0.5), .double(1), .int64(2), .int64(Self.huge)])
        #expect(try sorted(2) == ["a", "b", "c", "d"])
    }

    func expectRowsAsRemade() throws {
        let stored = try shard.rowsOfIndexes()
        try shard.remakeIndexes()
        #expect(try shard.rowsOfIndexes() == stored)
    }

    @Test("an open number holds both kinds; preferred as INT64 the others are converted or hidden, never lost")
    func asInteger() throws {
        try fillNumbers()
        try install(3, FieldType(.number, preferred: .int64))
        for _ in 0..<2 {
            #expect(try sizes("a", "b", "c", "d") == [nil, .int64(1), .int64(2), .int64(Self.huge)])
            #expect(try sorted(3) == ["a", "b", "c", "d"])
            try shard.maintain()
        }
        #expect(try save("e", .double(1), version: 3) == .badRequest)
        try expectRowsAsRemade()
        // It is hidden, not gone.
        let body = try shard.queue.read { try Data.fetchOne($0, sql: "SELECT body FROM record WHERE name = 'a'") }
        #expect(try decodeBody(Array(body ?? Data()))["size"] == .double(0.5))
    }

    @Test("preferred as DOUBLE, whole numbers up to 2^53 become doubles and greater ones are hidden")
    func asDouble() throws {
        try fillNumbers()
        try install(3, FieldType(.number, preferred: .double))
        for _ in 0..<2 {
            #expect(try sizes("a", "b", "c", "d") == [.double(0.5), .double(1), .double(2), nil])
            #expect(try sorted(3) == ["d", "a", "b", "c"])
            try shard.maintain()
        }
        try expectRowsAsRemade()
    }

    @Test("lists of an open number hold either kind and are converted as a whole")
    func lists() throws {
        try install(2, FieldType(.number, isList: true))
        #expect(try save("a", .list(.int64, [.int64(2), .int64(1)]), version: 2) == nil)
        #expect(try save("b", .list(.double, [.double(1), .double(0.5)]), version: 2) == nil)
        #expect(try save("c", .list(.string, [.string("1")]), version: 2) == .badRequest)
        try install(3, FieldType(.number, isList: true, preferred: .int64))
        #expect(try sizes("a", "b") == [.list(.int64, [.int64(2), .int64(1)]), nil])
        try shard.maintain()
        #expect(try sizes("a", "b") == [.list(.int64, [.int64(2), .int64(1)]), nil])
    }

    /// Records of half a megabyte.
    func fillLarge(_ count: Int) throws {
        let value = FieldValue.string(String(repeating: "x", count: 500_000))
        for number in 0..<count {
            #expect(try shard.one(zone, .make(.create, "r\(number)", [("plain", value)]))?.saved != nil)
        }
    }

    @Test("a part of maintenance ends after 4 MB of bodies, whatever rows it may work on")
    func bytesOfAPart() throws {
        try fillLarge(20)
        let position = "SELECT coalesce(max(position), -1) FROM job"
        var note = Fixture.note
        for place in note.fields.indices where note.fields[place].name == "rank" { note.fields[place].indexes = [] }
        try shard.apply(Fixture.install(2, Schema(types: [note, Fixture.secret, Fixture.bare])))
        try shard.maintain()
        // Built by the command itself as far as one part goes.
        try shard.apply(Fixture.install(3))
        #expect(try shard.count(position) == 9)
        try shard.apply(.maintain(Maintain(time: 1)))
        #expect(try shard.count(position) == 18)
        try shard.maintain()
        note.fields.removeAll { $0.name == "plain" }
        try shard.apply(Fixture.install(4, Schema(types: [note, Fixture.secret, Fixture.bare])))
        try shard.apply(.maintain(Maintain(time: 1)))
        #expect(try shard.count("SELECT count(*) FROM record WHERE length(body) < 1000") == 9)
        try shard.maintain()
        #expect(try shard.count("SELECT count(*) FROM record WHERE length(body) < 1000") == 20)
    }

    @Test("a retired zone's records go in parts of 4 MB")
    func bytesOfAZone() throws {
        try fillLarge(20)
        try shard.zone(.delete, zone)
        #expect(try shard.apply(.maintain(Maintain(time: 1))) == .maintained(hasMore: true))
        #expect(try shard.count("SELECT count(*) FROM record") == 11)
        #expect(try shard.maintain() == 2)
        #expect(try shard.count("SELECT count(*) FROM record") == 0)
    }

    @Test("what is too old goes while jobs wait")
    func purgesHaveAShare() throws {
        for number in 0..<30 { _ = try shard.one(zone, .make(.create, "r\(number)", [("rank", .int64(1))])) }
        for number in 0..<3 { _ = try shard.one(zone, .make(.forceDelete, "r\(number)")) }
        let key = IdempotencyKey(
            key: [UInt8](repeating: 1, count: 16), bodyHash: [UInt8](repeating: 1, count: 32), caller: "c")
        _ = try shard.modify(zone, idempotency: key, .make(.create, "new"))
        var note = Fixture.note
        for place in note.fields.indices where note.fields[place].name == "rank" { note.fields[place].indexes = [] }
        try shard.apply(Fixture.install(2, Schema(types: [note, Fixture.secret, Fixture.bare])))
        try shard.setTime(1 << 40)
        let command = Maintain(time: 1 << 40, rowsMax: 10)
        #expect(try shard.apply(.maintain(command)) == .maintained(hasMore: true))
        #expect(try shard.count("SELECT count(*) FROM job") == 1)
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 1") == 2)
        #expect(try shard.count("SELECT count(*) FROM idempotency") == 0)
    }
}
