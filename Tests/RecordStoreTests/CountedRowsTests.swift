import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("quotas: every row that a request leaves behind counts")
struct CountedRowsTests {
    private let key = IdempotencyKey(
        key: [UInt8](repeating: 0x40, count: 16), bodyHash: [UInt8](repeating: 1, count: 32), caller: "ann")

    private func wide(_ count: Int) -> Schema {
        let fields = (0..<count).map { Fixture.indexed("f\($0)", FieldType(.string)) }
        return Schema(types: [
            RecordType(name: "Wide", fields: fields, grants: [Grant(role: "_icloud", permissions: .create)])
        ])
    }

    @Test("records without values count for their rows in each index of their type")
    func manyIndexes() throws {
        let shard = try Fixture(installs: false)
        #expect(try shard.apply(Fixture.install(1, wide(1000))) == .schemaInstalled)
        let operations = (0..<10).map { RecordChange(.create, "r\($0)", type: "Wide") }
        _ = try shard.apply(
            .modifyRecords(
                ModifyRecords(
                    zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1, operations: operations)))
        #expect(try shard.count("SELECT count(*) FROM index_missing") == 10_000)
        let used = try #require(try shard.used())
        #expect(used.records == 10 && used.bytes == 10 * (64 + 2 + Int64(encodeBody(Fields()).count) + 1000 * 16))
    }

    @Test("a record has so many index rows at most, and the error names the field that has most of them")
    func limit() throws {
        let shard = try Fixture(installs: false)
        let list = FieldType(.int64, isList: true)
        let fields = ["a", "b", "c"].map { FieldDefinition(name: $0, type: list, indexes: .queryable) }
        _ = try shard.apply(Fixture.install(1, Schema(types: [RecordType(name: "Note", fields: fields)])))
        func save(_ kind: RecordChange.Kind, _ counts: [Int], at level: FeatureLevel = .countedRows) throws
            -> RecordOutcome
        {
            let values = zip(["a", "b", "c"], counts).map { name, count -> (String, FieldValue?) in
                (name, .list(.int64, (0..<count).map { .int64(Int64($0)) }))
            }
            return try shard.apply(
                .modifyRecords(
                    ModifyRecords(
                        zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1,
                        operations: [.make(kind, "r", values)])), at: level)
        }
        #expect(try save(.create, [9_999, 10_000, 1]).codes == [nil])
        let refused = try save(.forceReplace, [9_999, 10_000, 2])
        #expect(refused.codes == [.badRequest])
        let reason = try #require(refused.items[0].error?.reason)
        #expect(reason.contains("20001 index rows") && reason.contains("field b alone has 10000"), "\(reason)")
        // What was saved before there was a limit may shrink.
        #expect(try save(.forceReplace, [10_000, 10_000, 10_000], at: .evenSteps).codes == [nil])
        #expect(try save(.forceReplace, [10_000, 10_000, 9_000]).codes == [nil])
        #expect(try save(.forceReplace, [10_000, 10_000, 9_001]).codes == [.badRequest])
    }

    @Test("what a request is remembered by counts for a day, and keeps nobody from deleting")
    func remembered() throws {
        let shard = try Fixture()
        try shard.credit(Fixture.size("a", ""))
        #expect(try shard.save(Fixture.annsDefault, idempotency: key, .note(.create, "a")).codes == [nil])
        let kept = try #require(try shard.rememberedBytes()[Fixture.annsData])
        #expect(kept > 128)
        #expect(try shard.used() == QuotaAmounts(bytes: Fixture.size("a", "") + kept, records: 1))
        #expect(try shard.usage().others == QuotaAmounts(bytes: kept))
        // No more is accepted, but for what shrinks.
        #expect(try shard.save(Fixture.annsDefault, .note(.forceUpdate, "a", "x")).need?.need.bytes == kept + 1 + 0)
        var other = key
        other.key[0] = 0x41
        #expect(try shard.save(Fixture.annsDefault, idempotency: other, .make(.forceDelete, "a")).codes == [nil])
        let both = try #require(try shard.rememberedBytes()[Fixture.annsData])
        #expect(try shard.used() == QuotaAmounts(bytes: Fixture.tombstone("a") + both))
        try shard.setTime(200_000_000)
        try shard.maintain(time: 200_000_000)
        #expect(try shard.used() == QuotaAmounts(bytes: Fixture.tombstone("a")))
    }

    @Test("strangers' requests are remembered by little, so that they fill no quota by changing nothing")
    func strangers() throws {
        let shard = try Fixture()
        var number: UInt8 = 0
        func deleteNothing(keyed: Bool = true, at level: FeatureLevel = .shortMemories) throws -> RecordOutcome {
            number += 1
            let key = IdempotencyKey(key: [UInt8](repeating: number, count: 16), bodyHash: [1], caller: "stranger")
            let operations = (0..<200).map { place in
                RecordChange.make(.forceDelete, String(repeating: "x", count: 240) + String(place))
            }
            return try shard.apply(
                .modifyRecords(
                    ModifyRecords(
                        zone: Fixture.publicZone, schemaVersion: 1, caller: Caller(user: nil), time: 1,
                        idempotency: keyed ? key : nil, operations: operations)), at: level)
        }
        let database = Fixture.publicZone.database
        let nothing = [ErrorCode?](repeating: nil, count: 200)
        #expect(try deleteNothing(at: .versions).codes == nothing)
        let named = try #require(try shard.rememberedBytes()[database])
        #expect(try deleteNothing().codes == nothing)
        let hashed = try #require(try shard.rememberedBytes()[database]) - named
        #expect(named > 48_000 && hashed < 4_000)
        try shard.queue.write { db in
            try db.execute(sql: "UPDATE idempotency_use SET bytes = ?", arguments: [Limits.rememberedBytesMin])
        }
        #expect(try deleteNothing().refusal?.code == .quotaExceeded)
        #expect(try deleteNothing(at: .versions).codes == nothing)
        #expect(try deleteNothing(keyed: false).codes == nothing)
    }

    @Test("an index that is built or dropped is counted as its rows come and go", arguments: [1, 7, 500] as [UInt64])
    func builds(_ rows: UInt64) throws {
        let shard = try Fixture()
        for first in stride(from: 0, to: 600, by: 200) {
            let operations = (first..<(first + 200)).map { RecordChange.note(.create, "r\($0)", "text") }
            _ = try shard.apply(
                .modifyRecords(
                    ModifyRecords(
                        zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1,
                        operations: operations)))
        }
        let before = try #require(try shard.used())
        var note = Fixture.note
        for place in note.fields.indices where note.fields[place].name == "plain" {
            note.fields[place].indexes = .queryable
        }
        func maintain() throws {
            var steps = 0
            while try shard.apply(.maintain(Maintain(time: 1, rowsMax: rows))) == .maintained(hasMore: true) {
                steps += 1
                if steps % 40 == 0 { #expect(try shard.used() != nil) }
            }
        }
        _ = try shard.apply(Fixture.install(2, Schema(types: [note])))
        #expect(try shard.used() == before)
        // Its row in the index that is being built is there already when the building comes to it.
        _ = try shard.modify(Fixture.annsDefault, version: 2, .note(.forceUpdate, "r599", "four"))
        #expect(try shard.used() == before + QuotaAmounts(bytes: 20))
        try maintain()
        #expect(try shard.used() == before + QuotaAmounts(bytes: 600 * 20))
        _ = try shard.apply(Fixture.install(3, Schema(types: [Fixture.note])))
        #expect(try shard.used() == before + QuotaAmounts(bytes: 600 * 20))
        try maintain()
        #expect(try shard.used() == before)
    }

    @Test("a shard from before rows were counted comes to count them in parts, whatever is written meanwhile")
    func raise() throws {
        let shard = try Fixture()
        let home = ZoneKey(database: Fixture.annsData, name: "home")
        let old = FeatureLevel.evenSteps
        func zone(_ kind: ModifyZone.Kind, _ zone: ZoneKey, at level: FeatureLevel) throws {
            _ = try shard.apply(.modifyZone(ModifyZone(kind, zone: zone, caller: Fixture.ann, time: 1)), at: level)
        }
        func save(
            _ zone: ZoneKey, at level: FeatureLevel, key: IdempotencyKey? = nil, _ operations: RecordChange...
        ) throws {
            let command = ModifyRecords(
                zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1, idempotency: key, operations: operations)
            _ = try shard.apply(.modifyRecords(command), at: level)
        }
        for name in [Fixture.work, home] {
            try zone(.create, name, at: old)
            for number in 0..<9 {
                try save(name, at: old, .make(.create, "r\(number)", [("rank", .int64(Int64(number)))]))
            }
        }
        try save(Fixture.work, at: old, key: key, .make(.forceDelete, "r0"))
        try zone(.delete, home, at: old)
        let before = try shard.queue.read {
            try UsageCounts.database(Fixture.annsData, recount: true, level: old, in: $0)
        }
        #expect(before.used == before.recount && before.used.records == 8 && before.others == .zero)
        #expect(try shard.queue.write { try RecordTables.raise(from: old, to: .countedRows, in: $0) })
        #expect(try shard.used() == before.used)
        let places = ["r1", "n1", "r8", "n8", "r4"]
        var step = 0
        while try shard.apply(.maintain(Maintain(time: 1, rowsMax: 1))) == .maintained(hasMore: true) {
            #expect(try shard.used() != nil, "step \(step)")
            let level = FeatureLevel.countedRows
            switch step % 6 {
            case 0: try save(Fixture.work, at: level, .make(.forceReplace, places[step % 5], [("text", .string("x"))]))
            case 1: try save(Fixture.work, at: level, .make(.forceDelete, places[step % 4]))
            case 2: try save(Fixture.annsDefault, at: level, .note(.forceUpdate, "d\(step)", "text"))
            case 3:
                var other = key
                other.key[0] = UInt8(truncatingIfNeeded: step)
                try save(Fixture.work, at: level, key: other, .make(.forceDelete, "r2"))
            case 4: try zone(.create, home, at: level)
            default: try zone(.delete, home, at: level)
            }
            #expect(try shard.used() != nil, "step \(step)")
            step += 1
            guard step < 400 else { break }
        }
        #expect(step > 20 && step < 400)
        try shard.maintain(time: 1)
        #expect(try shard.count("SELECT count(*) FROM job") == 0)
        let usage = try shard.usage()
        #expect(usage.used == usage.recount)
        #expect(usage.used.bytes > before.used.bytes + 16 * 13 * 7)
    }

    @Test("of very many deleted zones the older half is forgotten, and a zone of such a name is another one")
    func deletedZones() throws {
        let shard = try Fixture(zone: Fixture.work)
        try shard.zone(.delete, Fixture.work)
        try shard.maintain()
        try shard.queue.write { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 10008)
                    INSERT INTO zone SELECT i, (SELECT database FROM zone), 'z' || i, 7, 0, 0, 2, 0, 0, i, 0, 0 FROM n
                    """)
        }
        let before = try shard.count("SELECT incarnation FROM database")
        #expect(try shard.count("SELECT count(*) FROM zone WHERE state = 2") == 10_000)
        let last = ZoneKey(database: Fixture.annsData, name: "last")
        try shard.zone(.create, last)
        try shard.zone(.delete, last)
        try shard.maintain()
        #expect(try shard.count("SELECT count(*) FROM zone WHERE state = 2") == 5_000)
        #expect(try shard.count("SELECT count(*) FROM zone WHERE name = 'last'") == 1)
        #expect(before == 1)
        #expect(try shard.count("SELECT incarnation FROM database") == 8)
        try shard.zone(.create, ZoneKey(database: Fixture.annsData, name: "z10"))
        #expect(try shard.count("SELECT incarnation FROM zone WHERE name = 'z10'") == 8)
    }

    @Test("an empty shard has nothing to count when its level rises")
    func raiseOfNothing() throws {
        let shard = try Fixture(installs: false)
        #expect(try shard.queue.write { try !RecordTables.raise(from: .first, to: .countedRows, in: $0) })
        _ = try shard.apply(Fixture.install(1))
        #expect(try shard.queue.write { try RecordTables.raise(from: .first, to: .evenSteps, in: $0) } == false)
    }

    @Test("what a request costs follows from its rows: plain saves cost one token")
    func tokens() {
        let note = Schema(types: [Fixture.note])
        let plain = WrittenRows([.note(.create, "a", "text")], schema: note)
        #expect(plain.count == 1 + 13 && plain.tokens == 1)
        #expect(WrittenRows([.make(.forceDelete, "a")], schema: note).tokens == 1)
        #expect(WrittenRows([], schema: note).tokens == 1)
        let update = RecordChange.make(.update, "a", [("rank", .int64(1)), ("plain", .string("x"))])
        #expect(WrittenRows([update], schema: note).count == 2)
        let empty = (0..<200).map { RecordChange(.create, "r\($0)", type: "Wide") }
        #expect(WrittenRows(empty, schema: wide(1000)).tokens == 201)
        #expect(WrittenRows(Array(empty.prefix(1)), schema: wide(999)).tokens == 1)
        #expect(WrittenRows(Array(empty.prefix(1)), schema: wide(1000)).tokens == 2)
        let tags = (0..<5000).map { FieldValue.string("\($0)") }
        let list = RecordChange.make(.forceUpdate, "a", [("tags", .list(.string, tags))])
        #expect(WrittenRows([list], schema: note).tokens == 6)
    }
}

extension Fixture {
    /// Applies a command at a feature level.
    func apply(_ command: RecordCommand, at level: FeatureLevel) throws -> RecordOutcome {
        try queue.write { db in
            let transaction = try tables.begin(in: db, level: level)
            let outcome = try transaction.apply(command)
            try transaction.finish()
            return outcome
        }
    }
}
