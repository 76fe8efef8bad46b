import Foundation
import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

@Suite("Subscriptions to queries")
struct SubscriptionQueryTests {
    private let pair: Pair
    init() throws { pair = try Pair() }

    private func save(_ name: String, rank: Int64, _ zone: ZoneKey = Fixture.publicZone) throws {
        let caller = zone == Fixture.publicZone ? Fixture.bob : Fixture.ann
        let outcome = try pair.shard.one(
            zone, by: caller, .make(.forceUpdate, name, [("rank", .int64(rank)), ("text", .string("new"))]))
        #expect(outcome?.saved != nil)
    }

    private func told() throws -> [String] {
        try pair.deliverAll()
        return try pair.log().compactMap { entry in
            let change = entry["ck"]?["qry"]
            guard case .integer(let event)? = change?["fo"] else { return nil }
            return "\(change?["sid"]?.string ?? "") \(change?["rid"]?.string ?? "") \(event)"
        }
    }

    @Test("a query tells of what matches: creations and updates as they are then, deletions as they were")
    func query() throws {
        try pair.watch(Pair.query("one", rank: 1))
        try save("a", rank: 1)
        try save("b", rank: 2)
        try save("b", rank: 1)
        try save("a", rank: 2)
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.forceDelete, "a"))
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.forceDelete, "b"))
        #expect(try told() == ["one a 1", "one b 2", "one b 3"])
        let first: JSONValue = try #require(try pair.log().first?["ck"]?["qry"])
        #expect(first["dbs"] == .integer(2))
        #expect(first["zid"]?.string == "_defaultZone")
        #expect(first["af"] == nil)
    }

    @Test("only on what it fires")
    func firing() throws {
        try pair.watch(Pair.query("new", rank: nil, .create))
        try pair.watch(Pair.query("gone", rank: nil, .delete))
        try save("a", rank: 1)
        try save("a", rank: 2)
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, .make(.forceDelete, "a"))
        #expect(try told() == ["new a 1", "gone a 3"])
    }

    @Test("several that match are told of one change with one nid")
    func several() throws {
        for id in ["x", "y", "z"] {
            try pair.watch(Pair.query(id, rank: id == "z" ? nil : 1, info: #"{"title":"\#(id)"}"#))
        }
        try save("a", rank: 1)
        #expect(try told().sorted() == ["x a 1", "y a 1", "z a 1"])
        #expect(Set(try pair.log().compactMap { $0["ck"]?["nid"]?.string }).count == 1)
    }

    @Test("one that fires once does so once, though shards match it at the same time")
    func firesOnce() throws {
        var subscription = Pair.query("once", rank: 1)
        subscription.firesOnce = true
        try pair.watch(subscription)
        _ = try pair.shard.modify(
            Fixture.publicZone, by: Fixture.bob, .make(.forceUpdate, "a", [("rank", .int64(1))]),
            .make(.forceUpdate, "b", [("rank", .int64(1))]))
        try save("c", rank: 1)
        #expect(try told() == ["once a 1"])
        let left = try pair.home.queue.read {
            try Subscribers.subscriptions(of: Pair.subscriber, scope: .public, in: $0)
        }
        #expect(left.isEmpty)
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 0)
    }

    @Test("the fields that were asked for come along, and fill the gaps of texts; absent ones are empty")
    func fields() throws {
        let info = """
            {"additionalFields": ["rank", "text", "only"], "alertLocalizationKey": "k",
             "alertLocalizationArgs": ["text", "only"]}
            """
        try pair.watch(Pair.query("one", rank: 1, info: info))
        try save("a", rank: 1)
        try pair.deliverAll()
        let entry = try #require(try pair.log().first)
        #expect(entry["ck"]?["qry"]?["af"] == .object([.init("rank", .integer(1)), .init("text", .string("new"))]))
        #expect(entry["aps"]?["alert"]?["loc-args"] == .array([.string("new"), .string("")]))
    }

    @Test("records that maintenance deletes along with another one are changes of the device that deleted it")
    func cascaded() throws {
        try pair.watch(Pair.query("gone", rank: nil, scope: .private, .delete))
        _ = try pair.shard.one(Fixture.annsDefault, .make(.create, "target"))
        let reference = FieldValue.reference(Reference(recordName: "target", action: .deleteSelf))
        _ = try pair.shard.one(Fixture.annsDefault, .make(.create, "source", [("list", reference)]))
        var command = ModifyRecords(
            zone: Fixture.annsDefault, schemaVersion: 1, caller: Fixture.ann, time: 1000,
            operations: [.make(.forceDelete, "target")])
        command.client = "phone"
        try pair.shard.apply(.modifyRecords(command))
        try pair.shard.maintain(time: 1000)
        try pair.deliverAll()
        #expect(try pair.log(client: "desk").count == 2)
        #expect(try pair.log(client: "phone").isEmpty)
    }

    @Test("in a private database a zone may be named, and the default zone is matched, too")
    func privateQuery() throws {
        var named = Pair.query("work", rank: 1, scope: .private)
        named.zone = "work"
        try pair.watch(named)
        try pair.watch(Pair.query("all", rank: 1, scope: .private))
        try pair.shard.zone(.create, Fixture.work)
        try save("a", rank: 1, Fixture.work)
        try save("b", rank: 1, Fixture.annsDefault)
        #expect(try told() == ["work a 1", "all a 1", "all b 1"])
    }

    @Test("what a user may not read is not told, and what they may not read any more is left out")
    func rights() throws {
        var secret = Pair.query("secret", rank: nil)
        secret.recordType = "Secret"
        secret.query = Query(recordType: "Secret")
        try pair.watch(secret)
        try pair.watch(Pair.query("open", rank: nil))
        _ = try pair.shard.one(Fixture.publicZone, by: Fixture.bob, RecordChange(.create, "s", type: "Secret"))
        try save("n", rank: 1)
        #expect(try told() == ["open n 1"])
        var hidden = NotificationLog.Hidden()
        hidden.typesOfOthers = ["Note"]
        let page = try pair.home.queue.read { [hidden] in
            try NotificationLog.page(
                of: Pair.subscriber, since: nil, client: nil, hidden: hidden, limit: 10, in: $0)
        }
        guard case .entries(let entries, _, false) = page else { throw Unexpected("\(page)") }
        #expect(entries.isEmpty)
    }

    @Test("what was told of a type that is no more is left out, and of others only what the reader may read")
    func readable() throws {
        try pair.watch(Pair.query("open", rank: nil))
        try save("a", rank: 1)
        try pair.deliverAll()
        for (own, others, count) in [(["Note"], ["Note"], 1), (["Note"], [], 0), ([], [], 0)]
            as [([String], [String], Int)]
        {
            var hidden = NotificationLog.Hidden()
            hidden.readable = NotificationLog.Readable(types: Set(own), typesOfOthers: Set(others))
            let page = try pair.home.queue.read { [hidden] in
                try NotificationLog.page(
                    of: Pair.subscriber, since: nil, client: nil, hidden: hidden, limit: 10, in: $0)
            }
            guard case .entries(let entries, _, false) = page else { throw Unexpected("\(page)") }
            #expect(entries.count == count)
        }
    }

    @Test("one command looks at a bounded part of many subscriptions; maintenance goes on, in order")
    func bounded() throws {
        let count = 1_500
        for number in 0..<count {
            let user = DatabaseKey(
                container: "app", environment: .production, scope: .private, owner: "_u\(number)")
            let watcher = Watcher(
                subscriber: user, home: Pair.homeGroup, subscription: Pair.query("s", rank: nil))
            let delivery = OutboxDelivery(
                source: 9, incarnation: 1, first: UInt64(number + 1), effects: [.watch(watcher)])
            let receipt = try pair.shard.run { try $0.deliver(delivery) }
            #expect(receipt.isTaken)
        }
        try save("a", rank: 1)
        let first = try pair.shard.count("SELECT count(*) FROM outbox")
        #expect(first == 1_000)
        try save("b", rank: 1)
        #expect(try pair.shard.count("SELECT count(*) FROM outbox") == first, "the first change is told first")
        try pair.shard.maintain(time: 1000)
        #expect(try pair.shard.count("SELECT count(*) FROM outbox") == 2 * count)
        let delivery = try pair.shard.queue.read { try [UInt8].fetchAll($0) }
        var names: [String] = []
        for body in delivery {
            if case .notify(let match) = try Effect(decoding: body) { names.append(match.record?.name ?? "") }
        }
        #expect(names == Array(repeating: "a", count: count) + Array(repeating: "b", count: count))
    }

    @Test("a subscription that is not wanted by a record's keys is not looked at")
    func keyed() throws {
        for number in 0..<50 { try pair.watch(Pair.query("s\(number)", rank: Int64(number))) }
        try save("a", rank: 7)
        try save("b", rank: 99)
        #expect(try told() == ["s7 a 1"])
    }
}

extension [UInt8] {
    /// The bodies of all effects that wait, in order.
    fileprivate static func fetchAll(_ db: Database) throws -> [[UInt8]] {
        try Row.fetchAll(db, sql: "SELECT body FROM outbox ORDER BY destination, sequence").map { row in
            let data: Data = row[0]
            return [UInt8](data)
        }
    }
}
