import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("references: VALIDATE, DELETE_SELF, parents")
struct ReferencesTests {
    let shard: Fixture
    let zone = Fixture.work
    init() throws {
        shard = try Fixture(zone: Fixture.work)
    }

    static func to(_ name: String, _ action: Reference.Action) -> [(String, FieldValue?)] {
        [("list", .reference(Reference(recordName: name, action: action)))]
    }

    func there(_ names: String..., in zone: ZoneKey = Fixture.work) throws -> [Bool] {
        try names.map { try shard.lookup($0, in: zone) != nil }
    }

    @Test("VALIDATE needs its target, which may be the record itself or one saved before in the request")
    func validate() throws {
        let missing = try shard.one(zone, .make(.create, "a", Self.to("b", .validate)))
        #expect(missing?.error?.code == .validatingReferenceError)
        #expect(missing?.error?.code.httpStatus == 412)
        #expect(try shard.one(zone, .make(.create, "self", Self.to("self", .validate)))?.saved != nil)
        let ordered = try shard.modify(
            zone, atomic: true, .make(.create, "b"), .make(.create, "a", Self.to("b", .validate)))
        #expect(ordered.codes == [nil, nil])
        let reversed = try shard.modify(
            zone, atomic: true, .make(.create, "c", Self.to("d", .validate)), .make(.create, "d"))
        #expect(reversed.codes == [.validatingReferenceError, .atomicError])
        #expect(try there("c", "d") == [false, false])
    }

    @Test("a target that another record holds with VALIDATE stays, unless the holder goes before")
    func held() throws {
        _ = try shard.modify(zone, .make(.create, "b"), .make(.create, "a", Self.to("b", .validate)))
        _ = try shard.one(zone, .make(.create, "self", Self.to("self", .validate)))
        #expect(try shard.one(zone, .make(.forceDelete, "b"))?.error?.code == .validatingReferenceError)
        #expect(try shard.one(zone, .make(.forceDelete, "self")) == .deleted)
        let wrong = try shard.modify(zone, atomic: true, .make(.forceDelete, "b"), .make(.forceDelete, "a"))
        #expect(wrong.codes == [.validatingReferenceError, .atomicError])
        let right = try shard.modify(zone, atomic: true, .make(.forceDelete, "a"), .make(.forceDelete, "b"))
        #expect(right.codes == [nil, nil])
        #expect(try shard.count("SELECT count(*) FROM edge") == 0)
    }

    @Test("clearing or changing the reference lets the target go")
    func released() throws {
        _ = try shard.modify(zone, .make(.create, "b"), .make(.create, "a", Self.to("b", .validate)))
        _ = try shard.one(zone, .make(.forceUpdate, "a", [("list", nil)]))
        #expect(try shard.one(zone, .make(.forceDelete, "b")) == .deleted)
    }

    @Test("in a custom zone a deletion takes along what refers to it, over levels and cycles, in one transaction")
    func cascade() throws {
        // c1 -> root, c2 -> c1, c3 -> c2 and root -> c3: a cycle; other is not part of it.
        _ = try shard.one(zone, .make(.create, "root", Self.to("c3", .deleteSelf)))
        _ = try shard.one(zone, .make(.create, "c1", Self.to("root", .deleteSelf)))
        _ = try shard.one(zone, .make(.create, "c2", Self.to("c1", .deleteSelf)))
        _ = try shard.one(zone, .make(.create, "c3", Self.to("c2", .deleteSelf)))
        _ = try shard.one(zone, .make(.create, "other", Self.to("nowhere", .deleteSelf)))
        #expect(try shard.one(zone, .make(.forceDelete, "c2")) == .deleted)
        #expect(try there("root", "c1", "c2", "c3", "other") == [false, false, false, false, true])
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 1") == 4)
        #expect(try shard.count("SELECT max(sequence) FROM record") == 9)
        #expect(try shard.count("SELECT count(*) FROM edge") == 1)
    }

    @Test("a VALIDATE holder that goes with the cascade does not stop it; another one does, before any change")
    func cascadeHeld() throws {
        let both = FieldValue.list(
            .reference,
            [
                .reference(Reference(recordName: "root", action: .deleteSelf)),
                .reference(Reference(recordName: "leaf", action: .validate)),
            ])
        var note = Fixture.note
        note.fields.append(FieldDefinition(name: "many", type: FieldType(.reference, isList: true)))
        try shard.apply(Fixture.install(2, Schema(types: [note, Fixture.secret, Fixture.bare])))
        func save(_ name: String, _ fields: [(String, FieldValue?)]) throws {
            #expect(try shard.modify(zone, version: 2, .make(.create, name, fields)).codes == [nil])
        }
        try save("root", [])
        try save("leaf", Self.to("root", .deleteSelf))
        try save("inside", [("many", both)])
        try save("outside", Self.to("leaf", .validate))
        let before = try shard.stateBytes()
        #expect(
            try shard.modify(zone, version: 2, .make(.forceDelete, "root")).codes == [.validatingReferenceError])
        #expect(try shard.stateBytes() == before)
        #expect(try shard.modify(zone, version: 2, .make(.forceDelete, "outside")).codes == [nil])
        #expect(try shard.modify(zone, version: 2, .make(.forceDelete, "root")).codes == [nil])
        #expect(try there("root", "leaf", "inside") == [false, false, false])
    }

    @Test("a later operation sees what an earlier one's cascade took; a failed batch brings all back")
    func entangled() throws {
        _ = try shard.modify(zone, .make(.create, "a"), .make(.create, "b", Self.to("a", .deleteSelf)))
        let before = try shard.stateBytes()
        let tag = ChangeTag(incarnation: 1, sequence: 2)
        let failed = try shard.modify(
            zone, atomic: true, .make(.forceDelete, "a"), .make(.create, "new"), .make(.update, "b", tag: tag))
        #expect(failed.codes == [.atomicError, .atomicError, .notFound])
        #expect(try shard.stateBytes() == before)
        let outcome = try shard.modify(
            zone, atomic: true, .make(.forceDelete, "a"), .make(.forceUpdate, "b", [("rank", .int64(1))]))
        #expect(outcome.codes == [nil, nil])
        #expect(try shard.lookup("b", in: zone)?.fields.all.map(\.name) == ["rank"])
    }

    @Test("750 records may refer to one target with DELETE_SELF, the 751st may not")
    func fanOut() throws {
        for number in 0..<750 {
            #expect(try shard.one(zone, .make(.create, "r\(number)", Self.to("x", .deleteSelf)))?.saved != nil)
        }
        #expect(try shard.one(zone, .make(.create, "over", Self.to("x", .deleteSelf)))?.error?.code == .badRequest)
        #expect(try shard.one(zone, .make(.forceUpdate, "r1", Self.to("x", .deleteSelf)))?.saved != nil)
        #expect(try shard.one(zone, .make(.create, "validates", Self.to("r1", .validate)))?.saved != nil)
    }

    @Test("a cascade of 10,000 records is one transaction, one more is refused before any change")
    func cascadeBound() throws {
        // A chain: each refers to the one before.
        func chain(_ count: Int, _ prefix: String) throws {
            var position = 0
            while position < count {
                let end = min(position + 200, count)
                let operations = (position..<end).map { number in
                    RecordChange.make(
                        .create, "\(prefix)\(number)",
                        number == 0 ? [] : Self.to("\(prefix)\(number - 1)", .deleteSelf))
                }
                let command = ModifyRecords(
                    zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1, operations: operations)
                #expect(try shard.apply(.modifyRecords(command)).codes.allSatisfy { $0 == nil })
                position = end
            }
        }
        let max = Limits.cascadeMax
        try chain(max + 1, "r")
        #expect(try shard.one(zone, .make(.forceDelete, "r0"))?.error?.code == .badRequest)
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 1") == 0)
        #expect(try shard.one(zone, .make(.forceDelete, "r1")) == .deleted)
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 1") == max)
        #expect(try shard.count("SELECT count(*) FROM edge") == 0)
    }

    @Test("in a default zone the target goes at once and the rest by maintenance, only what the caller may delete")
    func byMaintenance() throws {
        let zone = Fixture.publicZone
        _ = try shard.one(zone, .make(.create, "root"))
        _ = try shard.one(zone, .make(.create, "mine", Self.to("root", .deleteSelf)))
        _ = try shard.one(zone, .make(.create, "below", Self.to("mine", .deleteSelf)))
        _ = try shard.one(zone, by: Fixture.bob, .make(.create, "bobs", Self.to("root", .deleteSelf)))
        _ = try shard.one(zone, by: Fixture.bob, .make(.create, "belowBobs", Self.to("bobs", .deleteSelf)))
        #expect(try shard.one(zone, .make(.forceDelete, "root")) == .deleted)
        #expect(try there("root", "mine", "below", in: zone) == [false, true, true])
        #expect(try shard.queue.read { try RecordTables.hasWork(now: 0, in: $0) })
        // The name is used again: what refers to it from now on is not part of the deletion.
        _ = try shard.one(zone, .make(.create, "root"))
        _ = try shard.one(zone, .make(.create, "later", Self.to("root", .deleteSelf)))
        #expect(try shard.maintain(rows: 1) > 1)
        #expect(try there("root", "mine", "below", in: zone) == [true, false, false])
        #expect(try there("bobs", "belowBobs", "later", in: zone) == [true, true, true])
    }

    @Test("a record that another holds with VALIDATE outlives a cascade in a default zone")
    func heldInDefaultZone() throws {
        let zone = Fixture.annsDefault
        _ = try shard.one(zone, .make(.create, "root"))
        _ = try shard.one(zone, .make(.create, "source", Self.to("root", .deleteSelf)))
        _ = try shard.one(zone, .make(.create, "holder", Self.to("source", .validate)))
        #expect(try shard.one(zone, .make(.forceDelete, "root")) == .deleted)
        try shard.maintain()
        #expect(try there("root", "source", "holder", in: zone) == [false, true, true])
    }

    @Test("references stay in their zone; a parent has no action")
    func places() throws {
        let elsewhere = FieldValue.reference(Reference(recordName: "x", zone: ZoneID(name: "home")))
        #expect(try shard.one(zone, .make(.create, "a", [("list", elsewhere)]))?.error?.code == .badRequest)
        #expect(try shard.one(zone, .make(.create, "a", [("___parent", elsewhere)]))?.error?.code == .badRequest)
        let actioned = FieldValue.reference(Reference(recordName: "x", action: .deleteSelf))
        #expect(try shard.one(zone, .make(.create, "a", [("___parent", actioned)]))?.error?.code == .badRequest)
        let parent = FieldValue.reference(Reference(recordName: "x"))
        #expect(try shard.one(zone, .make(.create, "a", [("___parent", parent)]))?.saved != nil)
        #expect(try shard.lookup("a", in: zone)?.fields["___parent"] == parent)
        #expect(try shard.one(zone, .make(.forceUpdate, "a", [("___parent", nil)]))?.saved != nil)
        #expect(try shard.lookup("a", in: zone)?.fields.all.isEmpty == true)
    }
}
