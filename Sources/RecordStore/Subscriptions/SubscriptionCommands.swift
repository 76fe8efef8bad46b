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

    /// Creates a value from its parts.
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
}

/// Saves and deletes subscriptions of one user.
package struct ModifySubscriptions: Hashable, Sendable {
    /// One change.
    package enum Change: Hashable, Sendable {
        /// - Parameter targets: the groups whose changes it may match, ascending.
        case save(Subscription, targets: [UInt64])
        case delete(Scope, id: String)
    }

    /// The user, by their private database.
    package var subscriber: DatabaseKey
    /// The group that the command is for, as its subscriber's home.
    package var home: UInt64
    /// Milliseconds since 1970 by the clock of the node that made the command.
    package var time: Int64
    /// Applied in order, each on its own.
    package var changes: [Change]

    /// Creates a value from its parts.
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

extension Watcher: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { subscriber.encode(to: &$0) }
        writer.field(2, home)
        writer.field(3) { subscription.encode(to: &$0) }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        var (subscriber, subscription): (DatabaseKey?, Subscription?)
        var home: UInt64 = 0
        while let field = try reader.nextField() {
            switch field {
            case 1: subscriber = try reader.message()
            case 2: home = try reader.unsigned()
            case 3: subscription = try reader.message()
            default: try reader.skip()
            }
        }
        guard let subscriber, let subscription else { throw .missingField(1) }
        self.init(subscriber: subscriber, home: home, subscription: subscription)
    }
}

extension Match: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { subscriber.encode(to: &$0) }
        writer.field(2, subscriptionID)
        writer.field(8, scope.rawValue)
        writer.field(3, signed: time)
        if let client { writer.field(4, client) }
        writer.field(5, id)
        writer.field(6) { zone.encode(to: &$0) }
        guard let record else { return }
        writer.field(7) { writer in
            writer.field(1, record.name)
            writer.field(2, record.type)
            writer.field(3, record.event.rawValue)
            if record.isCreator { writer.field(4, true) }
            writer.field(5) { record.fields.encode(to: &$0) }
        }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        var (subscriber, scope, zone): (DatabaseKey?, Scope?, ZoneKey?)
        var (subscriptionID, time, client): (String, Int64, String?) = ("", 0, nil)
        var (id, record): ([UInt8], Record?) = ([], nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: subscriber = try reader.message()
            case 2: subscriptionID = try reader.string()
            case 3: time = try reader.signed()
            case 4: client = try reader.string()
            case 5: id = try reader.array()
            case 6: zone = try reader.message()
            case 7: record = try Self.record(try reader.nested())
            case 8: scope = try reader.choice()
            default: try reader.skip()
            }
        }
        guard let subscriber, let scope, let zone else { throw .missingField(1) }
        guard id.count == 16 else { throw .invalidValue(field: 5) }
        self.init(
            subscriber: subscriber, scope: scope, subscriptionID: subscriptionID, time: time, client: client, id: id,
            zone: zone, record: record)
    }

    private static func record(_ nested: WireReader) throws(WireError) -> Record {
        var reader = nested
        var record = Record(name: "", type: "", event: .created, isCreator: false, fields: Fields())
        while let field = try reader.nextField() {
            switch field {
            case 1: record.name = try reader.string()
            case 2: record.type = try reader.string()
            case 3: record.event = try reader.choice()
            case 4: record.isCreator = try reader.bool()
            case 5: record.fields = try reader.message()
            default: try reader.skip()
            }
        }
        return record
    }
}

extension ModifySubscriptions: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { subscriber.encode(to: &$0) }
        writer.field(2, home)
        writer.field(3, signed: time)
        for change in changes {
            switch change {
            case .save(let subscription, let targets):
                writer.field(4) { writer in
                    writer.field(1) { subscription.encode(to: &$0) }
                    writer.fields(2, targets)
                }
            case .delete(let scope, let id):
                writer.field(5) { writer in
                    writer.field(1, scope.rawValue)
                    writer.field(2, id)
                }
            }
        }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        var subscriber: DatabaseKey?
        var (home, time, changes): (UInt64, Int64, [Change]) = (0, 0, [])
        while let field = try reader.nextField() {
            switch field {
            case 1: subscriber = try reader.message()
            case 2: home = try reader.unsigned()
            case 3: time = try reader.signed()
            case 4: changes.append(try Self.save(try reader.nested()))
            case 5: changes.append(try Self.deletion(try reader.nested()))
            default: try reader.skip()
            }
        }
        guard let subscriber else { throw .missingField(1) }
        self.init(subscriber: subscriber, home: home, time: time, changes: changes)
    }

    private static func save(_ nested: WireReader) throws(WireError) -> Change {
        var reader = nested
        var (subscription, targets): (Subscription?, [UInt64]) = (nil, [])
        while let field = try reader.nextField() {
            switch field {
            case 1: subscription = try reader.message()
            case 2: targets.append(try reader.unsigned())
            default: try reader.skip()
            }
        }
        guard let subscription else { throw .missingField(1) }
        return .save(subscription, targets: targets)
    }

    private static func deletion(_ nested: WireReader) throws(WireError) -> Change {
        var reader = nested
        var (scope, id): (Scope?, String) = (nil, "")
        while let field = try reader.nextField() {
            switch field {
            case 1: scope = try reader.choice()
            case 2: id = try reader.string()
            default: try reader.skip()
            }
        }
        guard let scope else { throw .missingField(1) }
        return .delete(scope, id: id)
    }
}

extension SubscriptionsOutcome: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        for failure in failures { writer.field(1) { writer in if let failure { failure.encode(to: &writer) } } }
        for mark in marks { writer.field(2) { mark.encode(to: &$0) } }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        self.init(failures: [], marks: [])
        while let field = try reader.nextField() {
            switch field {
            case 1:
                let bytes = try reader.slice()
                var nested = WireReader(bytes)
                failures.append(bytes.isEmpty ? nil : try ServiceError(from: &nested))
            case 2: marks.append(try reader.message())
            default: try reader.skip()
            }
        }
    }
}
