import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("assets: what records name, and what that counts for")
struct AssetTests {
    private static let type = RecordType(
        name: "Note",
        fields: [
            FieldDefinition(name: "photo", type: FieldType(.asset)),
            FieldDefinition(name: "more", type: FieldType(.asset, isList: true)),
            FieldDefinition(name: "holder", type: FieldType(.reference)),
        ])

    private static func file(_ byte: UInt8, _ size: UInt64) -> AssetReference {
        AssetReference(sha256: [UInt8](repeating: byte, count: 32), size: size)
    }

    private let first = file(1, 100)
    private let second = file(2, 30)

    private func fixture() throws -> Fixture {
        let shard = try Fixture(installs: false)
        _ = try shard.apply(Fixture.install(1, Schema(types: [Self.type])))
        return shard
    }

    /// How often each file is named, where the counts equal a recount; else nil.
    private func counts(_ shard: Fixture) throws -> [AssetReference: Int64]? {
        let (counts, again) = try shard.assetCounts()
        return counts == again ? counts : nil
    }

    private func save(
        _ shard: Fixture, _ name: String, in zone: ZoneKey = Fixture.annsDefault, _ fields: (String, FieldValue?)...
    ) throws {
        #expect(try shard.modify(zone, .make(.forceUpdate, name, fields)).codes == [nil])
    }

    @Test("a file is counted as often as records name it, in fields and lists, twice in one record too")
    func counted() throws {
        let shard = try fixture()
        try save(shard, "a", ("photo", .asset(first)), ("more", .list(.asset, [.asset(first), .asset(second)])))
        try save(shard, "b", ("photo", .asset(first)))
        #expect(try counts(shard) == [first: 3, second: 1])
        #expect(try shard.used()?.assets == 330)
        #expect(try shard.queue.read { try AssetTables.named(after: nil, limit: 9, in: $0) } == [first, second])
        #expect(try shard.queue.read { try AssetTables.named(after: first, limit: 9, in: $0) } == [second])
    }

    @Test("a record names so many files at most as an answer has room for, from feature level 14 on")
    func files() throws {
        let shard = try fixture()
        func save(
            _ count: Int, _ photo: FieldValue? = nil, at level: FeatureLevel = .readableRecords
        ) throws -> ErrorCode? {
            let files = (0..<count).map { _ in FieldValue.asset(first) }
            let change = RecordChange.make(.forceUpdate, "a", [("photo", photo), ("more", .list(.asset, files))])
            let command = ModifyRecords(
                zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1000, operations: [change])
            return try shard.apply(.modifyRecords(command), at: level).codes[0]
        }
        #expect(try save(Limits.filesPerRecordMax) == nil)
        #expect(try save(Limits.filesPerRecordMax, .asset(second)) == .badRequest)
        #expect(try save(Limits.filesPerRecordMax, .asset(second), at: .presentHours) == nil)
        // One that has too many goes on.
        #expect(try save(Limits.filesPerRecordMax, .asset(first)) == nil)
    }

    @Test("what a record goes on naming changes no row, and what it names often is told of once")
    func changes() throws {
        let shard = try fixture()
        let files = (0..<1_000).map { number in
            AssetReference(
                sha256: [UInt8](repeating: 9, count: 30) + [UInt8(number >> 8), UInt8(number & 255)], size: 1)
        }
        /// The rows that a save of a list changes, and the files that it tells of.
        func saved(_ list: [AssetReference]) throws -> (rows: Int, named: [AssetReference]) {
            let change = RecordChange.make(.forceUpdate, "a", [("more", .list(.asset, list.map { .asset($0) }))])
            let command = ModifyRecords(
                zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1_000, operations: [change])
            return try shard.queue.write { db in
                let before = db.totalChangesCount
                let transaction = try shard.tables.begin(in: db, level: .supported.upperBound)
                #expect(try transaction.apply(.modifyRecords(command)).codes == [nil])
                try transaction.finish()
                return (db.totalChangesCount - before, transaction.namedAssets)
            }
        }
        let list = [AssetReference](repeating: first, count: 8_000) + files
        #expect(try saved(list).named == [first] + files)
        let (rows, named) = try saved([second] + list.reversed().dropLast(10) + [second, second])
        #expect(named == [second])
        #expect(rows < 100)
        let counts = try #require(try counts(shard))
        #expect(counts[first] == 7_990 && counts[second] == 3 && counts[files[999]] == 1 && counts.count == 1_002)
    }

    @Test(
        "files count among the rows that a request may change, and before their level they do not", arguments: [12, 13])
    func bounded(level: UInt64) throws {
        let shard = try fixture()
        let list = (0..<1_000).map { number in
            AssetReference(
                sha256: [UInt8](repeating: 9, count: 30) + [UInt8(number >> 8), UInt8(number & 255)], size: 1)
        }
        let more = FieldValue.list(.asset, list.map { .asset($0) })
        /// Saves or deletes records that name all of the files.
        func codes(_ kind: RecordChange.Kind, _ names: Range<Int>, at level: UInt64) throws -> [ErrorCode?] {
            let changes = names.map { number in
                RecordChange.make(kind, "r\(number)", kind == .forceDelete ? [] : [("more", more)])
            }
            let command = ModifyRecords(
                zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1_000, operations: changes)
            return try shard.apply(.modifyRecords(command), at: FeatureLevel(level)).codes
        }
        let fits = [ErrorCode?](repeating: nil, count: 99)
        let rest = [ErrorCode?](repeating: level < 13 ? nil : .badRequest, count: 11)
        #expect(try codes(.create, 0..<110, at: level) == fits + rest)
        #expect(try codes(.forceUpdate, 0..<110, at: 12).allSatisfy { $0 == nil })
        #expect(try codes(.forceDelete, 0..<110, at: level) == fits + rest)
        if level >= 13 { #expect(try codes(.forceDelete, 99..<110, at: level).allSatisfy { $0 == nil }) }
        #expect(try counts(shard) == [:])
    }

    @Test("a count that no record made is told where files are compared")
    func damaged() throws {
        let shard = try fixture()
        try save(shard, "a", ("photo", .asset(first)))
        for sql in ["UPDATE asset SET size = -1", "UPDATE asset SET size = 5, sha256 = x'01'"] {
            try shard.queue.write { try $0.execute(sql: sql) }
            #expect(throws: WireError.self) {
                try shard.queue.read { try AssetTables.named(after: nil, limit: 9, in: $0) }
            }
        }
    }

    @Test("another value, none, and a deletion give up what they replace")
    func released() throws {
        let shard = try fixture()
        try save(shard, "a", ("photo", .asset(first)), ("more", .list(.asset, [.asset(second)])))
        try save(shard, "a", ("photo", .asset(second)))
        #expect(try counts(shard) == [second: 2])
        try save(shard, "a", ("more", nil))
        #expect(try counts(shard) == [second: 1])
        #expect(try shard.modify(Fixture.annsDefault, .make(.forceReplace, "a")).codes == [nil])
        #expect(try counts(shard) == [:])
        try save(shard, "a", ("photo", .asset(first)))
        #expect(try shard.modify(Fixture.annsDefault, .make(.forceDelete, "a")).codes == [nil])
        #expect(try counts(shard) == [:])
        #expect(try shard.used()?.assets == 0)
    }

    @Test("what goes along with a deleted record, and with a zone, gives up its files")
    func cascadeAndZone() throws {
        let shard = try fixture()
        try shard.zone(.create, Fixture.work)
        try save(shard, "a", in: Fixture.work, ("photo", .asset(first)))
        let holder = FieldValue.reference(Reference(recordName: "a", action: .deleteSelf))
        try save(shard, "b", in: Fixture.work, ("photo", .asset(first)), ("holder", holder))
        try save(shard, "c", in: Fixture.work, ("photo", .asset(second)))
        #expect(try counts(shard) == [first: 2, second: 1])
        #expect(try shard.modify(Fixture.work, .make(.forceDelete, "a")).codes == [nil])
        #expect(try counts(shard) == [second: 1])
        try shard.zone(.delete, Fixture.work)
        #expect(try shard.used()?.assets == 0)
        // Records of the zone are still there, and so are their files.
        #expect(try counts(shard) == [second: 1])
        try shard.maintain()
        #expect(try counts(shard) == [:])
    }

    @Test("a field that the schema loses gives its files up once it is cleaned away, a reset when zones are reclaimed")
    func schemaChanges() throws {
        let shard = try fixture()
        try save(shard, "a", ("photo", .asset(first)), ("more", .list(.asset, [.asset(second)])))
        var type = Self.type
        type.fields.removeAll { $0.name == "photo" }
        _ = try shard.apply(Fixture.install(2, Schema(types: [type])))
        #expect(try counts(shard) == [first: 1, second: 1])
        try shard.maintain()
        #expect(try counts(shard) == [second: 1])
        #expect(try shard.used()?.assets == 30)
        _ = try shard.apply(Fixture.install(3, Schema(types: [type]), generation: 1))
        #expect(try shard.used()?.assets == 0)
        try shard.maintain()
        #expect(try counts(shard) == [:])
        #expect(
            try shard.count("SELECT (SELECT count(*) FROM asset_zone) + (SELECT count(*) FROM asset_database)") == 0)
    }

    @Test("a file that nothing names is remembered for the grace, and again for all of it after it was named once more")
    func grace() throws {
        let shard = try fixture()
        let grace = AssetReference.graceMilliseconds
        func isKept() throws -> Bool { try shard.queue.read { try AssetTables.keeps(first.sha256, in: $0) } }
        try save(shard, "a", ("photo", .asset(first)))
        try save(shard, "a", ("photo", nil))
        try shard.setTime(1_000 + grace - 1)
        try shard.maintain(time: 1_000 + grace - 1)
        #expect(try isKept())
        try save(shard, "a", ("photo", .asset(first)))
        try shard.setTime(1_000 + grace)
        try shard.maintain(time: 1_000 + grace)
        #expect(try isKept())
        try save(shard, "a", ("photo", nil))
        // The save brought the shard's time back by a minute.
        let released = 1_000 + grace - ShardClock.stepMax
        try shard.setTime(released + grace - 1)
        try shard.maintain(time: released + grace - 1)
        #expect(try isKept())
        #expect(try shard.queue.read { try RecordTables.hasWork(now: 1_000 + 3 * grace, in: $0) })
        try shard.setTime(1_000 + 3 * grace)
        try shard.maintain(time: 1_000 + 3 * grace)
        #expect(try !isKept())
    }

    @Test("assets have a quota of their own, to the byte, each reference counted")
    func quota() throws {
        let shard = try fixture()
        func credit(_ assets: Int64) throws {
            let cumulative = QuotaAmounts(bytes: 1 << 20, records: 100, assets: assets)
            _ = try shard.apply(
                .quota(.credit(QuotaCredit(database: Fixture.annsData, cumulative: cumulative, epoch: 1))))
        }
        try credit(199)
        let one = RecordChange.make(.create, "a", [("photo", .asset(first))])
        let two = RecordChange.make(.create, "b", [("photo", .asset(first))])
        #expect(try shard.save(Fixture.annsDefault, one, two).need?.need == QuotaAmounts(assets: 1))
        let refused = try shard.save(Fixture.annsDefault, final: true, one, two)
        #expect(refused.codes == [nil, .quotaExceeded])
        #expect(refused.items[1].error?.reason.contains("100 of 199 bytes of assets") == true)
        try credit(200)
        #expect(try shard.save(Fixture.annsDefault, two).codes == [nil])
        #expect(try shard.used()?.assets == 200)
        // What a deletion of the same batch gives up is room.
        let third = RecordChange.make(.create, "c", [("photo", .asset(first))])
        #expect(
            try shard.save(Fixture.annsDefault, atomic: true, .make(.forceDelete, "a"), third).codes == [nil, nil])
        #expect(try shard.used()?.assets == 200)
        #expect(try shard.usage().unattributed == .zero)
    }

    @Test("the ledger gives and takes back bytes of assets as it does bytes of records")
    func ledger() throws {
        let shard = try fixture()
        let grant = QuotaGrant(
            ledger: Fixture.annsData, shard: 7, want: QuotaAmounts(assets: 50), need: QuotaAmounts(assets: 20),
            received: .zero, returned: .zero, cap: QuotaAmounts(bytes: 10, records: 10, assets: 40), epoch: 1,
            time: 1_000)
        #expect(
            try shard.apply(.quota(.grant(grant))).quota
                == .granted(
                    cumulative: QuotaAmounts(assets: 40), free: QuotaAmounts(bytes: 10, records: 10, assets: 0)))
        let back = QuotaDeposit(
            ledger: Fixture.annsData, shard: 7, received: QuotaAmounts(assets: 40), returned: QuotaAmounts(assets: 15))
        _ = try shard.apply(.quota(.deposit(back)))
        #expect(try shard.ledger().free.assets == 15)
    }

    @Test("what is allotted for the assets of a container that is purged is not passed on", arguments: [12, 13])
    func purged(level: UInt64) throws {
        let shard = try fixture()
        let amounts = QuotaAmounts(bytes: 1 << 20, records: 100, assets: 500)
        let credit = RecordCommand.quota(
            .credit(QuotaCredit(database: Fixture.annsData, cumulative: amounts, epoch: 1)))
        let grant = RecordCommand.quota(
            .grant(
                QuotaGrant(
                    ledger: Fixture.annsData, shard: 7, want: amounts, need: .zero, received: .zero, returned: .zero,
                    cap: amounts, epoch: 1, time: 1_000)))
        for command in [credit, grant] { _ = try shard.apply(command) }
        try save(shard, "a", ("photo", .asset(first)))
        func remove() throws -> Bool {
            try shard.queue.write { db in
                let transaction = try shard.tables.begin(in: db, level: FeatureLevel(level))
                let isDone = try transaction.removeContainer("app", rowsMax: 500)
                try transaction.finish()
                return isDone
            }
        }
        while try !remove() { try shard.maintain() }
        // The next database has the number of the one that is gone.
        _ = try shard.apply(Fixture.install(1, Schema(types: [Self.type])))
        try save(shard, "b", ("photo", .asset(second)))
        for table in ["asset_ledger", "asset_share"] {
            #expect(try shard.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
        #expect(try shard.count("SELECT received + returned FROM asset_database") == 0)
        #expect(try shard.used()?.assets == 30)
    }

    @Test("without assets the tables for them stay empty, so that replicas of older builds are equal")
    func emptyTables() throws {
        let shard = try Fixture()
        try shard.credit(1 << 20)
        #expect(try shard.save(Fixture.annsDefault, .note(.create, "a", "text")).codes == [nil])
        let grant = QuotaGrant(
            ledger: Fixture.annsData, shard: 1, want: QuotaAmounts(bytes: 5), need: .zero, received: .zero,
            returned: .zero, cap: QuotaAmounts(bytes: 10, records: 10), epoch: 1, time: 1_000)
        _ = try shard.apply(.quota(.grant(grant)))
        for table in ["asset", "asset_zone", "asset_database", "asset_ledger", "asset_share"] {
            #expect(try shard.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
    }
}
