import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

/// Short words for earlier versions.
extension Fixture {
    func versions(_ name: String, in zone: ZoneKey, by caller: Caller = ann, limit: Int = 200) throws -> [RecordVersion]
    {
        var found: [RecordVersion] = []
        let request = VersionsRequest(name, zone: zone, schemaVersion: 0, caller: caller, limit: limit)
        _ = try queue.read { db in
            try EarlierVersions.read(request, from: tables, in: db) {
                found.append($0)
                return true
            }
        }
        return found
    }

    /// Saves with versions kept.
    @discardableResult
    func keep(
        _ zone: ZoneKey, most: UInt64 = 10, time: Int64 = 1000, atomic: Bool = false, version: UInt64 = 1,
        quota: QuotaTerms? = nil, _ operations: RecordChange...
    ) throws -> RecordOutcome {
        var command = ModifyRecords(
            zone: zone, schemaVersion: version, caller: Self.ann, time: time, isAtomic: atomic, quota: quota,
            operations: operations)
        command.versionsMax = most
        return try apply(.modifyRecords(command))
    }

    /// The texts of a record's versions, the newest first.
    func texts(_ name: String, in zone: ZoneKey = annsDefault) throws -> [String] {
        try versions(name, in: zone).map { if case .string(let text)? = $0.record.fields["plain"] { text } else { "" } }
    }
}

@Suite("earlier versions of records")
struct VersionTests {
    private let zone = Fixture.annsDefault
    private static let file = AssetReference(sha256: [UInt8](repeating: 1, count: 32), size: 100)

    @Test("a change and a deletion leave the record as it was, with who made it and who ended it")
    func left() throws {
        let shard = try Fixture()
        try shard.keep(zone, time: 1000, .note(.create, "a", "one"))
        #expect(try shard.versions("a", in: zone).isEmpty)
        try shard.keep(zone, time: 2000, .note(.forceUpdate, "a", "two"))
        let tag = try #require(try shard.lookup("a", in: zone)).changeTag
        try shard.keep(zone, time: 3000, .make(.forceDelete, "a"))
        let found = try shard.versions("a", in: zone)
        #expect(found.map(\.record.changeTag.sequence) == [2, 1])
        #expect(found.first?.record.changeTag == tag)
        #expect(found.map(\.isDeletion) == [true, false])
        #expect(found.map(\.replaced) == [3000, 2000].map { Stamp(timestamp: $0, user: "_ann") })
        #expect(found.map(\.record.modified.timestamp) == [2000, 1000])
        #expect(try shard.texts("a") == ["two", "one"])
        // The name's next life goes on with them.
        try shard.keep(zone, time: 4000, .note(.create, "a", "three"))
        try shard.keep(zone, time: 5000, .note(.forceReplace, "a", "four"))
        #expect(try shard.texts("a") == ["three", "two", "one"])
        #expect(try shard.used() != nil)
    }

    @Test("without the limit nothing is left, nor below the feature level")
    func off() throws {
        let shard = try Fixture()
        _ = try shard.modify(zone, .note(.create, "a"), .note(.create, "b"))
        _ = try shard.modify(zone, .note(.forceUpdate, "a", "x"))
        _ = try shard.modify(zone, .make(.forceDelete, "b"))
        #expect(try shard.count("SELECT count(*) FROM record_version") == 0)
        var command = ModifyRecords(
            zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1000, operations: [.note(.forceUpdate, "a", "y")])
        command.versionsMax = 3
        try shard.queue.write { db in
            let transaction = try shard.tables.begin(in: db, level: .administration)
            _ = try transaction.apply(.modifyRecords(command))
            try transaction.finish()
        }
        #expect(try shard.count("SELECT count(*) FROM record_version") == 0)
    }

    @Test("what an atomic batch refuses leaves no version, and what goes along leaves its own")
    func batches() throws {
        let shard = try Fixture()
        try shard.zone(.create, Fixture.work)
        let holder = FieldValue.reference(Reference(recordName: "a", action: .deleteSelf))
        try shard.keep(
            Fixture.work, .note(.create, "a", "one"), .make(.create, "b", [("list", holder), ("plain", .string("b"))]))
        let refused = try shard.keep(
            Fixture.work, atomic: true, .note(.forceUpdate, "a", "two"), .note(.create, "b", "no"))
        #expect(refused.codes == [.atomicError, .exists])
        #expect(try shard.count("SELECT count(*) FROM record_version") == 0)
        try shard.keep(Fixture.work, .make(.forceDelete, "a"))
        #expect(try shard.texts("a", in: Fixture.work) == ["one"])
        #expect(try shard.texts("b", in: Fixture.work) == ["b"])
        // A default zone's cascade goes on in maintenance.
        try shard.keep(
            zone, .note(.create, "a", "one"), .make(.create, "b", [("list", holder), ("plain", .string("b"))]))
        try shard.keep(zone, .make(.forceDelete, "a"))
        try shard.maintain()
        #expect(try shard.texts("b") == ["b"])
        #expect(try shard.used() != nil)
    }

    @Test("versions of another zone that made room for a batch that is undone are there again, and count")
    func undone() throws {
        let shard = try Fixture()
        try shard.zone(.create, Fixture.work)
        try shard.keep(zone, .note(.create, "other", "one"))
        try shard.keep(zone, .note(.forceUpdate, "other", "two"))
        try shard.keep(Fixture.work, .note(.create, "a", "x"), .note(.create, "b", "x"))
        let used = try #require(try shard.used())
        try shard.credit(used.bytes)
        for _ in 0..<3 {
            let refused = try shard.keep(
                Fixture.work, atomic: true, quota: QuotaTerms(epoch: 1, isFinal: true),
                .note(.forceUpdate, "a", "xx"), .note(.forceUpdate, "b", String(repeating: "x", count: 5000)))
            #expect(refused.codes == [.atomicError, .quotaExceeded])
            #expect(try shard.texts("other") == ["one"])
            #expect(try shard.used() == used)
        }
    }

    @Test("the oldest of a record go where they are too many, and all where they are too old, in bounded parts")
    func bounds() throws {
        let shard = try Fixture()
        for number in 0..<6 { try shard.keep(zone, most: 3, .note(.forceUpdate, "a", "\(number)")) }
        #expect(try shard.texts("a") == ["4", "3", "2"])
        try shard.keep(zone, most: 1, .note(.forceUpdate, "a", "6"))
        #expect(try shard.texts("a") == ["5"])
        for number in 0..<7 { try shard.keep(zone, .note(.forceUpdate, "b", "\(number)")) }
        try shard.setTime(61_000)
        try shard.keep(zone, time: 61_000, .note(.forceUpdate, "b", "7"))
        func age(_ ageMax: Int64, epoch: UInt64 = 0) -> [VersionAge] {
            [VersionAge(container: "app", ageMax: ageMax, epoch: epoch)]
        }
        func maintain(_ versions: [VersionAge]) throws -> RecordOutcome {
            var command = Maintain(time: 61_000, rowsMax: 4)
            command.versions = versions
            return try shard.apply(.maintain(command))
        }
        #expect(try maintain(age(.max)) == .maintained(hasMore: false))
        #expect(try maintain([VersionAge(container: "other", ageMax: 0, epoch: 0)]) == .maintained(hasMore: false))
        #expect(try maintain(age(50_000)) == .maintained(hasMore: true))
        #expect(try maintain(age(50_000)) == .maintained(hasMore: false))
        #expect(try shard.texts("b") == ["6"])
        let old = try shard.queue.read { db in
            try EarlierVersions.old(now: 61_000, age: { VersionAge(container: $0, ageMax: 0, epoch: 0) }, in: db)
        }
        #expect(old == age(0))
        #expect(try maintain(age(0)) == .maintained(hasMore: false))
        #expect(try shard.count("SELECT count(*) FROM record_version") == 0)
        #expect(try shard.used() != nil)
    }

    @Test("who knows an earlier version of the limits removes nothing that was left under a later one")
    func outdated() throws {
        let shard = try Fixture()
        try shard.credit(1 << 20, epoch: 7)
        let terms = QuotaTerms(epoch: 7, isFinal: false)
        for text in ["one", "two"] { try shard.keep(zone, quota: terms, .note(.forceUpdate, "a", text)) }
        for (epoch, left) in [(6, 1), (7, 0)] as [(UInt64, Int)] {
            var command = Maintain(time: 1000)
            command.versions = [VersionAge(container: "app", ageMax: 0, epoch: epoch)]
            #expect(try shard.apply(.maintain(command)) == .maintained(hasMore: false))
            #expect(try shard.versions("a", in: zone).count == left)
        }
    }

    @Test("versions take room: more is asked for, then the oldest go, and only then a save fails")
    func quota() throws {
        let shard = try Fixture()
        let size = Fixture.size("a", "one")
        try shard.credit(size)
        func save(_ final: Bool, _ operation: RecordChange) throws -> RecordOutcome {
            try shard.keep(zone, quota: QuotaTerms(epoch: 1, isFinal: final), operation)
        }
        #expect(try save(false, .note(.create, "a", "one")).codes == [nil])
        let need = try #require(try save(false, .note(.forceUpdate, "a", "two")).need)
        #expect(need.need.bytes > 128 && need.need.records == 0)
        #expect(try shard.versions("a", in: zone).isEmpty)
        // There is no more: the change is kept and what it replaced is not.
        #expect(try save(true, .note(.forceUpdate, "a", "two")).codes == [nil])
        #expect(try shard.versions("a", in: zone).isEmpty)
        try shard.credit(size + 2 * need.need.bytes)
        #expect(try save(false, .note(.forceUpdate, "a", "abc")).codes == [nil])
        #expect(try save(false, .note(.forceUpdate, "a", "def")).codes == [nil])
        #expect(try shard.texts("a") == ["abc", "two"])
        #expect(try save(true, .note(.forceUpdate, "a", "ghi")).codes == [nil])
        #expect(try shard.texts("a") == ["def", "abc"])
        #expect(try save(true, .note(.forceUpdate, "a", String(repeating: "x", count: 4))).codes == [nil])
        #expect(try shard.texts("a") == ["ghi"])
        #expect(try save(true, .note(.forceUpdate, "a", String(repeating: "x", count: 5000))).codes == [.quotaExceeded])
        #expect(try shard.texts("a") == ["ghi"])
        // A deletion is never refused.
        #expect(try save(true, .make(.forceDelete, "a")).codes == [nil])
        #expect(try shard.texts("a") == ["xxxx", "ghi"])
        let used = try #require(try shard.used())
        #expect(used.bytes <= size + 2 * need.need.bytes)
    }

    @Test("files of versions count and stay until the versions go")
    func assets() throws {
        let shard = try Fixture(installs: false)
        let type = RecordType(name: "Note", fields: [FieldDefinition(name: "photo", type: FieldType(.asset))])
        _ = try shard.apply(Fixture.install(1, Schema(types: [type])))
        try shard.keep(zone, .make(.create, "a", [("photo", .asset(Self.file))]))
        try shard.keep(zone, .make(.forceUpdate, "a", [("photo", nil)]))
        #expect(try shard.assetCounts().counted == [Self.file: 1])
        #expect(try shard.used()?.assets == 100)
        var command = Maintain(time: 1000)
        command.versions = [VersionAge(container: "app", ageMax: 0, epoch: 0)]
        _ = try shard.apply(.maintain(command))
        #expect(try shard.assetCounts().counted == [:])
        #expect(try shard.used()?.assets == 0)
    }

    @Test("a field that the schema loses goes from versions, a lost type takes its versions, a zone and a reset too")
    func schemaAndZones() throws {
        let shard = try Fixture()
        try shard.zone(.create, Fixture.work)
        for text in ["one", "two"] {
            try shard.keep(zone, .note(.forceUpdate, "a", text))
            try shard.keep(Fixture.work, .note(.forceUpdate, "w", text))
        }
        var bare = Fixture.note
        bare.fields.removeAll { $0.name == "plain" }
        let without = Schema(types: [bare, Fixture.secret, Fixture.bare])
        _ = try shard.apply(Fixture.install(2, without))
        #expect(try shard.versions("a", in: zone).map(\.record.fields) == [Fields()])
        // Replaced before it is cleaned.
        try shard.keep(zone, version: 2, .make(.forceUpdate, "a", [("rank", .int64(1))]))
        _ = try shard.apply(Fixture.install(3))
        #expect(try shard.texts("a") == ["", ""])
        #expect(try shard.used() != nil)
        try shard.zone(.delete, Fixture.work)
        #expect(try shard.used() != nil)
        try shard.maintain(rows: 2)
        #expect(try shard.count("SELECT count(DISTINCT zone) FROM record_version") == 1)
        _ = try shard.apply(Fixture.install(4, Schema(types: [Fixture.bare])))
        try shard.maintain(rows: 2)
        #expect(try shard.count("SELECT count(*) FROM record_version") == 0)
        #expect(try shard.used() != nil)
    }

    @Test("who may not read records of a version's maker now does not see it")
    func permissions() throws {
        let shard = try Fixture()
        let secret = RecordChange(.create, "s", type: "Secret", fields: [.init(name: "text", value: .string("x"))])
        try shard.keep(Fixture.publicZone, secret)
        try shard.keep(Fixture.publicZone, RecordChange(.forceDelete, "s"))
        #expect(try shard.versions("s", in: Fixture.publicZone).count == 1)
        #expect(try shard.versions("s", in: Fixture.publicZone, by: Fixture.bob).isEmpty)
        // Bob makes another record of the name, and does not see Ann's.
        _ = try shard.modify(Fixture.publicZone, by: Fixture.bob, secret)
        #expect(try shard.versions("s", in: Fixture.publicZone, by: Fixture.bob).isEmpty)
        #expect(try shard.versions("s", in: Fixture.publicZone).isEmpty)
    }

    @Test("a page ends where it is full, and the next one goes on behind it")
    func pages() throws {
        let shard = try Fixture()
        for number in 0..<5 { try shard.keep(zone, .note(.forceUpdate, "a", "\(number)")) }
        var request = VersionsRequest("a", zone: zone, schemaVersion: 0, caller: Fixture.ann, limit: 2)
        var sequences: [UInt64] = []
        var pages = 0
        while true {
            let outcome = try shard.queue.read { db in
                try EarlierVersions.read(request, from: shard.tables, in: db) { version in
                    sequences.append(version.record.changeTag.sequence)
                    request.before = version.record.changeTag
                    return true
                }
            }
            pages += 1
            guard outcome == .found(true) else { break }
        }
        #expect(sequences == [4, 3, 2, 1])
        #expect(pages == 2)
    }
}
