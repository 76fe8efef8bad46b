import Authorization
import GRDB
import RecordModel
import Testing
import Wire

@testable import RecordStore

@Suite("changes of zones and databases")
struct FeedTests {
    let shard: Fixture
    let zone = Fixture.work
    init() throws {
        shard = try Fixture(zone: Fixture.work)
    }

    func save(_ names: String..., type: String = "Note") throws {
        for name in names { _ = try shard.one(zone, RecordChange(.forceUpdate, name, type: type)) }
    }

    func page(
        _ token: [UInt8]? = nil, limit: Int = 200, reverse: Bool = false, types: [String]? = nil,
        zone: ZoneKey = Fixture.work, by caller: Caller = Fixture.ann, version: UInt64 = 1
    ) throws -> ReadOutcome<ZoneChangesPage> {
        let request = ZoneChangesRequest(
            zone: zone, schemaVersion: version, caller: caller, token: token, limit: limit, isReverse: reverse,
            recordTypes: types)
        return try shard.queue.read { try ChangeReads(shard.tables, in: $0).zoneChanges(request) }
    }

    func found(_ outcome: ReadOutcome<ZoneChangesPage>) throws -> ZoneChangesPage {
        guard case .found(let page) = outcome else { throw ServiceError(.internalError, "\(outcome)") }
        return page
    }

    func names(_ page: ZoneChangesPage) -> [String] {
        page.records.map { entry in
            switch entry {
            case .record(let record): record.name
            case .deleted(let name, _, _): "-" + name
            }
        }
    }

    func reason<Answer>(_ outcome: ReadOutcome<Answer>) -> String {
        guard case .refused(let error) = outcome else { return "" }
        return error.code == .badRequest ? error.reason : error.code.rawValue
    }

    @Test("each record shows once, in its latest state at its latest place, deletions as tombstones")
    func latest() throws {
        try save("a", "b", "c")
        _ = try shard.one(zone, .make(.forceUpdate, "a", [("rank", .int64(2))]))
        _ = try shard.one(zone, .make(.forceDelete, "b"))
        let all = try found(page())
        #expect(names(all) == ["c", "a", "-b"])
        #expect(!all.moreComing)
        #expect(all.records.last == .deleted(name: "b", type: "Note", changeTag: .init(incarnation: 1, sequence: 5)))
        let none = try found(page(all.token))
        #expect(none == ZoneChangesPage(records: [], token: all.token, moreComing: false))
        try save("d")
        #expect(try names(found(page(all.token))) == ["d"])
    }

    @Test("pages of every size hold the same, and their tokens can be kept")
    func pages() throws {
        for number in 0..<9 { try save("r\(number)") }
        for limit in 1...10 {
            var token: [UInt8]?
            var seen: [String] = []
            while true {
                let page = try found(page(token, limit: limit))
                #expect(page.records.count <= limit)
                seen += names(page)
                token = page.token
                if !page.moreComing { break }
            }
            #expect(seen == (0..<9).map { "r\($0)" })
            #expect(token == ZoneToken.current(zone, ZoneState(name: "work", incarnation: 1, sequence: 9)))
        }
        #expect(try found(page(limit: 0)).records.count == 1)
    }

    @Test("a reverse walk goes from the newest down, keeps its direction, and ends where forward goes on")
    func reverse() throws {
        try save("a", "b", "c", "d")
        let first = try found(page(limit: 3, reverse: true))
        #expect(names(first) == ["d", "c", "b"] && first.moreComing)
        // What changes meanwhile comes afterwards.
        try save("a", "e")
        let second = try found(page(first.token, limit: 3, reverse: false))
        #expect(names(second) == [] && !second.moreComing)
        let rest = try found(page(second.token))
        #expect(names(rest) == ["a", "e"])
        try save("f", "g")
        #expect(try names(found(page(rest.token, reverse: true))) == ["g", "f"])
    }

    @Test("only the types asked for, with their tombstones")
    func types() throws {
        try save("a", "b")
        try save("s", "t", type: "Secret")
        _ = try shard.one(zone, .make(.forceDelete, "a"))
        _ = try shard.one(zone, .make(.forceDelete, "s"))
        #expect(try names(found(page(types: ["Secret"]))) == ["t", "-s"])
        #expect(try names(found(page(types: []))) == [])
    }

    @Test("a zone recreated, restored or reset ends its tokens with the reason; so does a purge that they need")
    func expiry() throws {
        try save("a", "b", "c")
        let token = try found(page(limit: 2)).token
        let differs = "client knowledge differs from server knowledge"
        try shard.queue.write { try RecordTables.startNewIncarnation(5, in: $0) }
        #expect(reason(try page(token)).hasPrefix(differs))
        let restored = try found(page()).token
        try shard.zone(.delete, zone)
        #expect(reason(try page(restored)) == "ZONE_NOT_FOUND")
        try shard.zone(.create, zone)
        #expect(reason(try page(restored)).hasPrefix(differs))
        try save("a", "b", "c")
        let known = try found(page(limit: 1))
        let all = try found(page())
        _ = try shard.one(zone, .make(.forceDelete, "a"))
        try save("d")
        try shard.maintain(retention: Retention(tombstonesMax: 0))
        #expect(reason(try page(known.token)).contains("tombstones"))
        #expect(reason(try page(all.token)).contains("tombstones"))
        #expect(try names(found(page())) == ["b", "c", "d"])
        // Who began after the purge needs none of those tombstones, page by page.
        #expect(try names(found(page(try found(page(limit: 1)).token))) == ["c", "d"])
        #expect(try names(found(page(try found(page(limit: 1, reverse: true)).token))) == ["c", "b"])
    }

    @Test("tombstones go when they are too old or too many, the oldest first")
    func purge() throws {
        for number in 0..<10 { try save("r\(number)") }
        for number in 0..<10 { _ = try shard.one(zone, time: Int64(5000 + number), .make(.forceDelete, "r\(number)")) }
        #expect(try shard.queue.read { try RecordTables.hasWork(now: 90 * 86_400_000 + 5000, in: $0) } == false)
        #expect(try shard.queue.read { try RecordTables.hasWork(now: 90 * 86_400_000 + 5001, in: $0) })
        try shard.maintain(rows: 2, retention: Retention(tombstonesMax: 7))
        #expect(try names(found(page())) == (3..<10).map { "-r\($0)" })
        // Shard time is 5009.
        try shard.maintain(rows: 1, retention: Retention(tombstoneAgeMax: 1))
        #expect(try names(found(page())) == ["-r8", "-r9"])
        #expect(try shard.count("SELECT tombstones FROM zone WHERE name = 'work'") == 2)
        // Where several go at once, a token from between them has missed the later ones.
        try save("x", "y")
        _ = try shard.one(zone, .make(.forceDelete, "x"))
        let between = try found(page()).token
        _ = try shard.one(zone, .make(.forceDelete, "y"))
        try shard.maintain(retention: Retention(tombstonesMax: 0))
        #expect(reason(try page(between)).contains("tombstones"))
    }

    @Test("who has a token of the empty zone knows what it made since, and needs its tombstones")
    func emptyZoneToken() throws {
        let empty = try found(page()).token
        try save("a")
        _ = try shard.one(zone, .make(.forceDelete, "a"))
        #expect(try names(found(page(empty))) == ["-a"])
        try shard.maintain(retention: Retention(tombstonesMax: 0))
        #expect(reason(try page(empty)).contains("tombstones"))
        #expect(try names(found(page())) == [])
    }

    @Test("a page ends after so many bytes, also of records that are not wanted")
    func unwantedBytes() throws {
        for number in 0..<6 {
            let text = FieldValue.string(String(repeating: "x", count: 900_000))
            _ = try shard.one(zone, .make(.create, "n\(number)", [("plain", text)]))
        }
        try save("s", type: "Secret")
        let first = try found(page(types: ["Secret"]))
        #expect(first.records.isEmpty && first.moreComing)
        #expect(try names(found(page(first.token, types: ["Secret"]))) == ["s"])
    }

    @Test("bytes that are no token, a token of another zone and default zones are refused")
    func refusals() throws {
        try shard.zone(.create, ZoneKey(database: Fixture.annsData, name: "home"))
        try save("a")
        let unknown = "Unknown sync continuation type"
        let token = try found(page()).token
        for bytes in [[1], [0xFF], Array(token.dropLast()), token + [0], Array("garbage".utf8)] as [[UInt8]] {
            #expect(reason(try page(bytes)).hasPrefix(unknown), "\(bytes)")
        }
        let other = ZoneKey(database: Fixture.annsData, name: "home")
        #expect(reason(try page(token, zone: other)).hasPrefix(unknown))
        #expect(reason(try page(zone: Fixture.annsDefault)).contains("AppDefaultZone"))
        #expect(reason(try page(by: Fixture.bob)) == "ACCESS_DENIED")
        #expect(try page(version: 2) == .needsSchema(installed: 1))
        #expect(try names(found(page([]))) == ["a"])
        var future = ZoneToken(zone: zone, incarnation: 1, sequence: 99)
        #expect(reason(try page(future.encoded())).contains("future"))
        future.sequence = .max
        #expect(reason(try page(future.encoded())).contains("future"))
    }

    @Test("any bytes are a token or are refused")
    func fuzz() throws {
        try save("a", "b", "c")
        var random = Random(5)
        var token = ZoneToken(zone: zone, incarnation: 1, sequence: 0)
        for _ in 0..<3000 {
            token.sequence = UInt64.random(in: 0...4, using: &random)
            token.reverse = Bool.random(using: &random) ? .init(low: token.sequence, high: 3, position: 2) : nil
            token.since = Bool.random(using: &random) ? UInt64.random(in: 0...4, using: &random) : nil
            var bytes = token.encoded()
            if Bool.random(using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            switch try page(bytes, limit: 1, reverse: Bool.random(using: &random)) {
            case .found(let page): #expect(try ZoneToken(decoding: page.token).encoded() == page.token)
            case .refused(let error): #expect(error.code == .badRequest)
            case .needsSchema: Issue.record("needs a schema")
            }
        }
    }

    func changes(
        _ page: DatabaseChangesPage? = nil, limit: Int = 200, by caller: Caller = Fixture.ann,
        of database: DatabaseKey = Fixture.annsData
    ) throws -> ReadOutcome<DatabaseChangesPage> {
        let request = DatabaseChangesRequest(
            database: database, schemaVersion: 1, caller: caller, incarnation: page?.incarnation ?? 0,
            after: page?.position ?? 0, limit: limit)
        return try shard.queue.read { try ChangeReads(shard.tables, in: $0).databaseChanges(request) }
    }

    func foundZones(_ outcome: ReadOutcome<DatabaseChangesPage>) throws -> DatabaseChangesPage {
        guard case .found(let page) = outcome else { throw ServiceError(.internalError, "\(outcome)") }
        return page
    }

    @Test("the database's feed shows zones that changed, deleted ones as such, and recreated ones as they are")
    func database() throws {
        func key(_ name: String) -> ZoneKey { ZoneKey(database: Fixture.annsData, name: name) }
        try shard.zone(.create, key("a"))
        try shard.zone(.create, key("b"))
        let all = try foundZones(changes())
        #expect(all.zones.map(\.state.name) == ["work", "a", "b"])
        #expect(try foundZones(changes(all)).zones.isEmpty)
        _ = try shard.one(key("a"), .make(.create, "r"))
        _ = try shard.one(Fixture.annsDefault, .make(.create, "r"))
        // A request that changes nothing is no change.
        _ = try shard.one(key("b"), .make(.forceDelete, "nothing"))
        #expect(try foundZones(changes(all)).zones.map(\.state.name) == ["a"])
        try shard.zone(.delete, key("b"))
        try shard.zone(.delete, zone)
        try shard.zone(.create, zone)
        let later = try foundZones(changes(all))
        #expect(later.zones.map(\.state.name) == ["a", "b", "work"])
        #expect(later.zones.map(\.isDeleted) == [false, true, false])
        #expect(later.zones.map(\.state.incarnation) == [1, 1, 2])
        try shard.maintain()
        #expect(try foundZones(changes(all)).zones == later.zones)
        #expect(try foundZones(changes()).zones.map(\.state.name) == ["a", "work"])
        var walked: [String] = []
        var page = all
        repeat {
            page = try foundZones(changes(page, limit: 1))
            walked += page.zones.map(\.state.name)
        } while page.hasMore
        #expect(walked == ["a", "b", "work"])
        #expect(page.position == later.position)
    }

    @Test("who has a token from before any zone is told of the deletion of one that it may have made since")
    func deletedSince() throws {
        let bobs = DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_bob")
        let before = try foundZones(changes(by: Fixture.bob, of: bobs))
        for kind in [ModifyZone.Kind.create, .delete] {
            _ = try shard.zone(kind, ZoneKey(database: bobs, name: "notes"), by: Fixture.bob)
        }
        let since = try foundZones(changes(before, by: Fixture.bob, of: bobs))
        #expect(since.zones.map(\.state.name) == ["notes"] && since.zones.allSatisfy(\.isDeleted))
        #expect(try foundZones(changes(by: Fixture.bob, of: bobs)).zones.isEmpty)
    }

    @Test("a restored or reset database ends its tokens; public data and strangers are refused")
    func databaseExpiry() throws {
        let all = try foundZones(changes())
        try shard.queue.write { try RecordTables.startNewIncarnation(7, in: $0) }
        #expect(reason(try changes(all)).hasPrefix("client knowledge differs from server knowledge"))
        let restored = try foundZones(changes())
        #expect(restored.zones.map(\.state.incarnation) == [7] && restored.incarnation == 7)
        try shard.apply(Fixture.install(2, generation: 1))
        #expect(reason(try changes(restored)).hasPrefix("client knowledge differs from server knowledge"))
        #expect(try foundZones(changes()).zones.isEmpty)
        #expect(reason(try changes(by: Fixture.bob)) == "ACCESS_DENIED")
        #expect(!reason(try changes(of: Fixture.publicData)).isEmpty)
        let bobs = DatabaseKey(container: "app", environment: .production, scope: .private, owner: "_bob")
        let empty = try foundZones(changes(by: Fixture.bob, of: bobs))
        #expect(empty == DatabaseChangesPage(zones: [], incarnation: 7, position: 0, hasMore: false))
    }
}
