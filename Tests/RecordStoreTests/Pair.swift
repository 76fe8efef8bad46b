import GRDB
import RecordModel
import RecordStore
import Testing
import Wire

/// Two shards whose effects on each other are delivered by hand.
struct Pair {
    let home: Fixture
    let shard: Fixture

    static let subscriber = Fixture.annsData
    static let homeGroup: UInt64 = 1
    static let shardGroup: UInt64 = 2

    init() throws {
        home = try Fixture()
        shard = try Fixture()
    }

    @discardableResult
    func modify(_ changes: ModifySubscriptions.Change...) throws -> SubscriptionsOutcome {
        let command = ModifySubscriptions(
            subscriber: Self.subscriber, home: Self.homeGroup, time: 1000, changes: changes)
        let decoded = try ModifySubscriptions(decodingStrictly: command.encoded())
        let outcome = try home.run { try $0.modify(decoded) }
        return try SubscriptionsOutcome(decoding: outcome.encoded())
    }

    /// Delivers what waits at one shard for the other, and has it acknowledged.
    func deliver(_ from: Fixture, _ source: UInt64, _ to: Fixture, _ destination: UInt64) throws {
        while let next = try from.queue.read({
            try WaitingEffects.nextDelivery(from: source, to: destination, in: $0)
        }) {
            let delivery = try OutboxDelivery(decodingStrictly: next.encoded())
            let receipt = try to.run { try $0.deliver(delivery) }
            #expect(receipt.isTaken)
            try from.run {
                try $0.acknowledge(
                    OutboxAcknowledgement(
                        destination: destination, incarnation: delivery.incarnation, through: delivery.last))
            }
        }
    }

    func deliverAll() throws {
        try deliver(home, Self.homeGroup, shard, Self.shardGroup)
        try deliver(shard, Self.shardGroup, home, Self.homeGroup)
        try deliver(home, Self.homeGroup, shard, Self.shardGroup)
    }

    func watch(_ subscription: Subscription) throws {
        #expect(try modify(.save(subscription, targets: [Self.shardGroup])).failures == [nil])
        try deliverAll()
    }

    static func subscription(_ id: String, zone: String? = nil, type: String? = nil) -> Subscription {
        var subscription = Subscription(id: id, scope: .private, kind: zone == nil ? .database : .zone)
        subscription.zone = zone
        subscription.recordType = type
        return subscription
    }

    /// A subscription to the notes whose rank is a number.
    static func query(
        _ id: String, rank: Int64?, scope: Scope = .public, _ firing: Subscription.Firing = .all, info: String = ""
    ) -> Subscription {
        var subscription = Subscription(id: id, scope: scope, kind: .query)
        subscription.recordType = "Note"
        subscription.query = Query(
            recordType: "Note",
            filters: rank.map { [Filter(field: "rank", comparator: .equals, value: .int64($0))] } ?? [])
        subscription.firing = firing
        subscription.info = Array(info.utf8)
        return subscription
    }

    func page(
        _ token: NotificationToken? = nil, client: String? = nil, limit: Int = 200
    ) throws -> NotificationLog.Page {
        try home.queue.read {
            try NotificationLog.page(
                of: Self.subscriber, since: token, client: client, hidden: NotificationLog.Hidden(), limit: limit,
                in: $0)
        }
    }

    /// Why a token cannot be followed; nil if it can.
    func expiry(of token: NotificationToken) throws -> NotificationLog.Expiry? {
        if case .expired(let expiry) = try page(token) { expiry } else { nil }
    }

    func log(client: String? = nil) throws -> [JSONValue] {
        guard case .entries(let entries, _, false) = try page(client: client) else { return [] }
        return try entries.map { try JSONParser.parse($0.payload) }
    }

    func token() throws -> NotificationToken {
        guard case .entries(_, let token, _) = try page() else { throw ServiceError(.internalError, "expired") }
        return token
    }
}

extension Fixture {
    @discardableResult
    func run<Result>(
        level: FeatureLevel = FeatureLevel.supported.upperBound, _ body: (RecordTransaction) throws -> Result
    ) throws -> Result {
        try queue.write { db in
            let transaction = try tables.begin(in: db, level: level)
            let result = try body(transaction)
            try transaction.finish()
            return result
        }
    }
}
