import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("Subscriptions, outboxes and the log of notifications")
struct OutboxTests {
    private let pair: Pair
    init() throws { pair = try Pair() }

    @Test("a subscription to a database tells of each command's zones once, in order")
    func database() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        _ = try pair.shard.modify(
            Fixture.work, .make(.forceUpdate, "a"), .make(.forceUpdate, "b"), .make(.forceUpdate, "c"))
        _ = try pair.shard.one(Fixture.annsDefault, .make(.forceUpdate, "a"))
        try pair.shard.zone(.delete, Fixture.work)
        try pair.deliverAll()
        let log = try pair.log()
        #expect(log.count == 3)
        for entry in log {
            let ck = try #require(entry["ck"])
            let change = try JSONParser.parse(Array(#"{"sid":"all","dbs":1,"zid":"work","zoid":"_ann"}"#.utf8))
            #expect(ck["met"] == change)
            #expect(ck["ce"] == .integer(2))
            #expect(ck["ckuserid"]?.string == "_ann")
            #expect(ck["cid"]?.string == "app")
        }
        #expect(Set(log.compactMap { $0["ck"]?["nid"]?.string }).count == 3)
    }

    @Test("a test tells as the subscription would, says what it is, and uses nothing up")
    func test() throws {
        var once = Pair.query("once", rank: 5, .update, info: #"{"alertBody": "hello"}"#)
        once.firesOnce = true
        try pair.watch(once)
        try pair.watch(Pair.subscription("work", zone: "work"))
        let change = Array(1...16 as ClosedRange<UInt8>)
        for (scope, id) in [(Scope.public, "once"), (.private, "work"), (.public, "once")] {
            #expect(try pair.modify(.test(scope, id: id, change: change)).failures == [nil])
        }
        let missing = try pair.modify(.test(.private, id: "once", change: change)).failures
        #expect(missing.map { $0?.code } == [.notFound])
        let log = try pair.log()
        #expect(log.map { $0["zonekeeperTest"] } == [.bool(true), .bool(true), .bool(true)])
        #expect(log[0]["aps"]?["alert"] == .string("hello"))
        #expect(log[0]["ck"]?["qry"]?["rid"] == .string("test") && log[0]["ck"]?["qry"]?["fo"] == .integer(2))
        #expect(log[1]["ck"]?["fet"]?["zid"] == .string("work"))
        let command = ModifySubscriptions(
            subscriber: Pair.subscriber, home: 1, time: 1, changes: [.test(.private, id: "work", change: [1])])
        #expect(throws: (any Error).self) { try ModifySubscriptions(decoding: command.encoded()) }
    }

    @Test("a subscription to a zone tells of that zone; one with a type of records of that type")
    func zone() throws {
        try pair.watch(Pair.subscription("work", zone: "work"))
        try pair.watch(Pair.subscription("notes", zone: "work", type: "Bare"))
        let other = ZoneKey(database: Fixture.annsData, name: "other")
        try pair.shard.zone(.create, Fixture.work)
        try pair.shard.zone(.create, other)
        _ = try pair.shard.one(other, .make(.forceUpdate, "a"))
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        _ = try pair.shard.one(Fixture.work, RecordChange(.forceUpdate, "b", type: "Bare"))
        try pair.deliverAll()
        let told = try pair.log().compactMap { $0["ck"]?["fet"]?["sid"]?.string }
        #expect(told == ["work", "work", "work", "notes"])
        let ids = try pair.log().compactMap { $0["ck"]?["nid"]?.string }
        #expect(ids[2] == ids[3], "one change has one nid")
    }

    @Test("what is refused, or rolled back, tells nobody")
    func nothing() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        _ = try pair.shard.modify(
            Fixture.work, atomic: true, .make(.create, "a"),
            .make(.update, "b", tag: ChangeTag(incarnation: 9, sequence: 9)))
        _ = try pair.shard.one(Fixture.work, .make(.forceDelete, "absent"))
        try pair.deliverAll()
        #expect(try pair.log().count == 1)
        #expect(try pair.shard.count("SELECT count(*) FROM outbox") == 0)
    }

    @Test("a device is not told of its own changes, other devices of the user are")
    func client() throws {
        try pair.watch(Pair.subscription("all"))
        var command = ModifyZone(.create, zone: Fixture.work, caller: Fixture.ann, time: 1000)
        command.client = "phone"
        try pair.shard.apply(.modifyZone(command))
        try pair.deliverAll()
        #expect(try pair.log(client: "phone").isEmpty)
        #expect(try pair.log(client: "desk").count == 1)
        #expect(try pair.log().count == 1)
    }

    @Test("a device of another user is not taken for the reader's because it has the same name")
    func clientOfAnother() throws {
        try pair.watch(Pair.query("notes", rank: nil))
        var command = ModifyRecords(
            zone: Fixture.publicZone, schemaVersion: 1, caller: Fixture.bob, time: 1000,
            operations: [.make(.create, "a")])
        command.client = "web"
        try pair.shard.apply(.modifyRecords(command))
        try pair.deliverAll()
        #expect(try pair.log(client: "web").count == 1)
    }

    @Test("a delivery that comes again, late or overlapping, is applied once")
    func once() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        for name in ["a", "b", "c"] { _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, name)) }
        let whole = try #require(
            try pair.shard.queue.read {
                try WaitingEffects.nextDelivery(from: Pair.shardGroup, to: Pair.homeGroup, in: $0)
            })
        #expect(whole.effects.count == 4)
        var begin = whole
        begin.effects.removeLast(2)
        for delivery in [begin, begin, whole, begin, whole] {
            let receipt = try pair.home.run { try $0.deliver(delivery) }
            #expect(receipt.isTaken)
        }
        #expect(try pair.log().count == 4)
    }

    @Test("what the source has removed and the receiver never saw ends all tokens")
    func gap() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let token = try pair.token()
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "b"))
        var later = try #require(
            try pair.shard.queue.read {
                try WaitingEffects.nextDelivery(from: Pair.shardGroup, to: Pair.homeGroup, in: $0)
            })
        later.first += 1
        later.effects.removeFirst()
        let receipt = try pair.home.run { try $0.deliver(later) }
        #expect(receipt.hasLost)
        guard case .expired(.lost) = try pair.page(token) else { throw Unexpected("the token still counts") }
        #expect(try pair.log().count == 2)
    }

    @Test("below feature level 5 an outbox drops beyond its bound, and tells of the loss once the rest is delivered")
    func bound() throws {
        let old = FeatureLevel.notifications
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let token = try pair.token()
        try pair.shard.queue.write {
            try $0.execute(sql: "UPDATE outbox_stream SET rows = 100000 WHERE destination = 1")
        }
        let command = ModifyRecords(
            zone: Fixture.work, schemaVersion: 1, caller: Fixture.ann, time: 1000,
            operations: [.make(.forceUpdate, "a")])
        try pair.shard.run(level: old) { _ = try $0.apply(.modifyRecords(command)) }
        #expect(try pair.shard.count("SELECT count(*) FROM outbox") == 0)
        try pair.shard.queue.write {
            try $0.execute(sql: "UPDATE outbox_stream SET rows = 1 WHERE destination = 1")
            try $0.execute(sql: "INSERT INTO outbox SELECT 1, sequence + 1, x'' FROM outbox_stream")
            try $0.execute(sql: "UPDATE outbox_stream SET sequence = sequence + 1")
        }
        // What waits is acknowledged as if it had been delivered.
        let last = try pair.shard.queue.read { db in
            try Int64.fetchOne(db, sql: "SELECT sequence FROM outbox_stream WHERE destination = 1") ?? 0
        }
        try pair.home.queue.write { try $0.execute(sql: "UPDATE inbox SET sequence = ?", arguments: [last]) }
        try pair.shard.run(level: old) {
            try $0.acknowledge(
                OutboxAcknowledgement(destination: Pair.homeGroup, incarnation: 1, through: UInt64(last)))
        }
        try pair.deliverAll()
        guard case .expired(.lost) = try pair.page(token) else { throw Unexpected("the token still counts") }
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "b"))
        try pair.deliverAll()
        #expect(try pair.log().count == 2)
    }

    @Test("a restore ends tokens, and homes send their copies again")
    func restore() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let token = try pair.token()
        for side in [pair.home, pair.shard] {
            try side.queue.write { try RecordTables.startNewIncarnation(7, in: $0) }
        }
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 0)
        try pair.home.maintain(time: 1000)
        try pair.deliverAll()
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 1)
        guard case .expired(.lost) = try pair.page(token) else { throw Unexpected("the token still counts") }
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        try pair.deliverAll()
        #expect(try pair.log().count == 2)
    }

    @Test("copies that a restored home sends wait until their shard has begun the new incarnation, too")
    func restoredOneByOne() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.home.queue.write { try RecordTables.startNewIncarnation(7, in: $0) }
        try pair.home.maintain(time: 1000)
        let copy = try #require(
            try pair.home.queue.read {
                try WaitingEffects.nextDelivery(from: Pair.homeGroup, to: Pair.shardGroup, in: $0)
            })
        #expect(try pair.shard.run { try $0.deliver(copy).isTaken } == false)
        try pair.shard.queue.write { try RecordTables.startNewIncarnation(7, in: $0) }
        try pair.deliverAll()
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        #expect(try pair.log().count == 1)
    }

    @Test("a delivery of before a restore is not taken after it")
    func stale() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        let before = try #require(
            try pair.shard.queue.read {
                try WaitingEffects.nextDelivery(from: Pair.shardGroup, to: Pair.homeGroup, in: $0)
            })
        try pair.home.queue.write { try RecordTables.startNewIncarnation(7, in: $0) }
        let receipt = try pair.home.run { try $0.deliver(before) }
        #expect(!receipt.isTaken)
        #expect(try pair.log().isEmpty)
    }

    @Test("saving again replaces; equal content under another name is refused; a deletion ends the telling")
    func modify() throws {
        try pair.watch(Pair.subscription("all"))
        #expect(try pair.modify(.save(Pair.subscription("all"), targets: [2])).marks.first?.sequence == 1)
        let twin = try pair.modify(.save(Pair.subscription("twin"), targets: [2])).failures
        #expect(twin == [ServiceError(.exists, "subscription is duplicate of 'all'")])
        #expect(try pair.modify(.delete(.private, id: "none")).failures.first??.code == .notFound)
        try pair.watch(Pair.subscription("all", type: "Bare"))
        try pair.shard.zone(.create, Fixture.work)
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        try pair.deliverAll()
        #expect(try pair.log().isEmpty)
        _ = try pair.shard.one(Fixture.work, RecordChange(.forceUpdate, "b", type: "Bare"))
        #expect(try pair.modify(.delete(.private, id: "all")).failures == [nil])
        // It was on its way, and there is nothing any more that it could tell of.
        try pair.deliverAll()
        #expect(try pair.log().isEmpty)
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 0)
    }

    @Test("a user has at most 500 subscriptions")
    func limit() throws {
        for number in 0..<Limits.subscriptionsMax {
            let failures = try pair.modify(.save(Pair.subscription("s\(number)", zone: "z\(number)"), targets: [2]))
                .failures
            #expect(failures == [nil])
        }
        let over = try pair.modify(.save(Pair.subscription("more"), targets: [2])).failures.first??.code
        #expect(over == .badRequest)
    }

    @Test("10,000 notifications are kept, and those of 7 days")
    func retention() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let token = try pair.token()
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        try pair.deliverAll()
        try pair.home.setTime(8 * 86_400_000)
        try pair.home.maintain(time: 8 * 86_400_000)
        #expect(try pair.log().isEmpty)
        guard case .expired(.tooOld) = try pair.page(token) else { throw Unexpected("the token still counts") }
        #expect(try pair.home.count("SELECT floor FROM registry") == 2)
    }

    @Test("an entry has the time of its change, or a later one of its own shard")
    func times() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let hour: Int64 = 3_600_000
        // The home's time, the change's, and the entry's.
        for (home, change, entry) in [
            (1_000, hour / 2, hour / 2), (1_000, 9 * hour, 9 * hour), (5 * hour, 2 * hour, 5 * hour),
        ] {
            try pair.home.setTime(home)
            _ = try pair.shard.one(Fixture.work, time: change, .make(.forceUpdate, "a"))
            try pair.deliverAll()
            #expect(try pair.home.count("SELECT time FROM notification ORDER BY sequence DESC LIMIT 1") == entry)
            #expect(try pair.home.count("SELECT time FROM record_state") == home)
        }
    }

    @Test("pages of every size hold the same, and end with the same token")
    func pages() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        for name in 0..<6 { _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "r\(name)")) }
        try pair.deliverAll()
        let last = try pair.token()
        for limit in 1...8 {
            var token: NotificationToken?
            var seen: [Int64] = []
            var isMore = true
            while isMore {
                guard case .entries(let entries, let next, let hasMore) = try pair.page(token, limit: limit) else {
                    throw Unexpected("expired")
                }
                seen += entries.map(\.sequence)
                (token, isMore) = (next, hasMore)
            }
            #expect(seen == Array(1...7) && token == last)
        }
    }

    @Test("a deleted container leaves nothing, and no token of its life fits the next one")
    func removed() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let token = try pair.token()
        try pair.home.run { transaction in
            while try !transaction.removeContainer("app") { try transaction.finish() }
        }
        for table in ["registry", "subscription", "notification"] {
            #expect(try pair.home.count("SELECT count(*) FROM \(table)") == 0)
        }
        try pair.watch(Pair.subscription("all"))
        // So that the next life has as many as the token has seen.
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        try pair.deliverAll()
        #expect(try pair.log().count == 1)
        guard case .expired(.lost) = try pair.page(token) else { throw Unexpected("the token still counts") }
    }

    @Test("whatever a payload is long with, it is at most 4 KB", arguments: ["category", "zone"])
    func alwaysFits(_ long: String) throws {
        // 255 characters of 18 bytes each.
        let name = String(repeating: "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}", count: 255)
        var subscription = Pair.subscription("all")
        if long == "category" {
            subscription.info = Array(#"{"category": "\#(String(repeating: "c", count: 8_000))"}"#.utf8)
        }
        try pair.watch(subscription)
        try pair.shard.zone(
            .create, long == "zone" ? ZoneKey(database: Fixture.annsData, name: name) : Fixture.work)
        try pair.deliverAll()
        let entry = try pair.home.count("SELECT max(length(payload)) FROM notification")
        #expect((1...4_096).contains(entry))
        #expect(try pair.log().first?["ck"]?["p"] == .integer(1))
    }

    @Test("a payload is at most 4 KB: what is left out goes in Apple's order")
    func pruned() throws {
        var subscription = Pair.subscription("all")
        let body = String(repeating: "b", count: 3_900)
        let sound = String(repeating: "s", count: 300)
        subscription.info = Array(#"{"alertBody": "\#(body)", "soundName": "\#(sound)"}"#.utf8)
        try pair.watch(subscription)
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let entry = try #require(try pair.log().first)
        let ck = try #require(entry["ck"])
        #expect(ck["p"] == .integer(1))
        #expect(ck["cid"] == nil && ck["met"] != nil)
        #expect(entry["aps"]?["sound"] == nil)
        #expect(entry["aps"]?["alert"]?.string == body)
    }
}
