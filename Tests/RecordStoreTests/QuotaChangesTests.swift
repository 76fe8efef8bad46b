import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("quotas: what other changes do to the counters")
struct QuotaChangesTests {
    private let ten = String(repeating: "x", count: 10)

    @Test("a deleted zone has no records any more, and its rows take room until maintenance has removed them")
    func zoneDeletion() throws {
        let shard = try Fixture(zone: Fixture.work)
        try shard.credit(10 * Fixture.size("r1", ten))
        for name in 1...9 { _ = try shard.save(Fixture.work, .note(.create, "r\(name)", ten)) }
        _ = try shard.save(Fixture.annsDefault, .note(.create, "s1", ten))
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "s2")).need != nil)
        try shard.zone(.delete, Fixture.work)
        let one = QuotaAmounts(bytes: Fixture.size("s1", ten), records: 1)
        #expect(try shard.used() == QuotaAmounts(bytes: 10 * one.bytes, records: 1))
        #expect(try shard.count("SELECT count(*) FROM record") == 10)
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "s2")).need != nil)
        // A part of them: what it removed is free at once.
        _ = try shard.apply(.maintain(Maintain(time: 0, rowsMax: 3)))
        #expect(try shard.used() == QuotaAmounts(bytes: 7 * one.bytes, records: 1))
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "s2")).codes == [nil])
        try shard.zone(.create, Fixture.work)
        try shard.maintain()
        #expect(try shard.used() == QuotaAmounts(bytes: one.bytes + Fixture.size("s2", ""), records: 2))
        #expect(try shard.usage().zones.map(\.used.records) == [2, 0])
    }

    @Test(
        "what goes along with a deleted record is free too: at once in a custom zone, by maintenance in a default one")
    func cascades() throws {
        for zone in [Fixture.work, Fixture.annsDefault] {
            let shard = try Fixture(zone: Fixture.work)
            try shard.credit(10_000)
            _ = try shard.save(zone, .note(.create, "a", ten))
            for name in ["b", "c"] {
                let target = Reference(recordName: name == "b" ? "a" : "b", action: .deleteSelf)
                _ = try shard.save(zone, .make(.create, name, [("list", .reference(target))]))
            }
            #expect(try shard.used()?.records == 3)
            #expect(try shard.save(zone, .make(.forceDelete, "a")).codes == [nil])
            #expect(try shard.used()?.records == (zone.isAtomic ? 0 : 2))
            try shard.maintain(rows: 1)
            let tombstones = ["a", "b", "c"].reduce(0) { $0 + Fixture.tombstone($1) }
            #expect(try shard.used() == QuotaAmounts(bytes: tombstones))
        }
    }

    @Test("a scrub frees what lost fields and types took")
    func scrub() throws {
        let shard = try Fixture()
        let fields: [(String, FieldValue?)] = [("plain", .string(ten)), ("only", .string(ten))]
        _ = try shard.modify(Fixture.annsDefault, .make(.create, "a", fields))
        _ = try shard.modify(Fixture.annsDefault, RecordChange(.create, "b", type: "Bare"))
        let before = try #require(try shard.used())
        var note = Fixture.note
        note.fields.removeAll { $0.name == "only" }
        #expect(try shard.apply(Fixture.install(2, Schema(types: [note, Fixture.secret]))) == .schemaInstalled)
        #expect(try shard.used() == before)
        try shard.maintain(rows: 1)
        // The index of the field went with it.
        let left = Fixture.size("a", ten) - 16 + Fixture.tombstone("b")
        #expect(try shard.used() == QuotaAmounts(bytes: left, records: 1))
    }

    @Test("a scrub that an installation finishes within the command is counted too")
    func scrubAtOnce() throws {
        let shard = try Fixture()
        _ = try shard.modify(
            Fixture.annsDefault, .make(.create, "a", [("plain", .string(ten)), ("only", .string(ten))]))
        var note = Fixture.note
        note.fields.removeAll { $0.name == "only" }
        _ = try shard.apply(Fixture.install(2, Schema(types: [note])))
        _ = try shard.apply(Fixture.install(3, Fixture.schema))
        try shard.maintain()
        #expect(try shard.used() == QuotaAmounts(bytes: Fixture.size("a", ten), records: 1))
    }

    @Test("a reset has everything removed, and leaves what was allotted to be given back")
    func reset() throws {
        let shard = try Fixture()
        try shard.credit(5000)
        _ = try shard.save(Fixture.annsDefault, .note(.create, "a", ten))
        _ = try shard.modify(Fixture.publicZone, .note(.create, "p", ten))
        #expect(try shard.apply(Fixture.install(2, generation: 1)) == .schemaInstalled)
        #expect(try shard.used() == QuotaAmounts(bytes: Fixture.size("a", ten)))
        #expect(try shard.used(Fixture.publicData) == QuotaAmounts(bytes: Fixture.size("p", ten)))
        #expect(try shard.usage().allotted == QuotaAmounts(bytes: 5000, records: 1000))
        try shard.maintain()
        #expect(try shard.used() == .zero)
        #expect(try shard.used(Fixture.publicData) == .zero)
        let released = try shard.apply(.quota(.release(QuotaRelease(database: Fixture.annsData))))
        let all = QuotaAmounts(bytes: 5000, records: 1000)
        #expect(released.quota == .released(received: all, returned: all))
        #expect(try shard.usage().allotted == .zero)
    }

    @Test("a restore changes no counter")
    func restore() throws {
        let shard = try Fixture()
        try shard.credit(5000)
        _ = try shard.save(Fixture.annsDefault, .note(.create, "a", ten))
        let before = try shard.usage()
        try shard.queue.write { try RecordTables.startNewIncarnation(100, in: $0) }
        #expect(try shard.usage() == before)
    }

    @Test("purging tombstones frees what they take")
    func purge() throws {
        let shard = try Fixture()
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "a"), .note(.create, "b", ten))
        _ = try shard.modify(Fixture.annsDefault, .make(.forceDelete, "a"))
        let left = Fixture.size("b", ten) + Fixture.tombstone("a")
        #expect(try shard.used() == QuotaAmounts(bytes: left, records: 1))
        try shard.maintain(retention: Retention(tombstonesMax: 0))
        #expect(try shard.count("SELECT count(*) FROM record") == 1)
        #expect(try shard.used() == QuotaAmounts(bytes: Fixture.size("b", ten), records: 1))
    }

    @Test("a record written over one of a lost type counts once")
    func overLostType() throws {
        let shard = try Fixture()
        _ = try shard.modify(Fixture.annsDefault, RecordChange(.create, "a", type: "Bare"))
        _ = try shard.apply(Fixture.install(2, Schema(types: [Fixture.note])))
        _ = try shard.modify(Fixture.annsDefault, version: 2, .note(.create, "a", ten))
        #expect(try shard.used() == QuotaAmounts(bytes: Fixture.size("a", ten), records: 1))
    }

    @Test("sealed values count in their sealed form, names in UTF-8 whatever is in them")
    func sealed() throws {
        let shard = try Fixture()
        let name = "n\0é"
        let sealed = FieldValue.sealed([UInt8](repeating: 7, count: 40))
        _ = try shard.modify(Fixture.annsDefault, .make(.create, name, [("sealed", sealed)]))
        var fields = Fields()
        fields["sealed"] = sealed
        let index = IndexBytes(name: name, creator: "_ann", modifier: "_ann").of(fields, type: Fixture.note)
        #expect(try shard.used() == QuotaAmounts(bytes: 64 + Int64(4 + encodeBody(fields).count) + index, records: 1))
    }

    @Test("a request needs no more statements for being counted and limited")
    func statements() throws {
        let shard = try Fixture(zone: Fixture.work)
        try shard.credit(1_000_000)
        func count(_ zone: ZoneKey, _ quota: QuotaTerms?, _ operations: [RecordChange]) throws -> Int {
            var statements = 0
            try shard.queue.writeWithoutTransaction { db in
                db.trace { _ in statements += 1 }
                try db.inTransaction {
                    _ = try shard.tables.apply(
                        .modifyRecords(
                            ModifyRecords(
                                zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 2000, quota: quota,
                                operations: operations)), in: db)
                    return .commit
                }
                db.trace(options: [])
            }
            return statements
        }
        let terms = QuotaTerms(epoch: 1, isFinal: false)
        for zone in [Fixture.annsDefault, Fixture.work] {
            _ = try count(zone, nil, [.note(.create, "first")])
            let without = try count(zone, nil, [.note(.create, "a"), .note(.create, "b")])
            #expect(try count(zone, terms, [.note(.create, "c"), .note(.create, "d")]) == without)
            let one = try count(zone, nil, [.note(.create, "e")])
            #expect(try count(zone, terms, [.note(.create, "f")]) == one)
        }
    }
}
