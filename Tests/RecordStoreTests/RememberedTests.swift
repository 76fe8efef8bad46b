import Authorization
import Foundation
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("idempotency: what is remembered, and what repeats are told")
struct RememberedTests {
    let shard: Fixture
    init() throws { shard = try Fixture() }

    private func key(_ byte: UInt8, hash: UInt8 = 1, caller: String = "c") -> IdempotencyKey {
        var key = [UInt8](repeating: byte, count: 16)
        key[6] = 0x40
        return IdempotencyKey(key: key, bodyHash: [UInt8](repeating: hash, count: 32), caller: caller)
    }

    private let large = FieldValue.string(String(repeating: "x", count: 900_000))

    @Test("a row holds no values: a small request leaves a small row, however large the records are")
    func rowBytes() throws {
        let zone = Fixture.annsDefault
        for name in ["a", "b", "c", "d"] {
            #expect(try shard.one(zone, .make(.create, name, [("plain", large)]))?.saved != nil)
        }
        let stale = ChangeTag(incarnation: 1, sequence: 99)
        let conflict = try shard.modify(
            zone, idempotency: key(1), .make(.update, "a", tag: stale), .make(.update, "b", tag: stale),
            .make(.create, "c"), .make(.forceUpdate, "d", [("rank", .int64(1))]))
        #expect(conflict.codes == [.conflict, .conflict, .exists, nil])
        #expect(conflict.items[0].serverRecord?.fields["plain"] == large)
        #expect(conflict.items[3].saved?.mergedFields?["plain"] == large)
        #expect(try shard.count("SELECT length(outcome) FROM idempotency") < 700)
        let again = try shard.modify(
            zone, idempotency: key(1), .make(.update, "a", tag: stale), .make(.update, "b", tag: stale),
            .make(.create, "c"), .make(.forceUpdate, "d", [("rank", .int64(1))]))
        #expect(again == conflict)
    }

    @Test("a repeat is told what records hold by then, and a save that was overtaken only what it was")
    func valuesOfTheDay() throws {
        let zone = Fixture.annsDefault
        _ = try shard.one(zone, .make(.create, "a", [("text", .string("first"))]))
        let stale = ChangeTag(incarnation: 9, sequence: 9)
        let update = RecordChange.make(.forceUpdate, "a", [("rank", .int64(1))])
        let saved = try shard.modify(zone, idempotency: key(1), update)
        #expect(saved.items[0].saved?.mergedFields?["text"] == .string("first"))
        let conflict = try shard.modify(zone, idempotency: key(2), .make(.update, "a", tag: stale))
        _ = try shard.one(zone, .make(.forceReplace, "a", [("text", .string("second"))]))
        let repeated = try shard.modify(zone, idempotency: key(1), update).items[0].saved
        #expect(repeated?.changeTag == saved.items[0].saved?.changeTag)
        #expect(repeated?.mergedFields == nil)
        let told = try shard.modify(zone, idempotency: key(2), .make(.update, "a", tag: stale)).items[0]
        #expect(told.error == conflict.items[0].error)
        #expect(told.serverRecord?.fields["text"] == .string("second"))
        _ = try shard.one(zone, .make(.forceDelete, "a"))
        let gone = try shard.modify(zone, idempotency: key(2), .make(.update, "a", tag: stale)).items[0]
        #expect(gone.error == conflict.items[0].error && gone.serverRecord == nil)
    }

    @Test("what a repeat is told is what its caller may read: callers without a name share theirs")
    func rights() throws {
        _ = try shard.one(Fixture.publicZone, RecordChange(.create, "s", type: "Secret"))
        let create = RecordChange(.create, "s", type: "Secret")
        let mine = try shard.modify(Fixture.publicZone, idempotency: key(1, caller: "shared"), create)
        #expect(mine.codes == [.exists] && mine.items[0].serverRecord != nil)
        let others = try shard.modify(
            Fixture.publicZone, by: Fixture.bob, idempotency: key(1, caller: "shared"), create)
        #expect(others.codes == [.exists] && others.items[0].serverRecord == nil)
    }

    @Test("operations are known by their records: a repeat of which another part is sent gets the first answer")
    func parts() throws {
        let zone = Fixture.annsDefault
        let first = try shard.modify(
            zone, idempotency: key(1), .make(.create, "a"), .make(.create, "b"), .make(.create, "c"))
        let part = try shard.modify(zone, idempotency: key(1), .make(.create, "c"), .make(.create, "a"))
        #expect(part == .records([first.items[2], first.items[0]]))
        let more = try shard.modify(zone, idempotency: key(1), .make(.create, "a"), .make(.create, "new"))
        #expect(more.codes == [nil, .badRequest])
        #expect(try shard.lookup("new", in: zone) == nil)
        // The same without sending it, for a request of which nothing would be sent now.
        let unsent = ModifyRecords(
            zone: zone, schemaVersion: 0, caller: Fixture.ann, time: 1000, idempotency: key(1),
            operations: [.make(.create, "b")])
        #expect(
            try shard.queue.read { try EarlierOutcomes(shard.tables, in: $0).find(unsent) }
                == .records([first.items[1]]))
        var other = unsent
        other.idempotency = key(2)
        #expect(try shard.queue.read { try EarlierOutcomes(shard.tables, in: $0).find(other) } == nil)
    }

    @Test("a request that was refused as a whole stays refused, also once it could be done")
    func refusals() throws {
        let refused = try shard.modify(Fixture.work, idempotency: key(1), .make(.create, "a"))
        #expect(refused.refusal?.code == .zoneNotFound)
        func delete() throws -> RecordOutcome {
            try shard.apply(
                .modifyZone(
                    ModifyZone(
                        .delete, zone: Fixture.work, caller: Fixture.ann, time: 1000, schemaVersion: 1,
                        idempotency: key(2))))
        }
        #expect(try delete().refusal?.code == .zoneNotFound)
        try shard.zone(.create, Fixture.work)
        #expect(try shard.modify(Fixture.work, idempotency: key(1), .make(.create, "a")) == refused)
        #expect(try shard.lookup("a", in: Fixture.work) == nil)
        #expect(try delete().refusal?.code == .zoneNotFound)
        #expect(try shard.modify(Fixture.work, idempotency: key(3), .make(.create, "a")).codes == [nil])
        #expect(try shard.count("SELECT max(length(outcome)) FROM idempotency") < 200)
    }

    @Test("what is remembered of one caller is limited; others, and requests without a key, go on")
    func limit() throws {
        let zone = Fixture.annsDefault
        _ = try shard.modify(zone, idempotency: key(1), .make(.create, "a"))
        let used = try shard.count("SELECT bytes FROM idempotency_use")
        #expect(
            try used
                == shard.count("SELECT sum(length(outcome) + length(CAST(caller AS BLOB)) + 128) FROM idempotency"))
        try shard.queue.write { try $0.execute(sql: "UPDATE idempotency_use SET bytes = \(Limits.rememberedBytesMax)") }
        let refused = try shard.modify(zone, idempotency: key(2), .make(.create, "b"))
        #expect(refused.refusal?.code == .quotaExceeded)
        #expect(refused.refusal?.reason.contains("without an Idempotency-Key") == true)
        #expect(try shard.lookup("b", in: zone) == nil)
        // What is remembered is told still.
        #expect(try shard.modify(zone, idempotency: key(1), .make(.create, "a")).codes == [nil])
        #expect(try shard.modify(zone, idempotency: key(2, caller: "other"), .make(.create, "b")).codes == [nil])
        #expect(try shard.modify(zone, .make(.create, "d")).codes == [nil])
    }

    @Test("what changes of zones are remembered by is limited by the quota as for records, from feature level 14 on")
    func limitOfZones() throws {
        func make(_ number: UInt8, _ level: FeatureLevel = .zoneMemories) throws -> RecordOutcome {
            var command = ModifyZone(
                .create, zone: Fixture.work, caller: Fixture.ann, time: 1000, schemaVersion: 1,
                idempotency: key(number))
            command.quota = QuotaTerms(
                epoch: 0, isFinal: false,
                limit: QuotaAmounts(bytes: 8 * Limits.rememberedBytesMin, records: 1, assets: 0))
            return try shard.apply(.modifyZone(command), at: level)
        }
        #expect(try make(1).refusal == nil)
        func use(_ bytes: Int64) throws {
            try shard.queue.write { try $0.execute(sql: "UPDATE idempotency_use SET bytes = \(bytes)") }
        }
        try use(2 * Limits.rememberedBytesMin - 1)
        #expect(try make(2).refusal == nil)
        try use(2 * Limits.rememberedBytesMin)
        #expect(try make(3).refusal?.code == .quotaExceeded)
        // What is remembered is told still.
        #expect(try make(1).refusal == nil)
        #expect(try make(3, .presentHours).refusal == nil)
    }

    @Test("rows from before outcomes were kept without values are told where they can be, and are never done again")
    func earlierFormat() throws {
        let zone = Fixture.annsDefault
        let first = try shard.modify(zone, idempotency: key(1), .make(.create, "a"), .make(.create, "b"))
        try shard.queue.write { db in
            try db.execute(sql: "UPDATE idempotency SET outcome = ?", arguments: [Data(first.encoded())])
            try db.execute(sql: "DROP TABLE idempotency_use")
            try db.execute(sql: "ALTER TABLE record_state DROP COLUMN forgotten")
            try RecordTables.upgrade(in: db)
            try RecordTables.upgrade(in: db)
        }
        #expect(
            try shard.count("SELECT bytes FROM idempotency_use") == 128 + 1 + first.encoded().count)
        #expect(try shard.modify(zone, idempotency: key(1), .make(.create, "a"), .make(.create, "b")) == first)
        let changed = try shard.modify(zone, idempotency: key(1, hash: 2), .make(.create, "a"), .make(.create, "b"))
        #expect(changed.refusal?.code == .badRequest)
        #expect(changed.refusal?.reason.contains("read the records") == true)
        #expect(try shard.modify(zone, idempotency: key(2), .make(.create, "c")).codes == [nil])
        try shard.setTime(90_000_000)
        try shard.maintain(time: 90_000_000)
        #expect(try shard.count("SELECT count(*) FROM idempotency_use") == 0)
    }
}

@Suite("requests that no stored record can save")
struct RequestRefusalTests {
    private func refusal(
        _ operation: RecordChange, by caller: Caller = Fixture.bob, in zone: ZoneKey = Fixture.publicZone,
        grants: [Grant] = Fixture.note.grants
    ) -> ServiceError? {
        var type = Fixture.note
        type.grants = grants
        return operation.refusal(as: type, by: caller, in: zone)
    }

    @Test("who may neither create nor write a type is told so for the request alone")
    func grants() {
        let saves: [RecordChange.Kind] = [.create, .update, .forceUpdate, .replace, .forceReplace]
        for kind in saves {
            #expect(refusal(.make(kind, "a"), by: Caller(user: nil))?.code == .accessDenied, "\(kind)")
            #expect(refusal(.make(kind, "a")) == nil, "\(kind)")
            let readers = [Grant(role: "_world", permissions: .read)]
            #expect(refusal(.make(kind, "a"), grants: readers)?.code == .accessDenied)
            #expect(refusal(.make(kind, "a"), by: Fixture.ann, in: Fixture.annsDefault, grants: []) == nil)
        }
        let creators = [Grant(role: "_icloud", permissions: .create)]
        #expect(refusal(.make(.update, "a"), grants: creators)?.code == .accessDenied)
        #expect(refusal(.make(.forceUpdate, "a"), grants: creators) == nil)
        let writers = [Grant(role: "_icloud", permissions: .write)]
        #expect(refusal(.make(.create, "a"), grants: writers)?.code == .accessDenied)
        #expect(refusal(.make(.update, "a"), grants: writers) == nil)
        for kind in [RecordChange.Kind.delete, .forceDelete] {
            #expect(refusal(.make(kind, "a"), by: Caller(user: nil)) == nil)
        }
    }

    @Test("another user's record is not created, whether or not it is there")
    func users() throws {
        let shard = try Fixture(installs: false)
        _ = try shard.apply(Fixture.install(1, Fixture.schemaWithUsers))
        let own = RecordChange(.create, "_ann", type: "Users")
        #expect(try shard.one(Fixture.publicZone, own)?.saved != nil)
        for caller in [Fixture.bob, Caller(user: nil)] {
            for name in ["_ann", "_carl"] {
                let item = try shard.one(Fixture.publicZone, by: caller, RecordChange(.create, name, type: "Users"))
                #expect(item?.error?.code == .accessDenied && item?.serverRecord == nil)
            }
        }
        #expect(try shard.one(Fixture.publicZone, own)?.error?.code == .exists)
    }

    @Test("a record's own fields have a megabyte, and the lists of a request 250,000 members")
    func sizes() throws {
        let bytes = FieldValue.string(String(repeating: "x", count: Limits.recordSizeBytesMax - 5))
        #expect(refusal(.make(.create, "a", [("plain", bytes)])) == nil)
        #expect(refusal(.make(.create, "a", [("plain", bytes), ("text", nil)])) == nil)
        let error = refusal(.make(.forceUpdate, "a", [("plain", bytes), ("text", .string(""))]))
        #expect(error?.code == .badRequest && error?.reason.contains("1048580 bytes") == true)
        let list = FieldValue.list(.string, Array(repeating: .string(""), count: 10_000))
        func command(_ count: Int) -> ModifyRecords {
            ModifyRecords(
                zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1,
                operations: (0..<count).map { .make(.create, "r\($0)", [("tags", list)]) })
        }
        #expect(command(25).refusal == nil)
        #expect(command(26).refusal?.reason.contains("260000 members") == true)
        let shard = try Fixture()
        #expect(try shard.apply(.modifyRecords(command(26))).refusal?.code == .badRequest)
        #expect(try shard.apply(.modifyRecords(command(1))).codes == [nil])
    }
}
