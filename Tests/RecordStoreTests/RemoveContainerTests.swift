import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("Removing what is left of a container")
struct RemoveContainerTests {

    private func remove(
        _ fixture: Fixture, rowsMax: Int = 500, level: FeatureLevel = FeatureLevel.supported.upperBound
    ) throws -> Bool {
        try fixture.queue.write { db in
            let transaction = try fixture.tables.begin(in: db, level: level)
            let isDone = try transaction.removeContainer("app", rowsMax: rowsMax)
            try transaction.finish()
            return isDone
        }
    }

    private func counts(_ fixture: Fixture) throws -> [String: Int] {
        try fixture.queue.read { db in
            try Dictionary(
                uniqueKeysWithValues: [
                    "record", "zone", "database", "edge", "idempotency", "record_type", "field_index", "index_number",
                    "index_bytes", "index_missing", "job", "ledger", "ledger_share", "stray",
                ].map { ($0, try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") ?? -1) })
        }
    }

    private func save(_ name: String, in zone: ZoneKey, version: UInt64 = 1, _ fixture: Fixture) throws {
        let change = RecordChange(
            .create, name, type: "Note", fields: [.init(name: "text", value: .string("x"))])
        let outcome = try fixture.modify(zone, version: version, change)
        guard case .records(let items) = outcome, case .saved? = items.first else {
            Issue.record("\(name) was not saved: \(outcome)")
            return
        }
    }

    @Test("a purge ends tokens of its container alone, from its level on", arguments: [14, 15] as [UInt64])
    func othersTokens(level: UInt64) throws {
        let fixture = try Fixture()
        let other = InstallSchema(
            container: "other", environment: .production, version: 1, generation: 0, schema: Fixture.schema)
        #expect(try fixture.apply(.installSchema(other)) == .schemaInstalled)
        // Nothing was ever saved to these.
        let (own, others) = (
            DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_bob"),
            DatabaseKey(container: "other", environment: .production, scope: .private, owner: "_bob")
        )
        func changes(of database: DatabaseKey, since last: DatabaseChangesPage?) throws -> DatabaseChangesPage? {
            let request = DatabaseChangesRequest(
                database: database, schemaVersion: 1, caller: Fixture.bob, incarnation: last?.incarnation ?? 0,
                after: last?.position ?? 0)
            let outcome = try fixture.queue.read { try ChangeReads(fixture.tables, in: $0).databaseChanges(request) }
            if case .found(let page) = outcome { return page }
            return nil
        }
        let first = try #require(try changes(of: own, since: nil))
        let kept = try #require(try changes(of: others, since: nil))
        try fixture.zone(.create, Fixture.work)
        try save("a", in: Fixture.work, fixture)
        while try !remove(fixture, level: FeatureLevel(level)) { try fixture.maintain() }
        #expect(try fixture.apply(Fixture.install(1)) == .schemaInstalled)
        #expect(try changes(of: own, since: first) == nil)
        #expect(try changes(of: others, since: kept) == (level < 15 ? nil : kept))
        // A restore begins above it, and what comes is of the life that its users were told of.
        let later = try #require(try changes(of: own, since: nil))
        #expect(try fixture.queue.read { try RecordTables.newestIncarnation(in: $0) } == later.incarnation)
        try fixture.zone(.create, ZoneKey(database: own, name: "mine"), by: Fixture.bob)
        #expect(try changes(of: own, since: later)?.zones.map(\.state.name) == ["mine"])
    }

    @Test("every row goes in bounded parts, those of other containers stay", arguments: [1, 2, 500])
    func removed(rowsMax: Int) throws {
        let fixture = try Fixture()
        let empty = try counts(Fixture(installs: false))
        try fixture.zone(.create, Fixture.work)
        for number in 0..<20 { try save("n\(number)", in: Fixture.work, fixture) }
        try save("p", in: Fixture.publicZone, fixture)
        try fixture.zone(.delete, Fixture.work)
        try fixture.zone(.create, Fixture.work)
        try save("again", in: Fixture.work, fixture)
        var parts = 0
        while try !remove(fixture, rowsMax: rowsMax) {
            parts += 1
            try fixture.maintain(rows: 10)
            try #require(parts < 100)
        }
        #expect(parts > 0)
        #expect(try counts(fixture) == empty)
        // Once more changes nothing.
        let before = try fixture.queue.read { try Row.fetchAll($0, sql: "SELECT * FROM schema") }
        #expect(try remove(fixture))
        #expect(try fixture.queue.read { try Row.fetchAll($0, sql: "SELECT * FROM schema") } == before)
    }

    @Test("a container that gets the name later begins anew: no token, tag or schema of the old life fits")
    func again() throws {
        let fixture = try Fixture()
        _ = try fixture.apply(Fixture.install(7, Fixture.schema, generation: 3))
        try fixture.zone(.create, Fixture.work)
        try save("a", in: Fixture.work, version: 7, fixture)
        let old = try #require(try fixture.queue.read { try RecordReads(fixture.tables, in: $0).zone(Fixture.work) })
        while try !remove(fixture) { try fixture.maintain() }
        #expect(try fixture.apply(Fixture.install(1)) == .schemaInstalled)
        #expect(try fixture.queue.read { try RecordReads(fixture.tables, in: $0).zone(Fixture.work) } == nil)
        try fixture.zone(.create, Fixture.work)
        #expect(try fixture.lookup("a", in: Fixture.work) == nil)
        let new = try #require(try fixture.queue.read { try RecordReads(fixture.tables, in: $0).zone(Fixture.work) })
        #expect(new.incarnation > old.incarnation && new.sequence == 0)
        try save("a", in: Fixture.work, fixture)
        // A reset of the new life counts, though the old one had more of them.
        #expect(try fixture.apply(Fixture.install(2, Fixture.schema, generation: 1)) == .schemaInstalled)
        #expect(try fixture.queue.read { try RecordReads(fixture.tables, in: $0).zone(Fixture.work) } == nil)
    }

    @Test("a container that the shard never saw is removed at once")
    func unknown() throws {
        let fixture = try Fixture(installs: false)
        #expect(try remove(fixture))
    }
}
