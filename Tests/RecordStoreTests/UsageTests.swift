import Authorization
import GRDB
import RecordModel
import Testing
import Wire

@testable import RecordStore

@Suite("usage: what counters and recounts tell")
struct UsageTests {
    @Test("databases come by scope and owner, page by page; recounts equal the counters")
    func pages() throws {
        let shard = try Fixture()
        for name in ["c", "a", "b"] {
            let key = DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_" + name)
            let zone = ZoneKey(database: key, name: ZoneKey.defaultZoneName)
            _ = try shard.modify(zone, by: Caller(user: key.owner), .note(.create, "r", name), .note(.create, "s"))
        }
        _ = try shard.modify(Fixture.publicZone, .note(.create, "p"))
        var found: [DatabaseUsage] = []
        var request = UsageRequest(container: "app", environment: .production, detail: .recount)
        for _ in 0..<2 {
            #expect(try UsageRequest(decoding: request.encoded()) == request)
            let page = try shard.queue.read {
                try UsageCounts.databases(request, limits: UsageLimits(databases: 2), in: $0)
            }
            #expect(page.databases.count == 2)
            #expect(try UsagePage(decoding: page.encoded()) == page)
            found += page.databases
            request.after = page.next
        }
        #expect(request.after == nil)
        #expect(found.map(\.key.owner) == [DatabaseKey.publicOwner, "_a", "_b", "_c"])
        let size = Fixture.size("r", "a", by: "_a") + Fixture.size("s", "", by: "_a")
        #expect(found[1].used == QuotaAmounts(bytes: size, records: 2))
        #expect(found.allSatisfy { $0.recount == $0.used && $0.unattributed == .zero })
        let other = try shard.queue.read {
            try UsageCounts.databases(UsageRequest(container: "app", environment: .development), in: $0)
        }
        #expect(other == UsagePage(databases: [], hasMore: false))
    }

    @Test("records are counted by type, zone by zone, and sums by scope; what is deleted does not count")
    func types() throws {
        let shard = try Fixture(zone: Fixture.work)
        _ = try shard.modify(Fixture.work, .note(.create, "r", "é"), .note(.create, "gone"))
        _ = try shard.modify(Fixture.work, .make(.forceDelete, "gone"))
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "r"), .note(.create, "s"))
        let key = Fixture.annsData
        var request = UsageRequest(container: key.container, environment: key.environment, detail: .types)
        var found: [(zone: String, types: [TypeUsage])] = []
        repeat {
            #expect(try UsageRequest(decoding: request.encoded()) == request)
            let page = try shard.queue.read {
                try UsageCounts.databases(request, limits: UsageLimits(records: 1), in: $0)
            }
            #expect(try UsagePage(decoding: page.encoded()) == page)
            found += page.databases.flatMap { $0.zones.map { ($0.name, $0.types) } }
            request.after = page.next
        } while request.after != nil
        #expect(found.map(\.zone).sorted() == [ZoneKey.defaultZoneName, Fixture.work.name].sorted())
        let work = try #require(found.first { $0.zone == Fixture.work.name }?.types)
        #expect(work.map(\.name) == ["Note"] && work.map(\.records) == [1])
        let counted = try shard.queue.read { db in
            try Int64.fetchOne(
                db,
                sql: """
                    SELECT sum(64 + length(CAST(r.name AS BLOB)) + length(r.body)) FROM record r
                    JOIN zone z ON z.id = r.zone WHERE r.deleted = 0 AND z.name = ?
                    """, arguments: [Fixture.work.name])
        }
        #expect(work.map(\.bytes) == [counted])
        let fields = try shard.queue.read {
            try UsageCounts.databases(
                UsageRequest(container: key.container, environment: key.environment, detail: .fields), in: $0)
        }
        #expect(try UsagePage(decoding: fields.encoded()) == fields)
        let byField = fields.databases.flatMap { $0.zones.flatMap { $0.types.map(\.byField) } }
        #expect(byField.flatMap(\.self).filter { $0.name == "plain" }.map(\.records).sorted() == [1, 2])
        let sums = try shard.queue.read {
            try UsageCounts.sums(
                UsageRequest(container: key.container, environment: key.environment, detail: .sums), in: $0)
        }
        #expect(sums.databases.map(\.key.scope) == [.private] && sums.next == nil)
        #expect(sums.databases.first?.used.records == 3)
        #expect(try sums.databases.first?.used == shard.used())
    }

    @Test(
        "a database with more zones or records than a page takes goes on in the next",
        arguments: [UsageLimits(zones: 1), UsageLimits(zones: 2), UsageLimits(zones: 3), UsageLimits(records: 1)])
    func zonePages(limits: UsageLimits) throws {
        let shard = try Fixture(zone: Fixture.work)
        _ = try shard.modify(Fixture.work, .note(.create, "r"))
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "r"), .note(.create, "s"))
        _ = try shard.modify(Fixture.publicZone, .note(.create, "p"))
        let key = Fixture.annsData
        for asksForOne in [false, true] {
            var request = UsageRequest(container: key.container, environment: key.environment, detail: .recount)
            request.database = asksForOne ? key : nil
            var zones: [String] = []
            var pages = 0
            repeat {
                let page = try shard.queue.read { try UsageCounts.databases(request, limits: limits, in: $0) }
                zones += page.databases.flatMap { database in
                    database.zones.map { "\(database.key.scope.rawValue) \($0.name) \($0.recount == $0.used)" }
                }
                #expect(page.databases.filter { $0.key == key }.allSatisfy { $0.used.records == 3 })
                #expect(page.databases.reduce(0) { $0 + $1.zones.count } <= limits.zones)
                #expect(try UsagePage(decoding: page.encoded()) == page)
                if let next = page.next {
                    #expect(try UsagePosition(decoding: next.encoded()) == next)
                    #expect(request.after.map { $0 < next } ?? true)
                }
                request.after = page.next
                pages += 1
            } while request.after != nil && pages < 9
            let own = ["private _defaultZone true", "private work true"]
            #expect(zones == (asksForOne ? [] : ["public _defaultZone true"]) + own)
        }
    }

    @Test("positions are by scope, owner and zone, the end of a database last")
    func positions() {
        func position(_ scope: Scope, _ owner: String, _ zone: String?) -> UsagePosition {
            UsagePosition(
                database: DatabaseKey(container: "c", environment: .production, scope: scope, owner: owner), zone: zone)
        }
        let sorted = [
            position(.public, "z", nil), position(.private, "a", "x"), position(.private, "a", "y"),
            position(.private, "a", nil), position(.private, "b", "a"), position(.shared, "a", nil),
        ]
        for (place, left) in sorted.enumerated() {
            for (other, right) in sorted.enumerated() { #expect((left < right) == (place < other)) }
        }
    }

    @Test("zones are told by name; without a recount none is told")
    func zones() throws {
        let shard = try Fixture(zone: Fixture.work)
        _ = try shard.modify(Fixture.work, .note(.create, "r"))
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "r"), .note(.create, "s"))
        let usage = try shard.queue.read { try UsageCounts.database(Fixture.annsData, in: $0) }
        #expect(usage.zones.map(\.name) == [ZoneKey.defaultZoneName, "work"])
        #expect(usage.zones.map(\.used.records) == [2, 1])
        #expect(usage.recount == nil)
        let nobody = DatabaseKey(container: "x", environment: .production, scope: .private, owner: "_x")
        #expect(
            try shard.queue.read { try UsageCounts.database(nobody, in: $0) }
                == DatabaseUsage(key: nobody, used: .zero, allotted: .zero, zones: []))
    }

    @Test("a recount finds what a counter lost")
    func wrongCounter() throws {
        let shard = try Fixture()
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "r", "text"))
        try shard.queue.write { try $0.execute(sql: "UPDATE record SET body = substr(body, 2) WHERE name = 'r'") }
        let usage = try shard.usage()
        #expect(usage.recount == usage.used - QuotaAmounts(bytes: 1))
    }

    @Test("a recount finds a database's counter that is not the sum of its zones'")
    func wrongDatabaseCounter() throws {
        let shard = try Fixture()
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "r", "text"))
        try shard.queue.write { try $0.execute(sql: "UPDATE database SET bytes = bytes + 7") }
        let page = try shard.queue.read {
            try UsageCounts.databases(UsageRequest(of: Fixture.annsData, detail: .recount), in: $0)
        }
        #expect(page.databases.map(\.unattributed) == [QuotaAmounts(bytes: 7)])
        #expect(try UsagePage(decoding: page.encoded()) == page)
    }

    @Test("counters, allotments and ledgers are part of the hashed state")
    func hashed() throws {
        let shard = try Fixture()
        _ = try shard.modify(Fixture.annsDefault, .note(.create, "r"))
        let grant = QuotaGrant(
            ledger: Fixture.annsData, shard: 3, want: QuotaAmounts(bytes: 5), need: .zero, received: .zero,
            cap: .unlimited, epoch: 1, time: 1)
        _ = try shard.apply(.quota(.grant(grant)))
        for column in [
            "zone SET bytes", "zone SET records", "database SET bytes", "database SET records", "database SET epoch",
            "database SET received_bytes", "database SET returned_records", "database SET overdrawn",
            "ledger SET cap_bytes",
            "ledger SET transfer", "ledger_share SET granted_bytes", "ledger_share SET returned_bytes",
        ] {
            let before = try shard.stateBytes()
            try shard.queue.write { try $0.execute(sql: "UPDATE \(column) = 77") }
            #expect(try shard.stateBytes() != before, "\(column)")
        }
    }

    @Test("the state of a ledger survives its bytes")
    func ledgerBytes() throws {
        let state = LedgerState(
            shares: [
                .init(shard: 3, granted: QuotaAmounts(bytes: 9, records: 8), returned: QuotaAmounts(bytes: 7)),
                .init(shard: .max, granted: .greatest, returned: .zero),
            ], cap: .unlimited, epoch: 4, transferMonth: 202611, transferBytes: .max)
        #expect(try LedgerState(decoding: state.encoded()) == state)
        #expect(state.free == .unlimited - state.outstanding)
    }
}
