import Foundation
import GRDB
import RecordModel
import Testing
import Wire

@testable import RecordStore

@Suite("What subscriptions to queries are found by")
struct FiledSubscriptionTests {
    private let pair: Pair
    init() throws { pair = try Pair() }

    private func watcher(_ number: Int, _ filters: [Filter], type: String = "Note") -> Watcher {
        var subscription = Pair.query("s\(number)", rank: nil)
        subscription.recordType = type
        subscription.query = Query(recordType: type, filters: filters)
        return Watcher(subscriber: user("_u\(number)"), home: Pair.homeGroup, subscription: subscription)
    }

    private func user(_ name: String) -> DatabaseKey {
        DatabaseKey(container: "app", environment: .production, scope: .private, owner: name)
    }

    private func schema(_ shard: Fixture) throws -> InstalledSchema {
        try shard.queue.read { db in
            let row = try #require(try Rows(db: db).schema(container: "app", environment: .production))
            return try shard.tables.installedSchema(row, in: db)
        }
    }

    /// One whose notes have all kinds of indexes.
    private static func shard() throws -> Fixture {
        var type = RecordType(name: "Note", fields: QueryWorld.fields)
        type.grants = Fixture.note.grants
        let shard = try Fixture(installs: false)
        try shard.apply(Fixture.install(1, Schema(types: [type])))
        return shard
    }

    private func note(_ fields: [(String, FieldValue)], by user: String = "_bob") -> KeyedRecord {
        let stamp = Stamp(timestamp: 1_000, user: user)
        let record = IndexedRecord(
            name: "a", sequence: 1, created: stamp, modified: stamp,
            fields: Fields(fields.map { Fields.Field(name: $0.0, value: $0.1) }))
        return KeyedRecord(record, work: QueryWork(bound: .max))
    }

    /// Filters that the note of `found` does not pass, and what they are found by does not let them be looked at.
    private static let passed: [Filter] = [
        Filter(field: "rank", comparator: .equals, value: .int64(8)),
        Filter(field: "rank", comparator: .in, value: .list(.int64, [.int64(6), .int64(8)])),
        Filter(field: "rank", comparator: .lessThan, value: .int64(7)),
        Filter(field: "rank", comparator: .lessThanOrEquals, value: .int64(6)),
        Filter(field: "rank", comparator: .greaterThan, value: .int64(7)),
        Filter(field: "rank", comparator: .greaterThanOrEquals, value: .int64(8)),
        Filter(field: "score", comparator: .lessThan, value: .double(0)),
        Filter(field: "text", comparator: .beginsWith, value: .string("ab")),
        Filter(field: "tags", comparator: .listContains, value: .string("z")),
        Filter(field: "tags", comparator: .listContainsAny, value: .list(.string, [.string("y"), .string("z")])),
        Filter(field: "tags", comparator: .listContainsAll, value: .list(.string, [.string("z"), .string("q")])),
        Filter(field: "tags", comparator: .listMemberBeginsWith, value: .string("pq")),
        Filter(field: "___createdBy", comparator: .equals, value: .string("_ann")),
        Filter(
            field: "place", comparator: .near, value: .location(Location(latitude: 1, longitude: 1)), distance: 10),
        Filter(field: "body", comparator: .containsAllTokens, value: .string("red balloons")),
        Filter(field: nil, comparator: .containsAnyTokens, value: .string("balloons house*")),
    ]

    @Test("a subscription whose condition a record does not meet is not looked at", arguments: passed)
    func found(_ filter: Filter) throws {
        let schema = try schema(Self.shard())
        var queries = QueryWatchers()
        // What says nothing of its own does not change it.
        let other = Filter(field: "rank", comparator: .notEquals, value: .int64(3))
        for (number, filters) in [[filter], [other, filter], [filter, other]].enumerated() {
            queries.add(
                WatcherEntry(id: Int64(number), watcher(number, filters), schema: schema, at: .filedSubscriptions))
        }
        var note = note([
            ("rank", .int64(7)), ("score", .double(0)), ("text", .string("b")), ("body", .string("red car")),
            ("tags", .list(.string, [.string("a"), .string("p")])),
            ("place", .location(Location(latitude: 50, longitude: 1))),
        ])
        #expect(queries.candidates(for: &note, .created, after: -1, limit: 10).isEmpty)
        var empty = self.note([])
        #expect(queries.candidates(for: &empty, .created, after: -1, limit: 10).isEmpty)
    }

    @Test("places are told by the C library's sines only below feature level 14")
    func places() throws {
        let schema = try schema(Self.shard())
        let near = Filter(
            field: "place", comparator: .near, value: .location(Location(latitude: 1, longitude: 1)), distance: 10)
        let levels: [(FeatureLevel, Trigonometry)] = [(.presentHours, .library), (.ownTrigonometry, .own)]
        for (level, trigonometry) in levels {
            let entry = WatcherEntry(id: 1, watcher(1, [near]), schema: schema, at: level)
            guard case .near(let place, _, _)? = entry.conditions?.first?.test else {
                Issue.record("no condition")
                return
            }
            #expect(place.trigonometry == trigonometry && place.antipode.trigonometry == trigonometry)
        }
    }

    /// Negative filters that the note of `negated` does not pass, as it has what they do not want.
    private static let negative: [Filter] = [
        Filter(field: "rank", comparator: .notEquals, value: .int64(7)),
        Filter(field: "rank", comparator: .notIn, value: .list(.int64, [.int64(9), .int64(7), .int64(3)])),
        Filter(field: "text", comparator: .notBeginsWith, value: .string("b")),
        Filter(field: "tags", comparator: .notListContainsAny, value: .list(.string, [.string("a")])),
    ]

    @Test("a subscription is found by what a record has instead of what it must not have", arguments: negative)
    func negated(_ filter: Filter) throws {
        let schema = try schema(Self.shard())
        var queries = QueryWatchers()
        let entry = WatcherEntry(id: 1, watcher(1, [filter]), schema: schema, at: .filedNegations)
        queries.add(entry)
        func found(_ fields: [(String, FieldValue)]) -> Bool {
            var note = note(fields)
            return !queries.candidates(for: &note, .created, limit: 10).isEmpty
        }
        let unwanted: [(String, FieldValue)] = [
            ("rank", .int64(7)), ("text", .string("bc")), ("tags", .list(.string, [.string("a")])),
        ]
        #expect(!found(unwanted))
        #expect(found([("rank", .int64(8)), ("text", .string("c")), ("tags", .list(.string, [.string("b")]))]))
        #expect(found([("rank", .int64(2)), ("text", .string("a")), ("tags", .list(.string, [.string("0")]))]))
        #expect(found([]), "a record without a value passes")
        #expect(queries.remove(1) && !found([]))
    }

    @Test("two bounds of one field are one range; what no record meets is never looked at")
    func bounds() throws {
        let schema = try schema(pair.shard)
        func bound(_ comparator: RecordModel.Comparator, _ value: Int64) -> Filter {
            Filter(field: "rank", comparator: comparator, value: .int64(value))
        }
        var queries = QueryWatchers()
        for (id, filters) in [
            [bound(.greaterThan, 3), bound(.lessThan, 6)], [bound(.lessThan, 5), bound(.greaterThanOrEquals, 4)],
            [bound(.lessThan, 5), bound(.greaterThan, 6)],
        ].enumerated() {
            queries.add(WatcherEntry(id: Int64(id), watcher(id, filters), schema: schema, at: .filedSubscriptions))
        }
        let found = (2...7 as ClosedRange<Int64>).map { rank in
            var note = note([("rank", .int64(rank))])
            return queries.candidates(for: &note, .created, after: -1, limit: 10)
        }
        #expect(found == [[], [], [0, 1], [0], [], []])
    }

    @Test("who does not fire on what happened, and who may hear of own records only, is not looked at for others")
    func others() throws {
        let schema = try schema(pair.shard)
        var queries = QueryWatchers()
        for (id, firing) in [Subscription.Firing.create, .update, .delete].enumerated() {
            var watcher = watcher(id, [])
            watcher.subscription.firing = firing
            queries.add(WatcherEntry(id: Int64(id), watcher, schema: schema, at: .filedSubscriptions))
        }
        var note = note([])
        #expect(
            Match.Event.allCases.map { queries.candidates(for: &note, $0, after: -1, limit: 10) } == [[0], [1], [2]])
        var secrets = QueryWatchers()
        for id in 0..<3 {
            let entry = WatcherEntry(
                id: Int64(id), watcher(id, [], type: "Secret"), schema: schema, at: .filedSubscriptions)
            secrets.add(entry)
        }
        var secret = self.note([], by: "_u1")
        #expect(secrets.candidates(for: &secret, .updated, after: -1, limit: 10) == [1])
        #expect(secrets.remove(1) && !secrets.remove(1))
        #expect(secrets.candidates(for: &secret, .updated, after: -1, limit: 10).isEmpty)
    }

    @Test("ranges that hold a key are found, whatever came and went before", arguments: 1...4 as ClosedRange<UInt64>)
    func tree(seed: UInt64) {
        var random = Random(seed)
        var tree = RangeTree()
        var ranges: [Int64: KeyRange] = [:]
        func end() -> KeyPosition? {
            guard random.next() % 5 > 0 else { return nil }
            let key = IndexKey.number(Int64(random.next() % 20))
            return random.next() % 2 == 0 ? .before(key) : .after(key)
        }
        for _ in 0..<600 {
            let row = Int64(random.next() % 60)
            if let range = ranges.removeValue(forKey: row) {
                tree.remove(range, row)
            } else {
                let (lower, upper) = (end(), end())
                ranges[row] = KeyRange(lower: lower, upper: upper)
                tree.insert(KeyRange(lower: lower, upper: upper), row)
            }
            let key = IndexKey.number(Int64(random.next() % 20))
            var found: [Int64] = []
            tree.forEach(holding: key) { found.append($0) }
            #expect(found.sorted() == ranges.filter { $0.value.contains(key) }.keys.sorted())
        }
        for (row, range) in ranges { tree.remove(range, row) }
        #expect(tree.isEmpty)
    }

    @Test(
        "who is told of what, and in which order, does not depend on what subscriptions are found by",
        arguments: 1...6 as ClosedRange<UInt64>)
    func same(seed: UInt64) throws {
        var random = Random(seed)
        let levels: [FeatureLevel] = [
            .renewedSubscriptions, .filedSubscriptions, .filedNegations, .weighedSubscriptions,
        ]
        let shards = try levels.map { _ in try Self.shard() }
        func apply(_ body: (RecordTransaction) throws -> Void) throws {
            for (shard, level) in zip(shards, levels) { try shard.run(level: level, body) }
        }
        for number in 0..<300 {
            let filters = (0..<random.next() % 3 + 1).map { _ in QueryInputs.filter(&random) }
            var watcher = watcher(number, filters)
            watcher.subscription.firing = Subscription.Firing(rawValue: random.next() % 7 + 1)
            watcher.subscription.firesOnce = random.next() % 20 == 0
            let effects =
                random.next() % 10 == 0
                ? [Effect.unwatch(subscriber: user("_u\(number - 1)"), scope: .public, id: "s\(number - 1)")]
                : [.watch(watcher)]
            try apply {
                _ = try $0.deliver(
                    OutboxDelivery(source: 9, incarnation: 1, first: UInt64(number + 1), effects: effects))
            }
        }
        for time in 0..<150 as Range<Int64> {
            let name = "r\(random.next() % 30)"
            let fields = QueryInputs.fields(&random)
            let change: RecordChange =
                random.next() % 5 == 0 ? .make(.forceDelete, name) : .make(.forceUpdate, name, fields)
            let command = ModifyRecords(
                zone: Fixture.publicZone, schemaVersion: 1, caller: Fixture.bob, time: 1_000 + time,
                operations: [change])
            try apply { _ = try $0.apply(.modifyRecords(command)) }
        }
        let told = try shards.map { try $0.told() }
        #expect(told.allSatisfy { $0 == told[0] })
        #expect(told[0].count > 1_000, "the inputs are to meet: \(told[0].count)")
    }

    // MARK: Waiting

    private func install(_ watchers: [Watcher]) throws {
        let effects = watchers.map { Effect.watch($0) }
        try pair.shard.run {
            let receipt = try $0.deliver(OutboxDelivery(source: 9, incarnation: 1, first: 1, effects: effects))
            #expect(receipt.isTaken)
        }
    }

    private func save(_ name: String, _ zone: ZoneKey = Fixture.publicZone, type: String = "Note") throws {
        let change = RecordChange(.forceUpdate, name, type: type)
        let outcome = try pair.shard.one(zone, by: zone == Fixture.publicZone ? Fixture.bob : Fixture.ann, change)
        #expect(outcome?.saved != nil)
    }

    private func waiting() throws -> [String] {
        try pair.shard.queue.read { db in
            try String.fetchAll(db, sql: "SELECT container FROM matching_queue ORDER BY container")
        }
    }

    @Test("what many public subscriptions delay is not what others hear: of private data, or what nobody asked for")
    func lanes() throws {
        let all = Pair.query("all", rank: nil, scope: .private)
        let secret = (0..<3).map { watcher(2_000 + $0, [], type: "Secret") }
        try install(
            (0..<1_500).map { watcher($0, []) } + secret
                + [Watcher(subscriber: Fixture.annsData, home: Pair.homeGroup, subscription: all)])
        try save("a")
        #expect(try waiting() == ["app/p2"])
        let count = try pair.shard.told().count
        try save("nobody asks", type: "Secret")
        #expect(try pair.shard.count("SELECT count(*) FROM matching") == 1)
        try save("mine", Fixture.annsDefault)
        #expect(try pair.shard.told().count == count + 1, "a private database does not wait for the public one")
        try save("b")
        #expect(try pair.shard.count("SELECT count(*) FROM matching") == 2)
        let matches = try pair.shard.queue.read { try WaitingMatches(in: $0) }
        #expect(matches.count == 2 && matches.isReady)
        #expect(try pair.shard.maintain(time: 1_000, rows: 1) == 1, "it does not count in rows")
        #expect(try pair.shard.told().count == 3_001)
        #expect(try waiting().isEmpty)
    }

    @Test("subscriptions that take long to look at count for more, and the rest of them waits")
    func weighed() throws {
        let absent = FieldValue.list(.string, (0..<250).map { .string("x\($0)") })
        let passed = Filter(field: "tags", comparator: .notListContainsAny, value: absent)
        let failed = Filter(
            field: "tags", comparator: .notListContainsAll, value: .list(.string, [.string("t0"), .string("t1")]))
        let effects = (0..<100).map { Effect.watch(watcher($0, Array(repeating: passed, count: 8) + [failed])) }
        let fields: [(String, FieldValue?)] = [("tags", .list(.string, (0..<1_000).map { .string("t\($0)") }))]
        let command = ModifyRecords(
            zone: Fixture.publicZone, schemaVersion: 1, caller: Fixture.bob, time: 1_000,
            operations: [.make(.create, "a", fields)])
        for (level, waiting) in [(FeatureLevel.filedNegations, 0), (.weighedSubscriptions, 1)] {
            let shard = try Self.shard()
            try shard.run(level: level) {
                _ = try $0.deliver(OutboxDelivery(source: 9, incarnation: 1, first: 1, effects: effects))
                _ = try $0.apply(.modifyRecords(command))
            }
            #expect(try shard.count("SELECT count(*) FROM record") == 1)
            #expect(try shard.count("SELECT count(*) FROM matching") == waiting, "\(level)")
            try shard.maintain(time: 1_000)
            #expect(try shard.count("SELECT count(*) FROM matching") == 0)
        }
    }

    @Test("however many databases are watched, those with the most subscriptions stay in memory")
    func kept() throws {
        let cache = WatcherCache()
        let version = DatabaseWatchers.Version(revision: 1, schema: nil)
        func load(_ name: String, _ count: Int) throws -> Bool {
            var isLoaded = false
            _ = try cache.watchers(of: user(name), at: version) {
                isLoaded = true
                return DatabaseWatchers(
                    version: version, schema: .none, rows: (0..<count).map { (Int64($0), watcher($0, [])) })
            }
            return isLoaded
        }
        let many = (0..<8).map { "_many\($0)" }
        for name in many { #expect(try load(name, 5)) }
        for number in 0..<5_000 { #expect(try load("_u\(number)", 1)) }
        for name in many { #expect(try !load(name, 5), "\(name) is read again") }
    }

    @Test("changes that wait when databases get lanes of their own go on in their order")
    func divided() throws {
        let old = FeatureLevel.renewedSubscriptions
        try install((0..<1_500).map { watcher($0, []) })
        func make(_ name: String) throws {
            let command = ModifyRecords(
                zone: Fixture.publicZone, schemaVersion: 1, caller: Fixture.bob, time: 1_000,
                operations: [.make(.create, name)])
            try pair.shard.run(level: old) { _ = try $0.apply(.modifyRecords(command)) }
        }
        for name in ["a", "b"] { try make(name) }
        #expect(try waiting() == ["app"])
        #expect(try pair.shard.count("SELECT count(*) FROM outbox") == 1_000, "as earlier builds count")
        let hasWork = try pair.shard.queue.write {
            try RecordTables.raise(from: old, to: .filedSubscriptions, in: $0)
        }
        #expect(hasWork)
        #expect(try waiting() == ["app/p2"])
        try save("c")
        try pair.shard.maintain(time: 1_000)
        let wanted = ["a", "b", "c"].flatMap { Array(repeating: $0, count: 1_500) }
        #expect(try pair.shard.told().map(\.record?.name) == wanted)
    }
}

extension Fixture {
    /// What waits to be told to homes, in order.
    fileprivate func told() throws -> [Match] {
        let bodies = try queue.read { db in
            try Row.fetchAll(db, sql: "SELECT body FROM outbox ORDER BY destination, sequence").map { row in
                let data: Data = row[0]
                return [UInt8](data)
            }
        }
        return try bodies.compactMap { if case .notify(let match) = try Effect(decoding: $0) { match } else { nil } }
    }
}
