import Authorization
import GRDB
import RecordModel
import Testing

@testable import RecordStore

@Suite("records/query: a page's work is bounded")
struct QueryWorkTests {
    /// 48 records with lists of 2,000 numbers each, which a query asks 31 questions about.
    private func heavyWorld() throws -> QueryWorld {
        let world = try QueryWorld()
        for number in 0..<48 {
            let members = (0..<2_000).map { FieldValue.int64(Int64(number * 7 + $0)) }
            _ = try world.shard.one(
                Fixture.annsDefault,
                .make(
                    .create, "r\(number)",
                    [("nums", .list(.int64, members)), ("half", .int64(1)), ("rank", .int64(Int64(number)))]))
        }
        return world
    }

    private func heavyQuery(_ sorts: [Sort]) -> Query {
        let absent = FieldValue.list(.int64, (0..<250).map { .int64(Int64(-1 - $0)) })
        return Query(
            recordType: "Note",
            filters: Array(
                repeating: Filter(field: "nums", comparator: .notListContainsAny, value: absent), count: 31)
                + [Filter(field: "half", comparator: .equals, value: .int64(1))], sorts: sorts)
    }

    @Test(
        "a query of many filters over long lists ends its pages early, and finds everything once",
        arguments: [[], [Sort(field: "rank", isAscending: false)], [Sort(field: "half"), Sort(field: "rank")]])
    func heavy(_ sorts: [Sort]) throws {
        let world = try heavyWorld()
        let query = heavyQuery(sorts)
        var tuning = QueryTuning()
        tuning.workMax = 200_000
        let found = try world.found(query, zone: ZoneKey.defaultZoneName, limit: 200, tuning: tuning)
        #expect(found.refusal == nil && found.names.count == 48 && Set(found.names).count == 48)
        #expect(found.names == (try world.found(query, zone: ZoneKey.defaultZoneName, limit: 200)).names)
        let wide = try world.found(query, limit: 200, tuning: tuning)
        #expect(wide.refusal == nil && wide.names == found.names)
    }

    @Test("a page that goes on in another way has each record once")
    func otherWay() throws {
        let world = try QueryWorld()
        for number in 0..<40 {
            let fields: [(String, FieldValue?)] = [("half", .int64(1)), ("rank", .int64(Int64(number % 10)))]
            _ = try world.shard.one(Fixture.annsDefault, .make(.create, "r\(number)", fields))
        }
        let query = Query(
            recordType: "Note",
            filters: [
                Filter(field: "half", comparator: .equals, value: .int64(1)),
                Filter(field: "rank", comparator: .lessThan, value: .int64(2)),
            ])
        // Two of eight rows under the one key are found before the few in the range of the other are sorted.
        var tuning = QueryTuning()
        tuning.walkedFirst = 8
        let found = try world.found(query, zone: ZoneKey.defaultZoneName, limit: 200, tuning: tuning)
        let wanted = [0, 1, 10, 11, 20, 21, 30, 31].map { "\(ZoneKey.defaultZoneName)/r\($0)" }
        #expect(found.refusal == nil && found.names == wanted)
    }

    @Test("a page exceeds its work by no more than two records", arguments: [1, 50_000, 200_000, 1_000_000])
    func bound(_ workMax: Int) throws {
        let world = try heavyWorld()
        for sorts in [[], [Sort(field: "rank")], [Sort(field: "half"), Sort(field: "rank")]] {
            let request = RecordQuery(
                zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, query: heavyQuery(sorts), limit: 200)
            let one = try world.shard.queue.read { try spend(request, 0, of: world, in: $0).spent }
            let page = try world.shard.queue.read { try spend(request, workMax, of: world, in: $0) }
            #expect(page.found > 0 && page.spent <= workMax + 2 * one, "\(page), one record takes \(one)")
        }
    }

    /// What one page takes, and how many records it has.
    private func spend(
        _ request: RecordQuery, _ bound: Int, of world: QueryWorld, in db: Database
    ) throws -> (spent: Int, found: Int) {
        let rows = Rows(db: db)
        let schemaRow = try #require(try rows.schema(request.zone.database))
        let databaseID = try #require(try rows.databaseID(request.zone.database, schemaID: schemaRow.id))
        let zone = try #require(try rows.latestZone(databaseID: databaseID, name: request.zone.name))
        let schema = try world.shard.tables.installedSchema(schemaRow, in: db)
        let reader = try QueryReader(
            request.query, caller: request.caller, database: request.zone.database, schema: schema, in: db)
        let work = QueryWork(bound: bound)
        var run = try QueryRun(
            reader, zone: zone, limit: request.limit, after: nil, bounds: QueryRun.Bounds(work: work))
        _ = try run.collect()
        return (work.spent, run.found.count)
    }

    @Test("records that are decimetres from each other are read in parts, in the order of their distances")
    func closePlaces() throws {
        let world = try QueryWorld()
        let members = (0..<2_000).map { FieldValue.int64(Int64($0)) }
        for number in 0..<40 {
            // About 11 cm each.
            let place = Location(latitude: 48 + Double(number * 17 % 40) * 0.000_001, longitude: 2)
            _ = try world.shard.one(
                Fixture.annsDefault,
                .make(.create, "r\(number)", [("nums", .list(.int64, members)), ("place", .location(place))]))
        }
        let sort = Sort(field: "place", relativeLocation: Location(latitude: 48, longitude: 2))
        let query = Query(recordType: "Note", sorts: [sort])
        let request = RecordQuery(
            zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, query: query, limit: 200)
        let all = try world.shard.queue.read { try spend(request, 10_000_000, of: world, in: $0) }
        #expect(all.found == 40)
        let part = try world.shard.queue.read { try spend(request, 10_000, of: world, in: $0) }
        #expect(part.found > 0 && part.spent < all.spent / 2, "\(part) of \(all)")
        var tuning = QueryTuning()
        tuning.workMax = 10_000
        let found = try world.found(query, zone: ZoneKey.defaultZoneName, limit: 200, tuning: tuning)
        #expect(found.names == (0..<40).map { "\(ZoneKey.defaultZoneName)/r\(($0 * 33) % 40)" })
    }

    @Test("a page over many zones with heavy records is full: zones whose turn does not come are not read")
    func manyZones() throws {
        let world = try QueryWorld()
        let members = (0..<2_000).map { FieldValue.int64(Int64($0)) }
        for zone in 0..<40 {
            let key = ZoneKey(database: Fixture.annsData, name: "z\(100 + zone)")
            try world.shard.zone(.create, key)
            for number in 0..<3 {
                // The last zones come first.
                let rank = FieldValue.int64(Int64(number * 100 - zone))
                _ = try world.shard.one(
                    key, .make(.create, "r\(number)", [("nums", .list(.int64, members)), ("rank", rank)]))
            }
        }
        var tuning = QueryTuning()
        tuning.workMax = 200_000
        var request = DatabaseQuery(
            database: Fixture.annsData, schemaVersion: 1, caller: Fixture.ann,
            query: Query(recordType: "Note", sorts: [Sort(field: "rank")]), limit: 20)
        var (ranks, sizes) = ([Int64](), [Int]())
        repeat {
            let outcome = try world.shard.queue.unsafeRead { db in
                try QueryTuning.$current.withValue(tuning) {
                    try RecordReads(world.shard.tables, in: db).query(request)
                }
            }
            guard case .found(let page) = outcome else { throw Unexpected("\(outcome)") }
            for item in page.items { if case .int64(let rank)? = item.record.fields["rank"] { ranks.append(rank) } }
            sizes.append(page.items.count)
            request.cursor = page.next
        } while request.cursor != nil && sizes.count < 20
        #expect(sizes.prefix(6) == [20, 20, 20, 20, 20, 20] && sizes.dropFirst(6).allSatisfy { $0 == 0 }, "\(sizes)")
        #expect(ranks == ranks.sorted() && ranks.count == 120)
    }

    @Test("keys are made once a record, however many filters ask for them")
    func keysOnce() throws {
        let index = try #require(
            IndexDesign.all(of: FieldDefinition(name: "l", type: FieldType(.int64, isList: true), indexes: .queryable))
                .first.map { InstalledIndex(id: 1, design: $0, isReady: true) })
        let stamp = Stamp(timestamp: 0, user: "_ann")
        let members = (0..<1_000).map { FieldValue.int64($0) }
        let work = QueryWork(bound: .max)
        var record = KeyedRecord(
            IndexedRecord(
                name: "a", sequence: 1, created: stamp, modified: stamp,
                fields: Fields([Fields.Field(name: "l", value: .list(.int64, members))])),
            work: work)
        _ = record.keys(in: index)
        let once = work.spent
        #expect(once >= 1_000)
        for _ in 0..<31 { _ = record.keys(in: index) }
        #expect(work.spent == once)
    }

    @Test("sorted keys are searched as if one by one")
    func search() {
        var random = Random(5)
        for _ in 0..<2_000 {
            func number() -> IndexKey { .number(.random(in: 0..<12, using: &random)) }
            func position() -> KeyPosition? {
                [nil, .before(number()), .after(number()), .before(number()), .after(number())].randomElement(
                    using: &random) ?? nil
            }
            let keys = Set((0..<Int.random(in: 0...6, using: &random)).map { _ in number() }).sorted()
            let range = KeyRange(lower: position(), upper: position())
            #expect(keys.first(in: range) == keys.first { range.contains($0) })
            let key = number()
            #expect(keys.holds(key) == keys.contains(key))
        }
    }

    @Test("the ranges that two lists of them share are those of each with each")
    func ranges() {
        var random = Random(6)
        for _ in 0..<2_000 {
            func list() -> [KeyRange] {
                KeyRange.union(
                    (0..<Int.random(in: 0...4, using: &random)).compactMap { _ in
                        let low = Int64.random(in: 0..<20, using: &random)
                        let high = low + .random(in: 0..<5, using: &random)
                        return KeyRange(
                            lower: Int.random(in: 0..<6, using: &random) == 0 ? nil : .before(.number(low)),
                            upper: Int.random(in: 0..<6, using: &random) == 0 ? nil : .after(.number(high)))
                    })
            }
            let (left, right) = (list(), list())
            let each = left.flatMap { range in right.compactMap { range.intersection($0) } }
            #expect(KeyRange.common(left, right) == each)
        }
    }
}

@Suite("Pages that are rendered")
struct PageRoomTests {
    private let world: QueryWorld
    private let zone = QueryWorld.key("a")
    private let names = (0..<9).map { "r\($0)" }

    init() throws {
        world = try QueryWorld()
        for (number, name) in names.enumerated() {
            _ = try world.shard.one(zone, .make(.create, name, [("rank", .int64(Int64(number)))]))
        }
    }

    @Test("a query's page ends before the record that there is no room for, the next begins with it", arguments: 0...4)
    func query(_ room: Int) throws {
        let query = Query(recordType: "Note", sorts: [Sort(field: "rank")])
        var (found, pages): ([String], Int) = ([], 0)
        var cursor: [UInt8]?
        repeat {
            var left = room
            let request = RecordQuery(
                zone: zone, schemaVersion: 1, caller: Fixture.ann, query: query, limit: 200, cursor: cursor)
            let outcome = try world.shard.queue.read { db in
                try RecordReads(world.shard.tables, in: db).query(request) { _ in
                    left -= 1
                    return left >= 0
                }
            }
            guard case .found(let page) = outcome else { break }
            found += page.records.map(\.name)
            cursor = page.next
            pages += 1
        } while cursor != nil && pages < 20
        #expect(found == names && pages == (8 + max(room, 1)) / max(room, 1))
    }

    @Test("so does a feed's", arguments: 0...4)
    func feed(_ room: Int) throws {
        var (told, pages): ([String], Int) = ([], 0)
        var token: [UInt8]?
        var hasMore = true
        while hasMore, pages < 20 {
            var left = room
            let request = ZoneChangesRequest(
                zone: zone, schemaVersion: 1, caller: Fixture.ann, token: token, limit: 200)
            let outcome = try world.shard.queue.read { db in
                try ChangeReads(world.shard.tables, in: db).zoneChanges(request) { _ in
                    left -= 1
                    return left >= 0
                }
            }
            guard case .found(let page) = outcome else { break }
            for case .record(let record) in page.records { told.append(record.name) }
            (token, hasMore) = (page.token, page.moreComing)
            pages += 1
        }
        #expect(told == names && pages == (8 + max(room, 1)) / max(room, 1))
    }
}
