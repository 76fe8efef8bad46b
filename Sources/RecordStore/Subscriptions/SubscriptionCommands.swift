package import RecordModel
package import Wire

/// A subscription where it is matched: a copy of the one at its subscriber's home.
package struct Watcher: Hashable, Sendable {
    /// The subscriber's private database: the user in a container's environment.
    package var subscriber: DatabaseKey
    /// The number of the group that has the subscriber's subscriptions and notifications.
    package var home: UInt64
    /// What is watched.
    package var subscription: Subscription
    /// Tells the subscription from an earlier one of the same name; 0 for what was made below
    /// `FeatureLevel.exactNotifications`.
    package var generation: Int64 = 0

    package init(subscriber: DatabaseKey, home: UInt64, subscription: Subscription) {
        self.subscriber = subscriber
        self.home = home
        self.subscription = subscription
    }

    /// The database whose changes are matched.
    package var database: DatabaseKey {
        var database = subscriber
        database.scope = subscription.scope
        if subscription.scope == .public { database.owner = DatabaseKey.publicOwner }
        if subscription.scope == .private, subscriber.isOfWebhook { database = database.ofEveryOwner }
        return database
    }
}

/// A change that a subscription is to tell of.
package struct Match: Hashable, Sendable {
    /// What happened to a record; the raw value is CloudKit's `fo`.
    package enum Event: UInt64, Hashable, Sendable, CaseIterable {
        case created = 1
        case updated, deleted
    }

    /// The record, for a query subscription.
    package struct Record: Hashable, Sendable {
        /// The record's name.
        package var name: String
        /// The record's type.
        package var type: String
        /// What happened to it.
        package var event: Event
        /// Whether the subscriber made the record.
        package var isCreator: Bool
        /// Those that the notification shows; never of a deletion.
        package var fields: Fields
    }

    /// The user, by their private database.
    package var subscriber: DatabaseKey
    /// Of which databases the subscription is.
    package var scope: Scope
    /// The name of the subscription.
    package var subscriptionID: String
    /// Milliseconds since 1970.
    package var time: Int64
    /// The device that made the change, as it names itself.
    package var client: String?
    /// A UUID in 16 bytes, the same for all subscriptions that tell of one change.
    package var id: [UInt8]
    /// Where something changed.
    package var zone: ZoneKey
    /// Nil for changes of zones.
    package var record: Record?
    /// As `Watcher.generation`.
    package var generation: Int64 = 0
}

/// Saves, deletes and tests subscriptions of one user.
package struct ModifySubscriptions: Hashable, Sendable {
    /// One change.
    package enum Change: Hashable, Sendable {
        /// - Parameter targets: the groups whose changes it may match, ascending.
        case save(Subscription, targets: [UInt64])
        case delete(Scope, id: String)
        /// Enters a notification that says it is a test; from `FeatureLevel.testNotifications` on.
        /// - Parameter change: the name of what it tells of, 16 bytes.
        case test(Scope, id: String, change: [UInt8])
    }

    /// The user, by their private database.
    package var subscriber: DatabaseKey
    /// The group that the command is for, as its subscriber's home.
    package var home: UInt64
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64
    /// Applied in order, each on its own.
    package var changes: [Change]

    package init(subscriber: DatabaseKey, home: UInt64, time: Int64, changes: [Change]) {
        self.subscriber = subscriber
        self.home = home
        self.time = time
        self.changes = changes
    }
}

/// What became of `ModifySubscriptions`.
package struct SubscriptionsOutcome: Hashable, Sendable {
    /// For each change nil, or why nothing was done.
    package var failures: [ServiceError?]
    /// The changes are in force everywhere once effects up to here are delivered.
    package var marks: [OutboxMark]
}

extension Watcher: WireMessage {
    package static var blank: Self { Watcher(subscriber: .blank, home: 0, subscription: .blank) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &subscriber)
        try wire.field(2, &home)
        try wire.required(3, &subscription)
        try wire.field(4, &generation, unless: 0)
    }
}

extension Match: WireMessage {
    package static var blank: Self {
        Match(subscriber: .blank, scope: .private, subscriptionID: "", time: 0, id: [], zone: .blank)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &subscriber)
        try wire.required(2, &scope)
        try wire.required(3, &subscriptionID)
        try wire.field(4, &time)
        try wire.field(5, &client)
        try wire.required(6, &id)
        try wire.required(7, &zone)
        try wire.field(8, &record)
        try wire.field(9, &generation, unless: 0)
    }

    package func check() throws(WireError) {
        guard id.count == 16 else { throw .invalidValue(field: 6) }
    }
}

extension Match.Event: WireValue {}

extension Match.Record: WireMessage {
    package static var blank: Self {
        Match.Record(name: "", type: "", event: .created, isCreator: false, fields: Fields())
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &name)
        try wire.required(2, &type)
        try wire.required(3, &event)
        try wire.field(4, &isCreator, unless: false)
        try wire.field(5, nested: &fields)
    }
}

extension ModifySubscriptions: WireMessage {
    package static var blank: Self { ModifySubscriptions(subscriber: .blank, home: 0, time: 0, changes: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &subscriber)
        try wire.field(2, &home)
        try wire.field(3, &time)
        try wire.field(4, &changes)
    }

    package func check() throws(WireError) {
        for case .test(_, _, let change) in changes where change.count != 16 { throw .invalidValue(field: 4) }
    }
}

extension ModifySubscriptions.Change: WireUnion {
    package func encode(to writer: inout WireWriter) {
        switch self {
        case .save(let subscription, let targets): writer.parts(1, subscription, targets)
        case .delete(let scope, let id): writer.parts(2, scope, id)
        case .test(let scope, let id, let change): writer.parts(3, scope, id, change)
        }
    }

    package init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = try reader.parts { .save($0, targets: $1) }
        case 2: self = try reader.parts { .delete($0, id: $1) }
        case 3: self = try reader.parts { .test($0, id: $1, change: $2) }
        default: return nil
        }
    }
}

extension SubscriptionsOutcome: WireMessage {
    package static var blank: Self { SubscriptionsOutcome(failures: [], marks: []) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &items)
        try wire.field(2, &marks)
    }

    private struct Item: WireMessage {
        var failure: ServiceError?
        static var blank: Self { Item() }
        mutating func fields(_ wire: inout WireFields) throws(WireError) { try wire.field(1, &failure) }
    }

    private var items: [Item] {
        get { failures.map { Item(failure: $0) } }
        set { failures = newValue.map(\.failure) }
    }
}
