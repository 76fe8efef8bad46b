import Authorization
import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("A command changes a bounded number of rows")
struct BoundedRowsTests {
    private static let wide = schema(1_000)

    private static func schema(_ fields: Int) -> Schema {
        Schema(types: [
            RecordType(
                name: "Wide",
                fields: (0..<fields).map {
                    FieldDefinition(name: "f\($0)", type: FieldType(.string), indexes: .queryable)
                }, grants: [Grant(role: "_icloud", permissions: .create)])
        ])
    }

    private func shard(_ schema: Schema = wide) throws -> Fixture {
        let shard = try Fixture(installs: false)
        #expect(try shard.apply(Fixture.install(1, schema)) == .schemaInstalled)
        return shard
    }

    private func save(
        _ kind: RecordChange.Kind, _ names: Range<Int>, in shard: Fixture, zone: ZoneKey = Fixture.annsDefault,
        atomic: Bool = false, version: UInt64 = 1, at level: FeatureLevel
    ) throws -> RecordOutcome {
        try shard.apply(
            .modifyRecords(
                ModifyRecords(
                    zone: zone, schemaVersion: version, caller: Fixture.ann, time: 1, isAtomic: atomic,
                    operations: names.map { RecordChange(kind, "r\($0)", type: "Wide") })), at: level)
    }

    @Test("a request of empty records with a thousand indexes stops short, and from before its level it does not")
    func saves() throws {
        let old = try shard()
        #expect(try save(.create, 0..<200, in: old, at: .notifications).codes == Array(repeating: nil, count: 200))
        let shard = try shard()
        let codes = try save(.create, 0..<200, in: shard, at: .boundedRows).codes
        #expect(codes == Array(repeating: nil, count: 99) + Array(repeating: .badRequest, count: 101))
        #expect(try shard.count("SELECT count(*) FROM index_missing") == 99_000)
        // Nothing changes where nothing is written.
        #expect(try save(.forceUpdate, 0..<99, in: shard, at: .boundedRows).codes == Array(repeating: nil, count: 99))
    }

    @Test("an atomic one of too many rows saves nothing")
    func atomic() throws {
        let shard = try shard()
        _ = try shard.apply(.modifyZone(ModifyZone(.create, zone: Fixture.work, caller: Fixture.ann, time: 1)))
        let outcome = try save(.create, 0..<100, in: shard, zone: Fixture.work, atomic: true, at: .boundedRows)
        guard case .atomicFailure = outcome else { Issue.record("\(outcome)"); return }
        #expect(try shard.count("SELECT count(*) FROM record") == 0)
        #expect(
            try save(.create, 0..<99, in: shard, zone: Fixture.work, atomic: true, at: .boundedRows).codes
                == Array(repeating: nil, count: 99))
    }

    @Test("what is deleted counts with its index rows")
    func deletions() throws {
        let shard = try shard()
        _ = try save(.create, 0..<120, in: shard, at: .notifications)
        let codes = try save(.forceDelete, 0..<120, in: shard, at: .boundedRows).codes
        #expect(codes == Array(repeating: nil, count: 99) + Array(repeating: .badRequest, count: 21))
        #expect(try save(.forceDelete, 99..<120, in: shard, at: .boundedRows).codes.allSatisfy { $0 == nil })
        #expect(try shard.count("SELECT count(*) FROM index_missing") == 0)
    }

    @Test("what goes along with a record goes in parts where its index rows are too many, and before its level at once")
    func cascades() throws {
        var tree = Self.schema(999)
        tree.types[0].fields.append(FieldDefinition(name: "parent", type: FieldType(.reference)))
        tree.types[0].grants.append(Grant(role: "_creator", permissions: .write))
        for (level, isAtOnce) in [(FeatureLevel.changeTimes, true), (.boundedDeletions, false)] {
            let shard = try shard(tree)
            _ = try shard.apply(.modifyZone(ModifyZone(.create, zone: Fixture.work, caller: Fixture.ann, time: 1)))
            _ = try save(.create, 0..<1, in: shard, zone: Fixture.work, at: level)
            let parent = FieldValue.reference(Reference(recordName: "r0", action: .deleteSelf))
            for first in [1, 81, 161] {
                let children = (first..<first + 80).map { number in
                    RecordChange(
                        .create, "r\(number)", type: "Wide",
                        fields: [RecordChange.FieldChange(name: "parent", value: parent)])
                }
                let command = ModifyRecords(
                    zone: Fixture.work, schemaVersion: 1, caller: Fixture.ann, time: 1, operations: children)
                #expect(try shard.apply(.modifyRecords(command), at: level).codes.allSatisfy { $0 == nil })
            }
            #expect(try save(.forceDelete, 0..<1, in: shard, zone: Fixture.work, at: level).codes == [nil])
            var rows = try shard.count("SELECT count(*) FROM index_missing")
            #expect(rows == (isAtOnce ? 0 : 240 * 999))
            var parts = 0
            while try shard.apply(.maintain(Maintain(time: 1)), at: level) == .maintained(hasMore: true) {
                let now = try shard.count("SELECT count(*) FROM index_missing")
                #expect(rows - now < 50_000)
                (rows, parts) = (now, parts + 1)
            }
            #expect(try shard.count("SELECT count(*) FROM index_missing") == 0)
            #expect(try shard.count("SELECT count(*) FROM record WHERE deleted = 0") == 0)
            #expect(isAtOnce ? parts == 0 : parts > 4)
        }
    }

    @Test("the edge refuses such a request before it is logged, and never a single record")
    func edge() {
        func refusal(_ count: Int, _ fields: Int) -> ErrorCode? {
            let changes = (0..<count).map { RecordChange(.create, "r\($0)", type: "Wide") }
            return WrittenRows(changes, schema: Self.schema(fields)).refusal?.code
        }
        #expect(refusal(200, 1_000) == .badRequest)
        #expect(refusal(200, 499) == nil)
        #expect(refusal(200, 500) == .badRequest)
        #expect(refusal(1, 1_000) == nil)
    }

    @Test("new indexes of many records are filled by maintenance, some rows at a time")
    func indexes() throws {
        let shard = try shard(Self.schema(1))
        _ = try save(.create, 0..<150, in: shard, at: .boundedRows)
        #expect(try shard.apply(Fixture.install(2, Self.wide), at: .boundedRows) == .schemaInstalled)
        var rows = try shard.count("SELECT count(*) FROM index_missing")
        #expect(rows == 150)
        var isDone = false
        while !isDone {
            let outcome = try shard.apply(.maintain(Maintain(time: 1, rowsMax: 5_000)), at: .boundedRows)
            isDone = outcome == .maintained(hasMore: false)
            let now = try shard.count("SELECT count(*) FROM index_missing")
            // A record's rows come together.
            #expect(now - rows < 5_000 + 999)
            rows = now
        }
        #expect(rows == 150 * 1_000)
        // Few enough rows are filled at once.
        #expect(try shard.apply(Fixture.install(3, Self.schema(999)), at: .boundedRows) == .schemaInstalled)
        #expect(try shard.apply(Fixture.install(4, Self.wide), at: .boundedRows) == .schemaInstalled)
        #expect(try shard.count("SELECT count(*) FROM field_index WHERE state = 0") == 0)
    }

    @Test("a field comes back once its former values are gone, which one command may not remove all of")
    func strays() throws {
        func schema(hasText: Bool) -> Schema {
            let text = hasText ? [FieldDefinition(name: "text", type: FieldType(.string))] : []
            let number = FieldDefinition(name: "number", type: FieldType(.int64))
            return Schema(types: [
                RecordType(
                    name: "Wide", fields: text + [number], grants: [Grant(role: "_icloud", permissions: .create)])
            ])
        }
        let shard = try shard(schema(hasText: true))
        let large = String(repeating: "x", count: 1_000_000)
        for number in 0..<30 {
            let operation = RecordChange(
                .create, "r\(number)", type: "Wide",
                fields: [RecordChange.FieldChange(name: "text", value: .string(large))])
            let outcome = try shard.modify(Fixture.annsDefault, operation)
            #expect(outcome.codes == [nil])
        }
        #expect(try shard.apply(Fixture.install(2, schema(hasText: false)), at: .boundedRows) == .schemaInstalled)
        func largeRecords() throws -> Int { try shard.count("SELECT count(*) FROM record WHERE length(body) > 1000") }
        #expect(try largeRecords() == 30)
        let back = Fixture.install(3, schema(hasText: true))
        guard case .refused(let error) = try shard.apply(back, at: .boundedRows) else {
            Issue.record("installed at once")
            return
        }
        #expect(error.code == .tryAgainLater && error.retryAfterSeconds == 1)
        let left = try largeRecords()
        #expect(left > 0 && left < 30)
        // The version is still the one before, and each try does a part.
        #expect(try save(.create, 99..<100, in: shard, version: 2, at: .boundedRows).codes == [nil])
        #expect(try shard.apply(back, at: .boundedRows) == .schemaInstalled)
        #expect(try largeRecords() == 0)
    }
}
