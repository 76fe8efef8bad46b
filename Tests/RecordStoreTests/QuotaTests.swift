import GRDB
import RecordModel
import Testing

@testable import RecordStore

@Suite("quotas: what fits, to the byte")
struct QuotaTests {
    private let ten = String(repeating: "x", count: 10)

    @Test("a save that fits to the byte is applied; one byte more changes nothing and says what is lacking")
    func toTheByte() throws {
        let shard = try Fixture()
        let size = Fixture.size("a", ten)
        try shard.credit(size)
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "a", ten + "y")).need?.need.bytes == 1)
        #expect(try shard.lookup("a", in: Fixture.annsDefault) == nil)
        #expect(try shard.used() == .zero)
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "a", ten)).codes == [nil])
        #expect(try shard.used() == QuotaAmounts(bytes: size, records: 1))
        let need = try shard.save(Fixture.annsDefault, epoch: 1, .note(.forceUpdate, "a", ten + "é")).need
        #expect(
            need
                == QuotaNeed(
                    need: QuotaAmounts(bytes: 2), received: QuotaAmounts(bytes: size, records: 1000), epoch: 1))
    }

    @Test("records are limited as bytes are, and tombstones are none")
    func records() throws {
        let shard = try Fixture()
        try shard.credit(100_000, 2)
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "a"), .note(.create, "b")).codes == [nil, nil])
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "c")).need?.need == QuotaAmounts(records: 1))
        #expect(try shard.save(Fixture.annsDefault, .note(.forceUpdate, "a", ten)).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, .make(.forceDelete, "b")).codes == [nil])
        #expect(try shard.used()?.records == 1)
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "b")).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "d")).need?.need == QuotaAmounts(records: 1))
    }

    @Test("for good, operations that do not fit fail and the others go on; the reason tells what is full")
    func final() throws {
        let shard = try Fixture()
        let size = Fixture.size("a", "")
        try shard.credit(2 * size)
        let outcome = try shard.save(
            Fixture.annsDefault, final: true, limit: QuotaAmounts(bytes: 5000, records: .max),
            .note(.create, "a"), .note(.create, "b", ten), .note(.create, "c"), .note(.create, "d"))
        #expect(outcome.codes == [nil, .quotaExceeded, nil, .quotaExceeded])
        let reason = try #require(outcome.items[3].error?.reason)
        #expect(reason.contains("\(2 * size) of \(2 * size) bytes, of 5000 for the whole database"), "\(reason)")
        #expect(reason.contains("adds \(size)"), "\(reason)")
        #expect(try shard.used() == QuotaAmounts(bytes: 2 * size, records: 2))
    }

    @Test("in an atomic batch all fail, with the code where it does not fit", arguments: [false, true])
    func atomic(_ isEntangled: Bool) throws {
        let shard = try Fixture(zone: Fixture.work)
        try shard.credit(Fixture.size("a", "") + 60)
        var second = RecordChange.note(.create, "b", String(repeating: "x", count: 100))
        if isEntangled {
            second.fields.append(
                .init(name: "list", value: .reference(Reference(recordName: "a", action: .deleteSelf))))
        }
        let need = try shard.save(Fixture.work, atomic: true, .note(.create, "a"), second).need
        #expect(need.map { $0.need.bytes > 0 && $0.need.records == 0 } == true)
        #expect(try shard.used() == .zero)
        let outcome = try shard.save(Fixture.work, final: true, atomic: true, .note(.create, "a"), second)
        #expect(outcome == .atomicFailure(outcome.items))
        #expect(outcome.codes == [.atomicError, .quotaExceeded])
        #expect(try shard.used() == .zero)
        try shard.credit(Fixture.size("a", "") + 60 + (need?.need.bytes ?? 0))
        #expect(try shard.save(Fixture.work, atomic: true, .note(.create, "a"), second).codes == [nil, nil])
        #expect(try shard.used()?.bytes == shard.usage().allotted.bytes)
    }

    @Test("other failures of an atomic batch are told without asking for more")
    func otherFailures() throws {
        let shard = try Fixture(zone: Fixture.work)
        let outcome = try shard.save(
            Fixture.work, atomic: true, .note(.create, "a"),
            .make(.delete, "b", tag: ChangeTag(incarnation: 1, sequence: 1)))
        #expect(outcome.codes == [.atomicError, .notFound])
    }

    @Test(
        "what shrinks earlier in a batch makes room for what grows later, not the other way round",
        arguments: [
            Fixture.annsDefault, Fixture.work,
        ])
    func order(_ zone: ZoneKey) throws {
        for isAtomic in [false, true] {
            let shard = try Fixture(zone: Fixture.work)
            let size = Fixture.size("a", ten)
            try shard.credit(2 * size)
            _ = try shard.save(zone, .note(.create, "a", ten), .note(.create, "b", ten))
            let shrink = RecordChange.note(.forceReplace, "a", "")
            let grow = RecordChange.note(.forceUpdate, "b", ten + ten)
            #expect(try shard.save(zone, atomic: isAtomic, grow, shrink).need?.need == QuotaAmounts(bytes: 10))
            #expect(try shard.save(zone, atomic: isAtomic, shrink, grow).codes == [nil, nil])
            #expect(try shard.used() == QuotaAmounts(bytes: 2 * size, records: 2))
            let swap = try shard.save(
                zone, final: true, atomic: isAtomic, .make(.forceDelete, "a"), .note(.create, "c", "é"))
            #expect(
                swap.codes == (isAtomic && zone.isAtomic ? [.atomicError, .quotaExceeded] : [nil, .quotaExceeded]))
            #expect(try shard.save(zone, final: true, atomic: isAtomic, .note(.create, "c", "")).codes.count == 1)
            #expect(try shard.used() != nil)
        }
    }

    @Test("over its allotment a database may shrink, delete and be read, but not grow")
    func over() throws {
        let shard = try Fixture()
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "a", ten + ten), .note(.create, "b", ten))
        #expect(try shard.save(Fixture.annsDefault, final: true, .note(.create, "c")).codes == [.quotaExceeded])
        #expect(try shard.save(Fixture.annsDefault, .note(.forceReplace, "a", ten)).codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, .note(.forceReplace, "a", ten)).codes == [nil])
        let used = try #require(try shard.used())
        let need = try shard.save(Fixture.annsDefault, .note(.forceReplace, "a", ten + "x")).need?.need
        #expect(need == QuotaAmounts(bytes: used.bytes + 1, records: 0))
        #expect(try shard.lookup("a", in: Fixture.annsDefault) != nil)
        #expect(try shard.save(Fixture.annsDefault, .make(.forceDelete, "b")).codes == [nil])
        let left = Fixture.size("a", ten) + Fixture.tombstone("b")
        #expect(try shard.used() == QuotaAmounts(bytes: left, records: 1))
    }

    @Test("a request that lacked allotment is not remembered; one that was refused for good is")
    func idempotency() throws {
        let shard = try Fixture()
        let key = IdempotencyKey(
            key: [UInt8](repeating: 0x40, count: 16), bodyHash: [UInt8](repeating: 1, count: 32), caller: "ann")
        let other = IdempotencyKey(
            key: [UInt8](repeating: 0x41, count: 16), bodyHash: [UInt8](repeating: 1, count: 32), caller: "ann")
        let save = RecordChange.note(.create, "a")
        let before = try shard.stateBytes()
        #expect(try shard.save(Fixture.annsDefault, idempotency: key, save).need != nil)
        #expect(try shard.stateBytes().count == before.count)
        let refused = try shard.save(Fixture.annsDefault, final: true, idempotency: other, save)
        #expect(refused.codes == [.quotaExceeded])
        try shard.credit(10_000)
        #expect(try shard.save(Fixture.annsDefault, final: true, idempotency: other, save) == refused)
        let outcome = try shard.save(Fixture.annsDefault, idempotency: key, save)
        #expect(outcome.codes == [nil])
        #expect(try shard.save(Fixture.annsDefault, idempotency: key, save) == outcome)
        #expect(try shard.used()?.records == 1)
    }

    @Test("a batch that lacks allotment leaves no trace, also where it began the zone", arguments: [1, 2])
    func noTrace(_ count: Int) throws {
        let shard = try Fixture()
        let operations = ["a", "b"].prefix(count).map { RecordChange.note(.create, $0, ten) }
        _ = try shard.modify(Fixture.publicZone, time: 1000)
        let before = try shard.stateBytes()
        try shard.queue.write { db in
            let transaction = try shard.tables.begin(in: db)
            let command = ModifyRecords(
                zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1000,
                quota: QuotaTerms(epoch: 1, isFinal: false), operations: operations)
            #expect(try transaction.apply(.modifyRecords(command)).need != nil)
            try transaction.finish()
        }
        #expect(try shard.stateBytes() == before)
    }

    @Test("a batch that lacked allotment is applied later in the same transaction as in another one")
    func sameTransaction() throws {
        let shards = try [Fixture(), Fixture()]
        let credit = QuotaCredit(
            database: Fixture.annsData, cumulative: QuotaAmounts(bytes: 10_000, records: 10), epoch: 1)
        let batch = ModifyRecords(
            zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1000,
            quota: QuotaTerms(epoch: 1, isFinal: false), operations: [.note(.create, "a", ten), .note(.create, "b")])
        let commands: [RecordCommand] = [.modifyRecords(batch), .quota(.credit(credit)), .modifyRecords(batch)]
        for command in commands { try shards[0].apply(command) }
        try shards[1].queue.write { db in
            let transaction = try shards[1].tables.begin(in: db)
            for command in commands { _ = try transaction.apply(command) }
            try transaction.finish()
        }
        #expect(try shards[0].used()?.records == 2)
        #expect(try shards[0].stateBytes() == shards[1].stateBytes())
    }

    @Test("what fits does not depend on how commands are grouped, also behind a schema with a new index")
    func grouping() throws {
        var wide = Fixture.schema
        let type = try #require(wide.types.firstIndex { $0.name == "Note" })
        let field = try #require(wide.types[type].fields.firstIndex { $0.name == "plain" })
        wide.types[type].fields[field].indexes = .searchable
        let text = [("plain", FieldValue.string("one two three four five six"))] as [(String, FieldValue?)]
        let batch = RecordCommand.modifyRecords(
            ModifyRecords(
                zone: Fixture.work, schemaVersion: 2, caller: Fixture.ann, time: 1000, isAtomic: true,
                quota: QuotaTerms(epoch: 1, isFinal: true, limit: .unlimited),
                operations: [.make(.forceDelete, "r1"), .make(.create, "r2", text)]))
        func outcome(_ bytes: Int64, isGrouped: Bool) throws -> RecordOutcome {
            let shard = try Fixture(zone: Fixture.work)
            try shard.credit(bytes)
            _ = try shard.save(Fixture.work, .make(.create, "r1", text))
            let install = Fixture.install(2, wide)
            guard isGrouped else {
                try shard.apply(install)
                return try shard.apply(batch)
            }
            return try shard.queue.write { db in
                let transaction = try shard.tables.begin(in: db, level: FeatureLevel.supported.upperBound)
                _ = try transaction.apply(install)
                let outcome = try transaction.apply(batch)
                try transaction.finish()
                return outcome
            }
        }
        let size = Fixture.size("r1", "one two three four five six")
        var kinds: Set<Bool> = []
        for bytes in stride(from: size, to: size + 600, by: 8) {
            let alone = try outcome(bytes, isGrouped: false)
            #expect(try outcome(bytes, isGrouped: true) == alone, "with \(bytes) bytes")
            if case .atomicFailure = alone { kinds.insert(false) } else { kinds.insert(true) }
        }
        #expect(kinds.count == 2, "all were alike")
    }
}
