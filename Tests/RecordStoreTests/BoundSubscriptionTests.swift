import GRDB
import RecordModel
import RecordStore
import Testing

@Suite("Subscriptions end with the zone that they are bound to")
struct BoundSubscriptionTests {
    private let pair: Pair
    init() throws {
        pair = try Pair()
        try pair.shard.zone(.create, Fixture.work)
    }

    /// A private query in a zone.
    private static func query(_ id: String, zone: String? = nil) -> Subscription {
        var subscription = Pair.query(id, rank: nil, scope: .private)
        subscription.zone = zone
        return subscription
    }

    /// A subscription as it is saved while its zone has a life.
    private func saved(_ subscription: Subscription, life: UInt64?) -> Subscription {
        var subscription = subscription
        subscription.zoneLife = life
        return subscription
    }

    /// The life of the zone.
    private func life() throws -> UInt64 {
        UInt64(try pair.shard.count("SELECT incarnation FROM zone WHERE name = 'work' AND state = 0"))
    }

    private func save(_ subscription: Subscription) throws -> ServiceError? {
        try pair.modify(.save(subscription, targets: [Pair.shardGroup])).failures[0]
    }

    /// The zone is deleted, and made again.
    private func renew() throws {
        try pair.shard.zone(.delete, Fixture.work)
        try pair.shard.zone(.create, Fixture.work)
    }

    private func left() throws -> [String] {
        try pair.home.queue.read {
            try Subscribers.subscriptions(of: Pair.subscriber, scope: .private, in: $0).map(\.id)
        }
    }

    /// The subscriptions of all notifications, in order.
    private func told() throws -> [String] {
        try pair.log().compactMap { entry in
            ["met", "fet", "qry"].compactMap { entry["ck"]?[$0]?["sid"]?.string }.first
        }
    }

    @Test("who is bound to a zone is told of its deletion, and is gone with it; others stay")
    func deleted() throws {
        try pair.shard.zone(.create, ZoneKey(database: Fixture.annsData, name: "other"))
        for subscription in [
            Pair.subscription("all"), Pair.subscription("zone", zone: "work"),
            Pair.subscription("typed", zone: "work", type: "Bare"), Pair.subscription("other", zone: "other"),
            Self.query("query", zone: "work"), Self.query("queries"),
        ] {
            try pair.watch(subscription)
        }
        try pair.shard.zone(.delete, Fixture.work)
        try pair.deliverAll()
        #expect(try told() == ["all", "zone"])
        #expect(try left() == ["all", "other", "queries"])
        #expect(try pair.shard.count("SELECT count(*) FROM watcher") == 3)
        try pair.shard.zone(.create, Fixture.work)
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        try pair.deliverAll()
        #expect(try told() == ["all", "zone", "all", "all", "queries"])
        #expect(try save(Pair.subscription("again", zone: "work")) == nil, "it is no duplicate")
    }

    @Test("what is saved again for the zone's next life stays, however late the former one's end comes")
    func savedAgain() throws {
        let all = [Pair.subscription("zone", zone: "work"), Self.query("query", zone: "work")]
        for isLate in [false, true] {
            let before = try told().count
            for subscription in all { try pair.watch(saved(subscription, life: try life())) }
            try renew()
            if !isLate { try pair.deliverAll() }
            #expect(try left() == (isLate ? ["query", "zone"] : []))
            for subscription in all { #expect(try save(saved(subscription, life: try life())) == nil) }
            try pair.deliverAll()
            #expect(try left() == ["query", "zone"])
            _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
            try pair.deliverAll()
            let creation = isLate ? ["zone"] : []
            #expect(try told().dropFirst(before) == ["zone"] + creation + ["zone", "query"])
            try renew()
            try pair.deliverAll()
            #expect(try left().isEmpty)
        }
    }

    @Test("which life a subscription is for does not tell it from others; one of an ended life is in nobody's way")
    func equal() throws {
        func twin(_ id: String, life: UInt64?) throws -> ServiceError? {
            try save(saved(Pair.subscription(id, zone: "work"), life: life))
        }
        let first = try life()
        #expect(try twin("old", life: nil) == nil)
        let isThere = ServiceError(.exists, "subscription is duplicate of 'old'")
        #expect(try twin("twin", life: first) == isThere)
        #expect(try twin("old", life: first) == nil)
        #expect(try twin("twin", life: nil) == isThere)
        try pair.deliverAll()
        try renew()
        #expect(try twin("new", life: try life()) == nil)
        #expect(try twin("twin", life: try life())?.code == .exists)
        try pair.deliverAll()
        #expect(try left() == ["new"])
    }

    @Test("an end waits with the deletion where too much waits for a home, and comes in its place")
    func waits() throws {
        let kept = Pair.subscription("kept", zone: "work")
        let typed = Pair.subscription("typed", zone: "work", type: "Bare")
        for subscription in [kept, typed] { try pair.watch(saved(subscription, life: try life())) }
        func fill(rows: Int) throws {
            try pair.shard.queue.write {
                try $0.execute(
                    sql: "UPDATE outbox_stream SET rows = rows + ? WHERE destination = 1", arguments: [rows])
            }
        }
        _ = try pair.shard.one(Fixture.work, .make(.forceUpdate, "a"))
        try fill(rows: 10_000)
        try renew()
        #expect(try pair.shard.count("SELECT count(*) FROM matching") == 2)
        #expect(try save(saved(kept, life: try life())) == nil)
        try fill(rows: -10_000)
        try pair.deliverAll()
        #expect(try left() == ["kept", "typed"])
        try pair.shard.maintain(time: 1000)
        try pair.deliverAll()
        #expect(try told() == ["kept", "kept", "kept"], "of a record, the deletion and the creation")
        #expect(try left() == ["kept"])
    }

    @Test("a shard below feature level 12 tells of no end, and a home below it knows of none")
    func earlierLevels() throws {
        try pair.watch(Pair.subscription("zone", zone: "work"))
        let (old, new) = (FeatureLevel.changeTimes, FeatureLevel.boundSubscriptions)
        for (place, (shard, home)) in [(old, new), (new, old), (new, new)].enumerated() {
            let command = ModifyZone(.delete, zone: Fixture.work, caller: Fixture.ann, time: 1000)
            try pair.shard.run(level: shard) { _ = try $0.apply(.modifyZone(command)) }
            let delivery = try #require(
                try pair.shard.queue.read {
                    try WaitingEffects.nextDelivery(from: Pair.shardGroup, to: Pair.homeGroup, in: $0)
                })
            #expect(delivery.effects.count == (shard == old ? 1 : 2))
            let receipt = try pair.home.run(level: home) { try $0.deliver(delivery) }
            #expect(receipt.isTaken)
            #expect(try left() == (place < 2 ? ["zone"] : []))
            try pair.deliverAll()
            try pair.shard.zone(.create, Fixture.work)
            try pair.deliverAll()
        }
        #expect(try told().count == 5)
    }
}
