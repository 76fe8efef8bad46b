import Authorization
import GRDB
import RecordModel
import Testing
import Wire

@testable import RecordStore

@Suite("Other spellings of a name, and large schemas")
struct SpellingTests {
    /// A record in the public database of a container.
    private static func save(_ container: String, _ name: String) -> RecordCommand {
        let database = DatabaseKey(
            container: container, environment: .production, scope: .public, owner: DatabaseKey.publicOwner)
        return .modifyRecords(
            ModifyRecords(
                zone: ZoneKey(database: database, name: ZoneKey.defaultZoneName), schemaVersion: 1, caller: Fixture.ann,
                time: 1_000, operations: [RecordChange.make(.create, name)]))
    }

    @Test("commands for two spellings of a container leave the same tables, however many share a transaction")
    func transactions() throws {
        let (name, alias) = ("iCloud.com.example.Kite", "iCloud.com.example.\u{212A}ite")
        #expect(name == alias)
        let installs = [name, alias].map {
            RecordCommand.installSchema(
                InstallSchema(container: $0, environment: .production, version: 1, schema: Fixture.schema))
        }
        let commands = installs + [Self.save(name, "a"), Self.save(alias, "b"), Self.save(name, "c")]
        let together = try Fixture(installs: false)
        try together.queue.write { db in
            let transaction = try together.tables.begin(in: db)
            for command in commands { _ = try transaction.apply(command) }
            try transaction.finish()
        }
        let apart = try Fixture(installs: false)
        for command in commands { try apart.apply(command) }
        #expect(try together.stateBytes() == apart.stateBytes())
        let counts = "SELECT count(*) FROM record r JOIN zone z ON z.id = r.zone JOIN database d ON d.id = z.database "
        #expect(try together.count(counts + "JOIN schema s ON s.id = d.schema WHERE s.container = '\(name)'") == 2)
        #expect(try together.count(counts + "JOIN schema s ON s.id = d.schema WHERE s.container = '\(alias)'") == 1)
    }

    @Test("a schema's indexes find their rows in one look each, in whatever order they lie")
    func looks() throws {
        let types = (0..<20).map { number in
            RecordType(
                name: "T\(number)",
                fields: (0..<50).map { field in
                    FieldDefinition(name: "f\(field)", type: FieldType(.string), indexes: [.queryable, .searchable])
                })
        }
        let designs = types.enumerated().flatMap { number, type in
            IndexDesign.all(of: type).map { (typeID: Int64(number), design: $0) }
        }
        #expect(designs.count == 2_000)
        let rows = designs.reversed().enumerated().map { place, wanted in
            IndexRow(
                id: Int64(place), typeID: wanted.typeID, name: wanted.design.name,
                purpose: wanted.design.purpose.rawValue, shape: wanted.design.shape,
                state: place == 7 ? IndexLife.dropped : IndexLife.ready, job: 0)
        }
        var table = IndexRowTable(rows)
        var found: [Int64] = []
        for (typeID, design) in designs.dropLast(10) {
            if let row = table.take(design, of: typeID) { found.append(row.id) }
        }
        #expect(found == (10..<2_000).reversed().map { Int64($0) })
        #expect(table.rest.map(\.id) == [0, 1, 2, 3, 4, 5, 6, 8, 9], "what is left, without the dropped one")
        #expect(table.take(designs[0].design, of: designs[0].typeID) == nil, "taken once")
        #expect(table.lookedAt <= rows.count + designs.count)
    }
}
