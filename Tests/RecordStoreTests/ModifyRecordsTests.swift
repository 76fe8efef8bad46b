import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("records/modify: kinds of operations")
struct ModifyRecordsTests {
    let shard: Fixture
    let zone = Fixture.annsDefault
    init() throws { shard = try Fixture() }

    @Test("create stores a record, and a second create answers EXISTS with the record")
    func create() throws {
        let saved = try #require(try shard.one(zone, .make(.create, "a", [("text", .string("hi"))]))?.saved)
        #expect(saved.changeTag == ChangeTag(incarnation: 1, sequence: 1))
        #expect(saved.created == Stamp(timestamp: 1000, user: "_ann"))
        #expect(saved.mergedFields == nil)
        let record = try #require(try shard.lookup("a", in: zone))
        #expect(record.fields["text"] == .string("hi"))
        #expect(record.type == "Note" && record.changeTag == saved.changeTag)
        let again = try shard.one(zone, .make(.create, "a"))
        #expect(again?.error == ServiceError(.exists, "record to insert already exists"))
        #expect(again?.serverRecord == record)
    }

    @Test("update keeps the other fields, and answers all of them")
    func update() throws {
        let first = try #require(
            try shard.one(zone, .make(.create, "a", [("text", .string("hi")), ("rank", .int64(3))]))?.saved)
        let outcome = try shard.one(
            zone, time: 2000, .make(.update, "a", [("rank", .int64(4)), ("score", nil)], tag: first.changeTag))
        let second = try #require(outcome?.saved)
        #expect(second.changeTag.sequence == 2)
        #expect(second.created == first.created && second.modified.timestamp == 2000)
        #expect(second.mergedFields?["text"] == .string("hi"))
        #expect(try shard.lookup("a", in: zone)?.fields["rank"] == .int64(4))
        let third = try shard.one(zone, .make(.forceUpdate, "a", [("text", nil), ("rank", .int64(4))]))
        #expect(third?.saved?.mergedFields == nil)
        #expect(try shard.lookup("a", in: zone)?.fields.all.count == 1)
    }

    @Test("replace drops the fields that it does not name")
    func replace() throws {
        _ = try shard.one(zone, .make(.create, "a", [("text", .string("hi")), ("rank", .int64(3))]))
        let tag = ChangeTag(incarnation: 1, sequence: 1)
        #expect(try shard.one(zone, .make(.replace, "a", [("rank", .int64(9))], tag: tag))?.saved != nil)
        #expect(try shard.lookup("a", in: zone)?.fields.all.map(\.name) == ["rank"])
        #expect(try shard.one(zone, .make(.forceReplace, "a"))?.saved != nil)
        #expect(try shard.lookup("a", in: zone)?.fields.all.isEmpty == true)
    }

    @Test(
        "a stale tag is a CONFLICT that shows the server's record; no tag is a BAD_REQUEST",
        arguments: [
            RecordChange.Kind.update, .replace, .delete,
        ])
    func tags(_ kind: RecordChange.Kind) throws {
        _ = try shard.one(zone, .make(.create, "a"))
        let stale = try shard.one(zone, .make(kind, "a", tag: ChangeTag(incarnation: 1, sequence: 7)))
        #expect(stale?.error?.code == .conflict)
        #expect(stale?.error?.reason.hasPrefix("client oplock error updating record") == true)
        #expect(stale?.serverRecord?.changeTag == ChangeTag(incarnation: 1, sequence: 1))
        #expect(try shard.one(zone, .make(kind, "a"))?.error?.code == .badRequest)
        let missing = try shard.one(zone, .make(kind, "b", tag: ChangeTag(incarnation: 1, sequence: 1)))
        #expect(missing?.error == ServiceError(.notFound, "Record not found"))
    }

    @Test("forced saves create what is missing", arguments: [RecordChange.Kind.forceUpdate, .forceReplace])
    func forced(_ kind: RecordChange.Kind) throws {
        #expect(try shard.one(zone, .make(kind, "a", [("rank", .int64(1))]))?.saved != nil)
        #expect(try shard.one(zone, RecordChange(kind, "b"))?.error?.code == .badRequest)
    }

    @Test("a deletion leaves a tombstone with a new sequence, and the name can be used again")
    func deletion() throws {
        _ = try shard.one(zone, .make(.create, "a", [("text", .string("old"))]))
        #expect(
            try shard.one(zone, .make(.delete, "a", tag: ChangeTag(incarnation: 1, sequence: 1))) == .deleted)
        #expect(try shard.lookup("a", in: zone) == nil)
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 1 AND sequence = 2 AND body IS NULL") == 1)
        #expect(try shard.count("SELECT count(*) FROM index_bytes") == 0)
        #expect(try shard.one(zone, .make(.forceDelete, "a")) == .deleted)
        #expect(try shard.one(zone, .make(.forceDelete, "never")) == .deleted)
        let saved = try shard.one(zone, by: Fixture.ann, time: 5000, .make(.create, "a"))?.saved
        #expect(saved?.created.timestamp == 5000 && saved?.changeTag.sequence == 3)
        #expect(try shard.lookup("a", in: zone)?.fields.all.isEmpty == true)
    }

    @Test("a record keeps its type")
    func type() throws {
        _ = try shard.one(zone, .make(.create, "a"))
        #expect(try shard.one(zone, RecordChange(.forceUpdate, "a", type: "Secret"))?.error?.code == .badRequest)
        #expect(try shard.one(zone, RecordChange(.create, "b", type: "Nothing"))?.error?.code == .badRequest)
    }

    @Test("values of another type or place, unknown fields and long names are refused")
    func values() throws {
        for field: (String, FieldValue) in [
            ("text", .int64(1)), ("rank", .string("1")), ("nothing", .int64(1)), ("tags", .string("a")),
            ("tags", .list(.int64, [.int64(1)])), ("text", .list(.string, [])),
            ("list", .reference(Reference(recordName: "x", zone: ZoneID(name: "other")))),
            ("sealed", .bytes([1])), ("sealed", .string("plain")), ("plain", .sealed([1])),
        ] {
            #expect(try shard.one(zone, .make(.create, "a", [field]))?.error?.code == .badRequest, "\(field)")
        }
        for field: (String, FieldValue) in [
            ("tags", .list(.string, [])), ("sealed", .sealed([1])),
            ("list", .reference(Reference(recordName: "x", zone: ZoneID(name: "_defaultZone", owner: "_ann")))),
        ] {
            #expect(try shard.one(zone, .make(.forceUpdate, "ok", [field]))?.saved != nil, "\(field)")
        }
        #expect(try shard.one(zone, .make(.create, ""))?.error?.code == .badRequest)
        #expect(try shard.one(zone, .make(.create, String(repeating: "a", count: 255)))?.saved != nil)
        #expect(try shard.one(zone, .make(.create, String(repeating: "a", count: 256)))?.error?.code == .badRequest)
    }

    @Test("the merged record may have 1 MB and not a byte more")
    func size() throws {
        let room = Limits.recordSizeBytesMax - "text".utf8.count - "plain".utf8.count
        let half = FieldValue.string(String(repeating: "x", count: room / 2))
        let rest = String(repeating: "y", count: room - room / 2)
        _ = try shard.one(zone, .make(.create, "a", [("text", half)]))
        let over = try shard.one(zone, .make(.forceUpdate, "a", [("plain", .string(rest + "y"))]))
        #expect(over?.error == ServiceError(.badRequest, "record is 1048577 bytes, at most 1048576"))
        #expect(try shard.one(zone, .make(.forceUpdate, "a", [("plain", .string(rest))]))?.saved != nil)
    }

    @Test("sealed bytes count towards the record's size")
    func sealedSize() throws {
        let room = Limits.recordSizeBytesMax - "sealed".utf8.count
        let sealed = [UInt8](repeating: 7, count: room)
        #expect(try shard.one(zone, .make(.create, "a", [("sealed", .sealed(sealed))]))?.saved != nil)
        let over = try shard.one(zone, .make(.create, "b", [("sealed", .sealed(sealed + [7]))]))
        #expect(over?.error?.code == .badRequest)
    }

    @Test("sealed values are for encrypted fields of private databases, and only they")
    func sealed() throws {
        let value = FieldValue.sealed([1, 2, 3])
        #expect(try shard.one(zone, .make(.create, "a", [("sealed", value)]))?.saved != nil)
        #expect(try shard.lookup("a", in: zone)?.fields["sealed"] == value)
        let plain = try shard.one(zone, .make(.create, "b", [("plain", value)]))?.error
        #expect(plain?.reason.hasPrefix("Attempt to save encrypted data in non encrypted field type") == true)
        let open = try shard.one(Fixture.publicZone, .make(.create, "a", [("sealed", value)]))
        #expect(open?.error?.code == .badRequest)
    }

    @Test("two operations on one record, and too many operations, are refused")
    func duplicates() throws {
        let outcome = try shard.modify(zone, .make(.create, "a"), .make(.forceDelete, "a"), .make(.create, "b"))
        #expect(outcome.codes == [nil, .badRequest, nil])
        let many = (0...Limits.operationsMax).map { RecordChange.make(.create, "r\($0)") }
        let command = ModifyRecords(
            zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1, operations: many)
        #expect(try shard.apply(.modifyRecords(command)).refusal?.code == .badRequest)
    }

    @Test("names that differ after a NUL or in Unicode form only are different records")
    func names() throws {
        let names = ["a", "a\0", "a\0b", "\u{E9}", "e\u{301}"]
        for name in names {
            #expect(try shard.one(zone, .make(.create, name, [("plain", .string(name))]))?.saved != nil)
        }
        for name in names {
            let text = try shard.lookup(name, in: zone)?.fields["plain"]
            guard case .string(let stored) = text else {
                Issue.record("\(name.debugDescription) not found")
                continue
            }
            #expect(Array(stored.utf8) == Array(name.utf8))
        }
    }

    @Test("stamps do not run backwards between clocks that agree; a clock that is far off stamps its own changes only")
    func time() throws {
        func stamp(_ name: String, _ time: Int64) throws -> Int64? {
            try shard.one(zone, time: time, .make(.create, name))?.saved?.created.timestamp
        }
        let now: Int64 = 1_700_000_000_000
        #expect(try stamp("a", now) == now)
        #expect(try stamp("b", now - 2000) == now)
        #expect(try stamp("ahead", now + 86_400_000) == now + 86_400_000)
        #expect(try stamp("c", now + 10) == now + 60_000)
        #expect(try stamp("late", .min) == .min)
        #expect(try stamp("later", .max) == .max)
        #expect(try stamp("d", now + 59_000) == now + 60_000)
    }

    @Test("a command moves the shard's time by a minute at most, maintenance too; right clocks bring it back")
    func shardTime() throws {
        func time() throws -> Int { try shard.count("SELECT time FROM record_state") }
        let now = 1_700_000_000_000
        _ = try shard.one(zone, time: Int64(now), .make(.create, "a"))
        for number in 1...100 {
            _ = try shard.one(zone, time: Int64(now) + 3 * 86_400_000, .make(.create, "ahead\(number)"))
        }
        #expect(try time() == now + 100 * 60_000)
        try shard.apply(.maintain(Maintain(time: .max)))
        #expect(try time() == now + 101 * 60_000)
        #expect(try shard.queue.read { try RecordTables.isAstray(from: Int64(now), in: $0) })
        // The leader goes on until its clock moves the time no more.
        for number in (1...100).reversed() {
            let isAstray = try shard.maintain(Int64(now), at: FeatureLevel.evenSteps)
            #expect(try time() == now + number * 60_000)
            #expect(isAstray == (number > 1))
        }
        #expect(try shard.queue.read { try RecordTables.isAstray(from: Int64(now), in: $0) } == false)
        for number in 0..<3 { _ = try shard.one(zone, time: Int64(now - 90_000), .make(.create, "b\(number)")) }
        #expect(try time() == now - 60_000)
        // One that nothing was written to has no time.
        let other = try Fixture()
        #expect(try other.queue.read { try RecordTables.isAstray(from: Int64(now), in: $0) } == false)
    }

    @Test("at the first feature level maintenance moves the shard's time by an hour, as builds that know no other do")
    func firstLevel() throws {
        let now = 1_700_000_000_000
        _ = try shard.one(zone, time: Int64(now), .make(.create, "a"))
        _ = try shard.maintain(.max, at: .first)
        #expect(try shard.count("SELECT time FROM record_state") == now + 3_600_000)
        _ = try shard.maintain(.min, at: .first)
        #expect(try shard.count("SELECT time FROM record_state") == now)
    }
}
