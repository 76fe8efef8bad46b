import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("bounds and secrets: outcomes, references, numbers, maintenance")
struct RepairTests {
    let shard: Fixture
    let zone = Fixture.work
    init() throws {
        shard = try Fixture(zone: Fixture.work)
    }

    static func to(_ names: [String], _ action: Reference.Action) -> FieldValue {
        .list(.reference, names.map { .reference(Reference(recordName: $0, action: action)) })
    }

    /// The schema with another type of notes.
    func install(_ version: UInt64, _ change: (inout RecordType) -> Void) throws {
        var note = Fixture.note
        change(&note)
        try shard.apply(Fixture.install(version, Schema(types: [note, Fixture.secret, Fixture.bare])))
    }

    func modify(
        _ operations: [RecordChange], in zone: ZoneKey = Fixture.work, by caller: Caller = Fixture.ann,
        atomic: Bool = false, version: UInt64 = 1, idempotency: IdempotencyKey? = nil
    ) throws -> RecordOutcome {
        try shard.apply(
            .modifyRecords(
                ModifyRecords(
                    zone: zone, schemaVersion: version, caller: caller, time: 1000, isAtomic: atomic,
                    idempotency: idempotency, operations: operations)))
    }

    @Test("an outcome carries at most 4 MB of records; a save whose fields would not fit changes nothing")
    func outcomeBytes() throws {
        let names = (0..<6).map { "r\($0)" }
        let large = FieldValue.string(String(repeating: "x", count: 1_000_000))
        for name in names { #expect(try shard.one(zone, .make(.create, name, [("plain", large)]))?.saved != nil) }
        // Clashes: what does not fit is left out.
        let clashes = try modify(names.map { .make(.create, $0) })
        #expect(clashes.codes == Array(repeating: .exists, count: 6))
        #expect(clashes.items.map { $0.serverRecord != nil } == [true, true, true, true, false, false])
        let key = IdempotencyKey(
            key: [UInt8](repeating: 1, count: 16), bodyHash: [UInt8](repeating: 1, count: 32), caller: "c")
        let saves = names.map { RecordChange.make(.forceUpdate, $0, [("rank", .int64(1))]) }
        let merged = try modify(saves, idempotency: key)
        #expect(merged.codes == [nil, nil, nil, nil, .badRequest, .badRequest])
        #expect(
            merged.items.last?.error?.reason
                == "the records of this request are together too large for one answer: send them in several requests")
        #expect(try names.map { try shard.lookup($0, in: zone)?.fields["rank"] == nil }.filter { $0 }.count == 2)
        #expect(try shard.count("SELECT max(length(outcome)) FROM idempotency") < 1_000)
        // A repeat reads the values again.
        let again = try modify(saves, idempotency: key)
        #expect(again.codes == merged.codes)
        #expect(again.items.map { $0.saved?.mergedFields } == merged.items.map { $0.saved?.mergedFields })
        let atomic = try modify(saves, atomic: true)
        #expect(atomic.codes.suffix(2) == [.badRequest, .badRequest])
        // Who sends all fields is told none.
        let whole = names.map { RecordChange.make(.forceReplace, $0, [("rank", .int64(2))]) }
        #expect(try modify(whole).codes == Array(repeating: nil, count: 6))
    }

    @Test("who may write a record but not read it is told nothing of its other fields")
    func writeWithoutRead() throws {
        try install(2) { note in
            note.grants = [
                Grant(role: "_icloud", permissions: [.create, .write]), Grant(role: "_creator", permissions: .read),
            ]
        }
        let made = RecordChange.make(.create, "a", [("text", .string("secret"))])
        #expect(try modify([made], in: Fixture.publicZone, version: 2).codes == [nil])
        let change = RecordChange.make(.forceUpdate, "a", [("rank", .int64(1))])
        let bobs = try modify([change], in: Fixture.publicZone, by: Fixture.bob, version: 2)
        #expect(bobs.items.first?.saved != nil && bobs.items.first?.saved?.mergedFields == nil)
        let anns = try modify([change], in: Fixture.publicZone, version: 2)
        #expect(anns.items.first?.saved?.mergedFields?["text"] == .string("secret"))
    }

    @Test("a record has at most 1,000 references with an action, each counted once")
    func referencesOfARecord() throws {
        try install(2) { $0.fields.append(FieldDefinition(name: "many", type: FieldType(.reference, isList: true))) }
        func save(_ names: [String], _ action: Reference.Action = .deleteSelf) throws -> [ErrorCode?] {
            let operation = RecordChange.make(.forceUpdate, "a", [("many", Self.to(names, action))])
            return try modify([operation], version: 2).codes
        }
        let names = (0..<1001).map { "t\($0)" }
        #expect(try save(names) == [.badRequest])
        #expect(try save(names, .none) == [nil])
        #expect(try save(Array(names.dropLast()) + names.dropLast()) == [nil])
        #expect(try shard.count("SELECT count(*) FROM edge") == 1000)
        #expect(try save(Array(names[500..<1001]).reversed()) == [nil])
        #expect(try shard.count("SELECT count(*) FROM edge") == 501)
        try shard.expectEdges()
    }

    @Test("the 10,000 records that deletions may take along are those of the whole request")
    func cascadesOfARequest() throws {
        // Two trees of 1 + 9 + 9 * 640 records: each may go alone, both together may not.
        func sources(_ target: String, _ prefix: String, _ count: Int) throws {
            let value = FieldValue.reference(Reference(recordName: target, action: .deleteSelf))
            let operations = (0..<count).map { RecordChange.make(.create, "\(prefix)-\($0)", [("list", value)]) }
            for start in stride(from: 0, to: count, by: 200) {
                #expect(try modify(Array(operations[start..<min(start + 200, count)])).codes.allSatisfy { $0 == nil })
            }
        }
        for root in ["a", "b"] {
            try sources("nobody", root, 1)
            try sources("\(root)-0", "\(root)-0", 9)
            for child in 0..<9 { try sources("\(root)-0-\(child)", "\(root)-0-\(child)", 640) }
        }
        _ = try shard.one(zone, .make(.create, "single"))
        let deletions = ["a-0", "b-0", "single"].map { RecordChange.make(.forceDelete, $0) }
        let before = try shard.count("SELECT count(*) FROM record WHERE deleted = 0")
        #expect(try modify(deletions, atomic: true).codes == [.atomicError, .badRequest, .atomicError])
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 0") == before)
        #expect(try modify(deletions).codes == [nil, .badRequest, nil])
        #expect(try modify([.make(.forceDelete, "b-0")]).codes == [nil])
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 0") == 0)
    }

    @Test("the record that holds a target is named to those only who may read it")
    func holdersName() throws {
        try install(2) { note in
            note.grants = [
                Grant(role: "_icloud", permissions: .create), Grant(role: "_creator", permissions: [.read, .write]),
            ]
        }
        let value = FieldValue.reference(Reference(recordName: "a", action: .validate))
        let all = Fixture.publicZone
        for name in ["a", "c"] { _ = try modify([.make(.create, name)], in: all, version: 2) }
        let hidden = RecordChange.make(.create, "hidden", [("list", value)])
        #expect(try modify([hidden], in: all, by: Fixture.bob, version: 2).codes == [nil])
        let refused = try modify([.make(.forceDelete, "a")], in: all, version: 2).items.first?.error
        #expect(refused?.reason == "another record refers to the record with VALIDATE")
        let own = FieldValue.reference(Reference(recordName: "c", action: .validate))
        _ = try modify([.make(.create, "shown", [("list", own)])], in: all, version: 2)
        let told = try modify([.make(.forceDelete, "c")], in: all, version: 2).items.first?.error
        #expect(told?.reason == "record shown refers to the record with VALIDATE")
    }

    @Test("a holder that came to refer to the name after the deletion does not let its target go")
    func laterHolder() throws {
        try install(2) { $0.fields.append(FieldDefinition(name: "many", type: FieldType(.reference, isList: true))) }
        let zone = Fixture.annsDefault
        func save(_ name: String, _ fields: [(String, FieldValue?)]) throws {
            #expect(try modify([.make(.forceUpdate, name, fields)], in: zone, version: 2).codes == [nil])
        }
        try save("root", [])
        try save("source", [("many", Self.to(["root"], .deleteSelf))])
        #expect(try modify([.make(.forceDelete, "root")], in: zone, version: 2).codes == [nil])
        try save("holder", [("list", .reference(Reference(recordName: "source", action: .validate)))])
        try save("holder", [("many", Self.to(["root"], .deleteSelf))])
        try shard.maintain()
        #expect(try shard.lookup("source", in: zone) != nil)
        #expect(try shard.lookup("holder", in: zone) != nil)
    }

    @Test("a reset leaves nothing to scrub")
    func resetWithoutScrub() throws {
        _ = try shard.one(zone, .make(.create, "a", [("plain", .string("x"))]))
        var without = Fixture.note
        without.fields.removeAll { $0.name == "plain" }
        try shard.apply(Fixture.install(2, Schema(types: [without]), generation: 1))
        #expect(try shard.count("SELECT count(*) FROM stray") == 0)
        #expect(try shard.count("SELECT count(*) FROM job WHERE kind = 4") == 0)
        try shard.maintain()
        for table in ["record", "index_number", "index_bytes", "index_missing"] {
            #expect(try shard.count("SELECT count(*) FROM \(table)") == 0)
        }
    }

    @Test("a removed type that comes back at once comes without its records, which feeds show as deleted")
    func typeComesBack() throws {
        for number in 0..<3 { _ = try shard.one(zone, RecordChange(.create, "s\(number)", type: "Secret")) }
        try shard.apply(Fixture.install(2, Schema(types: [Fixture.note])))
        #expect(try shard.apply(Fixture.install(3)) == .schemaInstalled)
        #expect(try shard.lookup("s1", in: zone) == nil)
        #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 1") == 3)
        #expect(try modify([RecordChange(.create, "s1", type: "Secret")], version: 3).codes == [nil])
        try shard.maintain()
        #expect(try shard.lookup("s1", in: zone) != nil)
        let stored = try shard.rowsOfIndexes()
        try shard.remakeIndexes()
        #expect(try shard.rowsOfIndexes() == stored)
    }
}
