import Authorization
import GRDB
import RecordModel
import Testing

@testable import RecordStore

@Suite("zones, batches, permissions, retries and schemas")
struct RulesTests {
    let shard: Fixture
    init() throws { shard = try Fixture() }

    @Test("an atomic batch in a custom zone happens wholly or not at all")
    func atomic() throws {
        _ = try shard.zone(.create, Fixture.work)
        let before = try shard.stateBytes()
        let outcome = try shard.modify(
            Fixture.work, atomic: true, .make(.create, "a"),
            .make(.update, "b", tag: ChangeTag(incarnation: 1, sequence: 1)))
        guard case .atomicFailure = outcome else { Issue.record("\(outcome)"); return }
        #expect(outcome.codes == [.atomicError, .notFound])
        #expect(try shard.stateBytes().suffix(20) == before.suffix(20))
        #expect(try shard.lookup("a", in: Fixture.work) == nil)
        #expect(
            try shard.modify(Fixture.work, atomic: true, .make(.create, "a"), .make(.create, "b")).codes == [nil, nil])
        #expect(try shard.modify(Fixture.work, .make(.create, "c"), .make(.create, "a")).codes == [nil, .exists])
        #expect(try shard.lookup("c", in: Fixture.work) != nil)
    }

    @Test("in default zones and public data, operations stand alone whatever was asked")
    func independent() throws {
        for zone in [Fixture.annsDefault, Fixture.publicZone] {
            let outcome = try shard.modify(zone, atomic: true, .make(.create, "a"), RecordChange(.create, "b"))
            #expect(outcome.codes == [nil, .badRequest])
        }
    }

    @Test("custom zones must be created, the default zone is there, public data has no other")
    func zones() throws {
        #expect(try shard.modify(Fixture.work, .make(.create, "a")).refusal?.code == .zoneNotFound)
        let made = RecordOutcome.zone(.exists(ZoneState(name: "work", incarnation: 1, sequence: 0)))
        #expect(try shard.zone(.create, Fixture.work) == made)
        #expect(try shard.modify(Fixture.work, .make(.create, "a")).codes == [nil])
        #expect(
            try shard.zone(.create, Fixture.work)
                == .zone(.exists(ZoneState(name: "work", incarnation: 1, sequence: 1))))
        #expect(try shard.zone(.create, Fixture.annsDefault).refusal?.code == .badRequest)
        #expect(try shard.zone(.delete, Fixture.annsDefault).refusal?.code == .badRequest)
        #expect(try shard.zone(.create, Fixture.publicZone).refusal?.code == .badRequest)
        #expect(try shard.zone(.create, Fixture.work, by: Fixture.bob).refusal?.code == .accessDenied)
        let other = ZoneKey(database: Fixture.publicData, name: "other")
        #expect(try shard.modify(other, .make(.create, "a")).refusal?.code == .zoneNotFound)
        let zones = try shard.queue.read { try RecordReads(shard.tables, in: $0).zones(of: Fixture.annsData) }
        #expect(zones.map(\.name) == ["work"])
        let implicit = try shard.queue.read { try RecordReads(shard.tables, in: $0).zone(Fixture.annsDefault) }
        #expect(implicit == ZoneState(name: "_defaultZone", incarnation: 0, sequence: 0))
    }

    @Test("a deleted zone's rows go in steps, and its next life has a greater incarnation")
    func recreation() throws {
        _ = try shard.zone(.create, Fixture.work)
        for number in 0..<100 { _ = try shard.one(Fixture.work, .make(.create, "r\(number)", [("rank", .int64(1))])) }
        #expect(try shard.zone(.delete, Fixture.work) == .zone(.deleted))
        #expect(try shard.zone(.delete, Fixture.work).refusal?.code == .zoneNotFound)
        #expect(try shard.lookup("r1", in: Fixture.work) == nil)
        #expect(
            try shard.zone(.create, Fixture.work)
                == .zone(.exists(ZoneState(name: "work", incarnation: 2, sequence: 0))))
        let tag = ChangeTag(incarnation: 1, sequence: 2)
        #expect(try shard.one(Fixture.work, .make(.create, "r1", [("rank", .int64(1))]))?.saved != nil)
        #expect(try shard.one(Fixture.work, .make(.delete, "r1", tag: tag))?.error?.code == .conflict)
        #expect(try shard.names(Fixture.work, Query(recordType: "Note")) == ["r1"])
        var counts = [try shard.count("SELECT count(*) FROM record")]
        while try shard.apply(.maintain(Maintain(time: 0, rowsMax: 16))) == .maintained(hasMore: true) {
            counts.append(try shard.count("SELECT count(*) FROM record"))
        }
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 - $1 <= 16 && $0 > $1 })
        counts.append(try shard.count("SELECT count(*) FROM record"))
        #expect(counts.last == 1)
        #expect(try shard.count("SELECT count(*) FROM index_number WHERE value = 1 AND zone = 1") == 0)
        #expect(try shard.count("SELECT count(*) FROM zone") == 1)
    }

    @Test("a new incarnation changes every tag, and later zones keep above it")
    func restore() throws {
        _ = try shard.zone(.create, Fixture.work)
        let saved = try #require(try shard.one(Fixture.work, .make(.create, "a"))?.saved)
        try shard.queue.write { try RecordTables.startNewIncarnation(50, in: $0) }
        #expect(try shard.one(Fixture.work, .make(.delete, "a", tag: saved.changeTag))?.error?.code == .conflict)
        #expect(try shard.lookup("a", in: Fixture.work)?.changeTag == ChangeTag(incarnation: 50, sequence: 1))
        #expect(try shard.one(Fixture.annsDefault, .make(.create, "a"))?.saved?.changeTag.incarnation == 50)
        try shard.queue.write { try RecordTables.startNewIncarnation(.max, in: $0) }
        _ = try shard.zone(.delete, Fixture.work)
        guard case .zone(.exists(let zone)) = try shard.zone(.create, Fixture.work) else { return }
        #expect(zone.incarnation > 1 << 62)
    }

    @Test("public grants: anyone reads, users create, creators change")
    func publicGrants() throws {
        let zone = Fixture.publicZone
        #expect(try shard.one(zone, by: Caller(user: nil), .make(.create, "a"))?.error?.code == .accessDenied)
        #expect(try shard.one(zone, .make(.create, "a"))?.saved != nil)
        let tag = ChangeTag(incarnation: 1, sequence: 1)
        for kind in [RecordChange.Kind.update, .replace, .delete, .forceUpdate, .forceDelete] {
            let denied = try shard.one(zone, by: Fixture.bob, .make(kind, "a", tag: tag))
            #expect(denied?.error?.code == .accessDenied, "\(kind)")
        }
        #expect(try shard.lookup("a", in: zone, by: Caller(user: nil)) != nil)
        #expect(try shard.one(zone, .make(.update, "a", [("rank", .int64(1))], tag: tag))?.saved != nil)
        #expect(try shard.one(zone, RecordChange(.create, "b", type: "Bare"))?.error?.code == .accessDenied)
    }

    @Test("what a caller may not read is not shown by errors, lookups or queries")
    func unreadable() throws {
        let zone = Fixture.publicZone
        let mine = RecordChange(.create, "a", type: "Secret")
        _ = try shard.one(zone, mine)
        let clash = try shard.one(zone, by: Fixture.bob, mine)
        #expect(clash?.error?.code == .exists && clash?.serverRecord == nil)
        #expect(try shard.lookup("a", in: zone, by: Fixture.bob) == nil)
        _ = try shard.one(zone, by: Fixture.bob, RecordChange(.create, "b", type: "Secret"))
        let query = Query(recordType: "Secret")
        #expect(try shard.names(zone, query) == ["a"])
        #expect(try shard.names(zone, query, by: Fixture.bob) == ["b"])
        #expect(try shard.names(zone, query, by: Caller(user: "_eve")) == [])
        guard case .refused(let error) = try shard.query(zone, Query(recordType: "Bare")) else {
            throw Unexpected("not refused")
        }
        #expect(error.code == .accessDenied)
    }

    @Test("a private database is its owner's alone")
    func privateData() throws {
        #expect(
            try shard.modify(Fixture.annsDefault, by: Fixture.bob, .make(.create, "a")).refusal?.code == .accessDenied)
        #expect(try shard.one(Fixture.annsDefault, RecordChange(.create, "a", type: "Bare"))?.saved != nil)
        guard case .refused = try shard.query(Fixture.annsDefault, Query(recordType: "Note"), by: Fixture.bob) else {
            throw Unexpected("not refused")
        }
        #expect(try shard.lookup("a", in: Fixture.annsDefault, by: Fixture.bob) == nil)
    }

    func key(_ byte: UInt8, hash: UInt8 = 1, caller: String = "_ann", at time: Int64? = nil) -> IdempotencyKey {
        var key = [UInt8](repeating: byte, count: 16)
        key[6] = 0x40
        if let time {
            key[6] = 0x70
            for place in 0..<6 { key[place] = UInt8(truncatingIfNeeded: time >> Int64(40 - 8 * place)) }
        }
        return IdempotencyKey(key: key, bodyHash: [UInt8](repeating: hash, count: 32), caller: caller)
    }

    @Test("a request repeated with its key is applied once")
    func idempotency() throws {
        let zone = Fixture.annsDefault
        let first = try shard.modify(zone, idempotency: key(1), .make(.create, "a"))
        #expect(first.codes == [nil])
        #expect(try shard.modify(zone, idempotency: key(1), .make(.create, "a")) == first)
        // The answer stays under another schema version.
        _ = try shard.apply(Fixture.install(2))
        #expect(try shard.modify(zone, version: 1, idempotency: key(1), .make(.create, "a")) == first)
        #expect(
            try shard.modify(zone, version: 2, idempotency: key(1, hash: 2), .make(.create, "a")).refusal?.code
                == .badRequest)
        #expect(
            try shard.modify(zone, version: 2, idempotency: key(1, caller: "other"), .make(.create, "a")).codes == [
                .exists
            ])
    }

    @Test("outcomes are kept 24 hours of shard time; then maintenance removes them, and their keys are too old")
    func expiry() throws {
        let zone = Fixture.annsDefault
        let day: Int64 = 86_400_000
        for number in 0..<25 {
            _ = try shard.modify(zone, time: 0, idempotency: key(UInt8(number)), .make(.forceDelete, "x"))
        }
        let dated = key(30, at: 1)
        _ = try shard.modify(zone, time: 2, idempotency: dated, .make(.forceDelete, "x"))
        #expect(try shard.count("SELECT count(*) FROM idempotency") == 26)
        #expect(try shard.count("SELECT count(*) FROM idempotency_use") == 1)
        #expect(try shard.queue.read { try RecordTables.hasWork(now: day - 1, in: $0) } == false)
        #expect(try shard.queue.read { try RecordTables.hasWork(now: day, in: $0) })
        try shard.setTime(day + 10)
        for left in [16, 6, 0] {
            let outcome = try shard.apply(.maintain(Maintain(time: day, rowsMax: 10)))
            #expect(outcome == .maintained(hasMore: left > 0))
            #expect(try shard.count("SELECT count(*) FROM idempotency") == left)
        }
        #expect(try shard.count("SELECT count(*) FROM idempotency_use") == 0)
        // What was forgotten is not done again, whatever the clock of the command says.
        #expect(
            try shard.modify(zone, time: 2, idempotency: dated, .make(.create, "a")).refusal?.code == .badRequest)
        #expect(try shard.modify(zone, time: 2, idempotency: key(31, at: 2), .make(.forceDelete, "x")).codes == [nil])
        let now = 10 * day
        let old = try shard.modify(zone, time: now, idempotency: key(1, at: now - day - 1), .make(.create, "a"))
        #expect(old.refusal?.code == .badRequest)
        let ahead = try shard.modify(zone, time: now, idempotency: key(1, at: now + day + 1), .make(.create, "a"))
        #expect(ahead.refusal?.code == .badRequest)
        #expect(try shard.modify(zone, time: now, idempotency: key(1, at: now), .make(.create, "a")).codes == [nil])
    }

    @Test("a command or query under another schema version is sent back")
    func versions() throws {
        let empty = try Fixture(installs: false)
        #expect(try empty.modify(Fixture.annsDefault, .make(.create, "a")) == .needsSchema(installed: 0))
        #expect(try shard.modify(Fixture.annsDefault, version: 2, .make(.create, "a")) == .needsSchema(installed: 1))
        #expect(
            try shard.query(Fixture.annsDefault, Query(recordType: "Note"), version: 2) == .needsSchema(installed: 1))
        #expect(try shard.apply(Fixture.install(5)) == .schemaInstalled)
        #expect(try shard.apply(Fixture.install(5)) == .schemaInstalled)
        #expect(try shard.apply(Fixture.install(4)) == .needsSchema(installed: 5))
        #expect(try shard.modify(Fixture.annsDefault, version: 1, .make(.create, "a")) == .needsSchema(installed: 5))
        #expect(
            try shard.query(Fixture.annsDefault, Query(recordType: "Note"), version: 1)
                == .found(QueryPage(records: [], next: nil)))
    }

    @Test("a new index is filled from the records, a dropped one loses its rows")
    func backfill() throws {
        let zone = Fixture.annsDefault
        for number in 0..<3 {
            _ = try shard.one(zone, .make(.create, "r\(number)", [("plain", .string("p\(2 - number)"))]))
        }
        _ = try shard.one(zone, .make(.create, "none"))
        let byPlain = Query(recordType: "Note", sorts: [Sort(field: "plain")])
        guard case .refused(let error) = try shard.query(zone, byPlain) else { Issue.record("not refused"); return }
        #expect(error.code == .badRequest && error.reason.hasPrefix("Field 'plain' is not marked sortable"))
        var note = Fixture.note
        note.fields = note.fields.map { $0.name == "plain" ? Fixture.indexed("plain", $0.type) : $0 }
        _ = try shard.apply(Fixture.install(2, Schema(types: [note, Fixture.secret, Fixture.bare])))
        #expect(try shard.names(zone, byPlain, limit: 1) == ["none", "r2", "r1", "r0"])
        _ = try shard.apply(Fixture.install(3, Schema(types: [Fixture.bare])))
        #expect(try shard.lookup("r1", in: zone) == nil)
        #expect(try shard.apply(Fixture.install(4, Schema(types: [note]))) == .schemaInstalled)
        try shard.maintain()
        for table in ["index_number", "index_bytes", "index_missing", "stray", "job"] {
            #expect(try shard.count("SELECT count(*) FROM \(table)") == 0)
        }
        #expect(try shard.names(zone, byPlain) == [])
    }
}
