import Foundation
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("Order, bounds and losses of notifications")
struct NotificationBoundsTests {
    private let pair: Pair
    init() throws { pair = try Pair() }

    /// Has subscriptions to all notes watched on the shard, without homes that know them.
    private func install(
        _ count: Int, scope: Scope = .public, at level: FeatureLevel = FeatureLevel.supported.upperBound
    ) throws {
        for number in 0..<count {
            let user = scope == .public ? "_u\(number)" : Fixture.annsData.owner
            let watcher = Watcher(
                subscriber: DatabaseKey(container: "app", environment: .production, scope: .private, owner: user),
                home: Pair.homeGroup, subscription: Pair.query("s\(number)", rank: nil, scope: scope))
            let delivery = OutboxDelivery(
                source: 9, incarnation: 1, first: UInt64(number + 1), effects: [.watch(watcher)])
            let receipt = try pair.shard.run(level: level) { try $0.deliver(delivery) }
            #expect(receipt.isTaken)
        }
    }

    /// What waits at the shard for the home: the record of a query, or the kind of another subscription.
    private func waiting() throws -> [String] {
        let bodies = try pair.shard.queue.read { db in
            try Row.fetchAll(db, sql: "SELECT body FROM outbox ORDER BY destination, sequence").map { row in
                let data: Data = row[0]
                return [UInt8](data)
            }
        }
        return try bodies.compactMap { body in
            guard case .notify(let match) = try Effect(decoding: body) else { return nil }
            return match.record?.name ?? match.subscriptionID
        }
    }

    private func fill(rows: Int) throws {
        try pair.shard.queue.write {
            try $0.execute(sql: "UPDATE outbox_stream SET rows = rows + ? WHERE destination = 1", arguments: [rows])
        }
    }

    @Test("a zone's changes come in the order of its commits, also where matching queries takes several commands")
    func order() throws {
        try pair.shard.zone(.create, Fixture.work)
        try install(1_500, scope: .private)
        let all = Watcher(
            subscriber: Fixture.annsData, home: Pair.homeGroup, subscription: Pair.subscription("all"))
        try pair.shard.run {
            _ = try $0.deliver(OutboxDelivery(source: 8, incarnation: 1, first: 1, effects: [.watch(all)]))
        }
        for name in ["a", "b"] { _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, name)) }
        try pair.shard.maintain(time: 1000)
        let wanted = ["a", "b"].flatMap { ["all"] + Array(repeating: $0, count: 1_500) }
        #expect(try waiting() == wanted)
    }

    @Test("while too much waits for a home, changes wait to be matched, and nothing is lost")
    func waits() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let token = try pair.token()
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        try fill(rows: 10_000)
        for name in ["b", "c"] { _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, name)) }
        #expect(try waiting().count == 1)
        #expect(try pair.shard.maintain(time: 1000) == 1, "there is nothing to do until there is room")
        try fill(rows: -10_000)
        try pair.deliverAll()
        try pair.shard.maintain(time: 1000)
        try pair.deliverAll()
        guard case .entries(let entries, _, false) = try pair.page(token) else {
            throw Unexpected("the token has ended")
        }
        #expect(entries.count == 3)
        #expect(try pair.shard.count("SELECT count(*) FROM matching_queue") == 0)
    }

    @Test("changes of a container that come too fast for long are lost, and end the tokens of that container alone")
    func lossOfContainer() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        let token = try pair.token()
        let other = DatabaseKey(container: "other", environment: .production, scope: .private, owner: "_ann")
        func otherPage(_ token: NotificationToken?) throws -> NotificationLog.Page {
            try pair.home.queue.read {
                try NotificationLog.page(
                    of: other, since: token, client: nil, hidden: NotificationLog.Hidden(), limit: 10, in: $0)
            }
        }
        guard case .entries(_, let otherToken, _) = try otherPage(nil) else { return }
        try pair.shard.queue.write {
            try $0.execute(sql: "INSERT INTO matching_queue VALUES ('app/u2/2/_other', 10000, 0, 1, 0)")
        }
        try fill(rows: 10_000)
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        #expect(try waiting().isEmpty)
        let matches = try pair.shard.queue.read { try WaitingMatches(in: $0) }
        #expect(matches.count == 10_000 && !matches.isReady, "nothing can be gone on with")
        try fill(rows: -10_000)
        // As if the other user's changes had been worked off down to half of what may wait.
        try pair.shard.queue.write {
            try $0.execute(sql: "UPDATE matching_queue SET rows = 5000, waits_for = NULL WHERE rows > 0")
        }
        try pair.shard.apply(.maintain(Maintain(time: 1000)))
        try pair.deliverAll()
        guard case .expired(.lost) = try pair.page(token) else { throw Unexpected("the token still counts") }
        guard case .entries = try otherPage(otherToken) else {
            throw Unexpected("the token of another container has ended")
        }
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "b"))
        try pair.deliverAll()
        #expect(try pair.log().count == 2)
    }

    @Test("a long text that a notification names is cut where it is matched")
    func cut() throws {
        try pair.watch(Pair.query("q", rank: nil, info: #"{"alertLocalizationArgs": ["plain", "data"]}"#))
        let fields: [(String, FieldValue?)] = [
            ("plain", .string(String(repeating: "x", count: 700_000))),
            ("data", .bytes(Array(repeating: 0, count: 900))),
        ]
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a", fields))
        #expect(try pair.shard.count("SELECT max(length(body)) FROM outbox") < 1_000)
        try pair.deliverAll()
        let arguments = try pair.log().first?["aps"]?["alert"]?["loc-args"]
        #expect(arguments == .array([.string(String(repeating: "x", count: 100)), .string("")]))
    }

    @Test("what is shown of a text has the same length in every version of Unicode")
    func codePoints() throws {
        try pair.watch(Pair.query("q", rank: nil, info: #"{"alertLocalizationArgs": ["plain"]}"#))
        // One character of 3 code points each.
        let text = String(repeating: "e\u{301}\u{302}", count: 100)
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a", [("plain", .string(text))]))
        try pair.deliverAll()
        let shown = try pair.log().first?["aps"]?["alert"]?["loc-args"]?.array?.first?.string
        #expect(shown?.unicodeScalars.count == 100)
    }

    @Test("a container whose changes are large leaves others their turn")
    func turns() throws {
        try pair.watch(Pair.query("q", rank: nil))
        var zone = Fixture.publicZone
        zone.database.container = "aaa"
        try pair.shard.apply(
            .installSchema(
                InstallSchema(
                    container: "aaa", environment: .production, version: 1, generation: 0, schema: Fixture.schema)))
        let subscriber = DatabaseKey(container: "aaa", environment: .production, scope: .private, owner: "_ann")
        let watcher = Watcher(subscriber: subscriber, home: 1, subscription: Pair.query("q", rank: nil))
        try pair.shard.run {
            _ = try $0.deliver(OutboxDelivery(source: 9, incarnation: 1, first: 1, effects: [.watch(watcher)]))
        }
        try pair.shard.queue.write {
            try $0.execute(
                sql: "INSERT INTO matching_queue VALUES ('app/p2', 0, 0, NULL, 0), ('aaa/p2', 0, 0, NULL, 0)")
        }
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "small"))
        let large = FieldValue.string(String(repeating: "x", count: 700_000))
        for number in 0..<8 {
            _ = try pair.shard.one(zone, by: Fixture.bob, .make(.create, "\(number)", [("plain", large)]))
        }
        try pair.shard.apply(.maintain(Maintain(time: 1000)))
        #expect(try waiting().first == "small")
        #expect(try pair.shard.count("SELECT count(*) FROM matching WHERE container = 'aaa/p2'") > 0)
        try pair.shard.maintain(time: 1000)
        #expect(try waiting().count == 9)
    }

    @Test("a deleted container leaves nothing where its changes were matched")
    func removed() throws {
        // With the change that waits they are as many as one part removes.
        try install(499)
        try pair.shard.queue.write {
            try $0.execute(sql: "INSERT INTO matching_queue VALUES ('app/p2', 0, 0, NULL, 0)")
        }
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a"))
        #expect(try pair.shard.count("SELECT count(*) FROM matching") == 1)
        try pair.shard.run { transaction in
            for _ in 0..<3 { _ = try transaction.removeContainer("app") }
        }
        for table in ["watcher", "watched", "matching", "matching_queue"] {
            #expect(try pair.shard.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
    }

    @Test("a copy that its home does not know goes, once it matches")
    func orphan() throws {
        try pair.watch(Pair.query("q", rank: nil))
        try pair.home.queue.write { try $0.execute(sql: "DELETE FROM subscription") }
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a"))
        try pair.deliverAll()
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 0)
        #expect(try pair.log().isEmpty)
    }

    @Test("after a gap both sides send copies of their subscriptions again")
    func healed() throws {
        try pair.watch(Pair.query("q", rank: nil))
        // As if it had fired once, and what it told had been lost.
        try pair.shard.run {
            _ = try $0.deliver(
                OutboxDelivery(
                    source: 7, incarnation: 1, first: 1,
                    effects: [.unwatch(subscriber: Pair.subscriber, scope: .public, id: "q")]))
        }
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 0)
        let receipt = try pair.home.run {
            try $0.deliver(
                OutboxDelivery(source: Pair.shardGroup, incarnation: 1, first: 5, effects: [.lostOf(container: "app")]))
        }
        #expect(receipt.hasLost)
        try pair.home.maintain(time: 1000)
        try pair.deliverAll()
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a"))
        #expect(try waiting() == ["a"])
        #expect(try pair.shard.count("SELECT count(*) FROM subscription WHERE is_sent = 0") == 0)
    }

    @Test("what an earlier subscription of the name matched does not use up one that fires once")
    func generations() throws {
        var once = Pair.query("once", rank: nil)
        once.firesOnce = true
        try pair.watch(once)
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a"))
        #expect(try pair.modify(.delete(.public, id: "once")).failures == [nil])
        #expect(try pair.modify(.save(once, targets: [Pair.shardGroup])).failures == [nil])
        try pair.deliverAll()
        #expect(try pair.log().isEmpty)
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "b"))
        try pair.deliverAll()
        #expect(try pair.log().map { $0["ck"]?["qry"]?["rid"]?.string } == ["b"])
    }

    @Test("what a subscription that fires once matched before it was changed does not use it up")
    func changedOnce() throws {
        var once = Pair.query("once", rank: nil)
        once.firesOnce = true
        try pair.watch(once)
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a"))
        var other = Pair.query("once", rank: nil, info: #"{"title":"other"}"#)
        other.firesOnce = true
        #expect(try pair.modify(.save(other, targets: [Pair.shardGroup])).failures == [nil])
        try pair.deliverAll()
        #expect(try pair.log().isEmpty)
        // Saved as it is, it stays what it is.
        #expect(try pair.modify(.save(other, targets: [Pair.shardGroup])).failures == [nil])
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "b"))
        try pair.deliverAll()
        #expect(try pair.log().map { $0["ck"]?["qry"]?["rid"]?.string } == ["b"])
    }

    @Test("a subscription that is replaced goes on to tell of what its copies matched before")
    func replaced() throws {
        try pair.watch(Pair.query("q", rank: nil))
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.create, "a"))
        #expect(try pair.modify(.save(Pair.query("q", rank: 1), targets: [Pair.shardGroup])).failures == [nil])
        try pair.deliverAll()
        #expect(try pair.log().count == 1)
    }

    @Test("a subscription has at most 16 KB, all of a user's 1 MB")
    func size() throws {
        let text = String(repeating: "x", count: SubscriptionBounds.bytesMax)
        var large = Pair.query("large", rank: nil, info: #"{"alertBody": "\#(text)"}"#)
        #expect(try pair.modify(.save(large, targets: [2])).failures.first??.code == .badRequest)
        large.info.removeLast(200)
        var count = 0
        while true {
            large.id = "s\(count)"
            large.zone = "z\(count)"
            guard let failure = try pair.modify(.save(large, targets: [2])).failures.first ?? nil else {
                count += 1
                continue
            }
            #expect(failure.code == .badRequest && (60...70).contains(count))
            break
        }
    }

    /// Gives the subscriber notifications that say nothing.
    private func fillLog(_ count: Int, sequence: Int? = nil) throws {
        try pair.home.queue.write { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
                    INSERT INTO notification SELECT r.id, i, 1000, NULL, NULL, 0, x'7b7d' FROM n, registry r
                    """, arguments: [count])
            try db.execute(sql: "UPDATE registry SET sequence = ?", arguments: [sequence ?? count])
        }
    }

    @Test("10,000 notifications are kept: what comes beyond takes the place of the first, and ends tokens before it")
    func kept() throws {
        try pair.watch(Pair.subscription("all"))
        let begin = try pair.token()
        try fillLog(10_047)
        guard case .entries(_, let last, _) = try pair.page(begin, limit: 48) else {
            throw Unexpected("expired")
        }
        try pair.shard.zone(.create, Fixture.work)
        try pair.deliverAll()
        #expect(try pair.home.count("SELECT count(*) FROM notification") == 10_000)
        guard case .expired(.tooOld) = try pair.page(begin), case .entries = try pair.page(last) else {
            throw Unexpected("the tokens are not what they should be")
        }
    }

    @Test("below the level each notification beyond 10,000 takes the place of the first")
    func keptBefore() throws {
        try pair.watch(Pair.subscription("all"))
        try fillLog(10_000)
        try pair.shard.zone(.create, Fixture.work)
        let next = try pair.shard.queue.read {
            try WaitingEffects.nextDelivery(from: Pair.shardGroup, to: Pair.homeGroup, in: $0)
        }
        let delivery = try #require(next)
        try pair.home.run(level: .renewedSubscriptions) { _ = try $0.deliver(delivery) }
        #expect(try pair.home.count("SELECT min(sequence) FROM notification") == 2)
        #expect(try pair.home.count("SELECT count(*) FROM notification") == 10_000)
    }

    @Test("a log that is half full keeps the last of the notifications that say the same of a zone to the same devices")
    func collapsed() throws {
        try pair.watch(Pair.subscription("all"))
        try pair.watch(Pair.query("q", rank: nil, scope: .private))
        let other = ZoneKey(database: Fixture.annsData, name: "other")
        for zone in [Fixture.work, other] { try pair.shard.zone(.create, zone) }
        try pair.deliverAll()
        // Others said the same and are gone: more numbers were given than notifications are there.
        try pair.home.queue.write { try $0.execute(sql: "DELETE FROM notification") }
        try fillLog(100, sequence: 25_000)
        let token = try pair.token()
        func change(_ zone: ZoneKey, _ name: String, client: String? = nil) throws {
            var command = ModifyRecords(
                zone: zone, schemaVersion: 1, caller: Fixture.ann, time: 1000,
                operations: [.make(.forceUpdate, name)])
            command.client = client
            try pair.shard.apply(.modifyRecords(command))
            try pair.deliverAll()
        }
        try change(Fixture.work, "a")
        guard case .entries(_, let middle, false) = try pair.page(token) else {
            Issue.record("expired")
            return
        }
        try change(other, "b")
        for name in ["c", "d"] { try change(Fixture.work, name, client: "phone") }
        for _ in 0..<64 { try change(Fixture.work, "e") }
        func told(_ token: NotificationToken, client: String? = nil) throws -> [String] {
            let page = try pair.page(token, client: client)
            guard case .entries(let entries, _, false) = page else { return ["expired"] }
            return try entries.map { entry in
                let ck = try JSONParser.parse(entry.payload)["ck"]
                return ck?["qry"]?["rid"]?.string ?? ck?["met"]?["zid"]?.string ?? ""
            }
        }
        let updates = Array(repeating: "e", count: 63)
        #expect(try told(token) == ["a", "other", "b", "c", "work", "d"] + updates + ["work", "e"])
        #expect(try told(token, client: "phone") == ["a", "other", "b"] + updates + ["work", "e"])
        #expect(try told(middle) == ["other", "b", "c", "work", "d"] + updates + ["work", "e"])
        #expect(try pair.home.count("SELECT floor FROM registry") == 0, "they are not too many")
    }

    @Test("what waited below the level is gone on with once it is in force, and copies are sent again")
    func raised() throws {
        let old = FeatureLevel.notifications
        try install(1_500, at: old)
        for name in ["a", "b"] {
            let command = ModifyRecords(
                zone: Fixture.publicZone, schemaVersion: 1, caller: Fixture.bob, time: 1000,
                operations: [.make(.create, name)])
            try pair.shard.run(level: old) { _ = try $0.apply(.modifyRecords(command)) }
        }
        #expect(try waiting().count == 1_000)
        for table in ["watched", "matching", "matching_queue", "loss"] {
            #expect(try pair.shard.count("SELECT count(*) FROM \(table)") == 0, "\(table) is of the next level")
        }
        // As earlier builds have it: the user is in the record's two stamps, and nowhere else.
        let mentions = "(length(hex(body)) - length(replace(hex(body), hex('_bob'), ''))) / 8"
        #expect(try pair.shard.count("SELECT max(\(mentions)) FROM job") == 2)
        let hasWork = try pair.shard.queue.write {
            try RecordTables.raise(from: old, to: FeatureLevel.supported.upperBound, in: $0)
        }
        #expect(hasWork)
        try pair.shard.maintain(time: 1000)
        #expect(try waiting() == Array(repeating: "a", count: 1_500) + Array(repeating: "b", count: 1_500))
        #expect(try pair.shard.count("SELECT count(*) FROM job") == 0)
    }

    @Test("watchers that are kept in memory follow the tables", arguments: 1...5 as ClosedRange<UInt64>)
    func cache(seed: UInt64) throws {
        var random = Random(seed)
        let fresh = try Fixture()
        var sequence: UInt64 = 0
        for _ in 0..<200 {
            let scope: Scope = random.next() % 2 == 0 ? .public : .private
            let id = "s\(random.next() % 6)"
            let body: (RecordTransaction) throws -> Void
            switch random.next() % 4 {
            case 0:
                sequence += 1
                let effect = Effect.unwatch(subscriber: Pair.subscriber, scope: scope, id: id)
                let delivery = OutboxDelivery(source: 9, incarnation: 1, first: sequence, effects: [effect])
                body = { _ = try $0.deliver(delivery) }
            case 1:
                sequence += 1
                var subscription = Pair.query(id, rank: random.next() % 2 == 0 ? nil : 1, scope: scope)
                subscription.firesOnce = random.next() % 3 == 0
                let watcher = Watcher(subscriber: Pair.subscriber, home: 1, subscription: subscription)
                let delivery = OutboxDelivery(
                    source: 9, incarnation: 1, first: sequence, effects: [.watch(watcher)])
                body = { _ = try $0.deliver(delivery) }
            default:
                let command = ModifyRecords(
                    zone: scope == .public ? Fixture.publicZone : Fixture.annsDefault, schemaVersion: 1,
                    caller: Fixture.ann, time: 1000,
                    operations: [.make(.forceUpdate, "a", [("rank", .int64(Int64(random.next() % 2)))])])
                body = { _ = try $0.apply(.modifyRecords(command)) }
            }
            try pair.shard.run(body)
            try fresh.queue.write { db in
                let transaction = try RecordTables().begin(in: db)
                try body(transaction)
                try transaction.finish()
            }
        }
        #expect(try pair.shard.stateHash() == fresh.stateHash())
        #expect(try !waiting().isEmpty)
    }
}

extension Fixture {
    /// All rows.
    fileprivate func stateHash() throws -> [UInt8] {
        try queue.read { db in
            var bytes: [UInt8] = []
            try RecordTables.stateHash(in: db) { bytes += $0 }
            return bytes
        }
    }
}
