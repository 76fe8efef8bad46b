package import GRDB
package import RecordModel
import Wire

/// A user's row at home, in a container's environment.
struct RegistryRow {
    var id: Int64
    /// Tells it from an earlier one of the same user, whose container was deleted.
    var life: Int64
    /// That of the last notification.
    var sequence: Int64
    /// Notifications up to here are not kept any more.
    var floor: Int64

    static let tables = """
        CREATE TABLE IF NOT EXISTS registry (
            id INTEGER PRIMARY KEY, container TEXT NOT NULL, environment INTEGER NOT NULL, user TEXT NOT NULL,
            home INTEGER NOT NULL, life INTEGER NOT NULL, sequence INTEGER NOT NULL, floor INTEGER NOT NULL,
            UNIQUE (container, environment, user));
        CREATE TABLE IF NOT EXISTS subscription (
            id INTEGER PRIMARY KEY, registry INTEGER NOT NULL, scope INTEGER NOT NULL, name TEXT NOT NULL,
            targets BLOB NOT NULL, body BLOB NOT NULL, is_sent INTEGER NOT NULL, UNIQUE (registry, scope, name));
        CREATE INDEX IF NOT EXISTS subscription_unsent ON subscription (id) WHERE is_sent = 0;
        CREATE TABLE IF NOT EXISTS notification (
            registry INTEGER NOT NULL, sequence INTEGER NOT NULL, time INTEGER NOT NULL, client TEXT,
            type TEXT, is_creator INTEGER NOT NULL, payload BLOB NOT NULL,
            PRIMARY KEY (registry, sequence)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS notification_age ON notification (time);
        CREATE TABLE IF NOT EXISTS watcher (
            id INTEGER PRIMARY KEY, container TEXT NOT NULL, environment INTEGER NOT NULL, scope INTEGER NOT NULL,
            owner TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL,
            UNIQUE (container, environment, scope, owner, user, name));
        """

    /// - Parameter subscriber: the user's private database.
    static func find(_ subscriber: DatabaseKey, in db: Database) throws -> RegistryRow? {
        try db.first(
            "SELECT id, life, sequence, floor FROM registry WHERE container = ? AND environment = ? AND user = ?",
            subscriber.container, subscriber.environment.column, subscriber.owner
        ) { row in
            RegistryRow(
                id: row.integer(0), life: row.integer(1), sequence: row.integer(2), floor: row.integer(3))
        }
    }
}

/// A subscription at home, with the groups that have copies.
struct SubscriptionRow {
    var id: Int64
    var targets: [UInt64]
    /// As `Watcher.generation`.
    var generation: Int64 = 0
    var subscription: Subscription

    static func find(
        _ registry: Int64, scope: Scope, id: String, in db: Database
    ) throws -> SubscriptionRow? {
        try db.first(
            "SELECT id, targets, body FROM subscription WHERE registry = ? AND scope = ? AND name = ?", registry,
            scope.column, id
        ) { try SubscriptionRow($0, scope: scope, name: id) }
    }

    /// A row of `id, targets, body`.
    init(_ row: SQLRow, scope: Scope, name: String) throws {
        id = row.integer(0)
        targets = []
        var reader = WireReader(row.bytes(1))
        while let field = try reader.nextField() {
            if field == 1 { targets.append(try reader.unsigned()) } else { generation = try reader.signed() }
        }
        subscription = try Subscription(decoding: row.bytes(2))
        subscription.scope = scope
        subscription.id = name
    }

    static func encoded(_ targets: [UInt64], generation: Int64) -> [UInt8] {
        var writer = WireWriter()
        writer.fields(1, targets)
        if generation != 0 { writer.field(2, signed: generation) }
        return writer.bytes
    }
}

/// Users with subscriptions or notifications on a shard.
package enum Subscribers {
    /// A user's subscriptions to databases of a scope, by name.
    /// - Parameters:
    ///   - subscriber: the user's private database.
    ///   - ids: those that are asked for; nil is all.
    package static func subscriptions(
        of subscriber: DatabaseKey, scope: Scope, ids: [String]? = nil, in db: Database
    ) throws -> [Subscription] {
        guard let registry = try RegistryRow.find(subscriber, in: db) else { return [] }
        if let ids {
            return try ids.compactMap { id in
                try SubscriptionRow.find(registry.id, scope: scope, id: id, in: db)?.subscription
            }
        }
        return try db.all(
            "SELECT id, targets, body, name FROM subscription WHERE registry = ? AND scope = ? ORDER BY name",
            registry.id, scope.column
        ) { row in
            try SubscriptionRow(row, scope: scope, name: row.text(3)).subscription
        }
    }

    /// Users with subscriptions or notifications here, in a container's environment: the owners of their private
    /// databases, ascending.
    /// - Parameter user: the list begins after this one.
    package static func page(
        container: String, _ environment: Environment, after user: String, limit: Int, in db: Database
    ) throws -> [String] {
        try db.all(
            "SELECT user FROM registry WHERE container = ? AND environment = ? AND user > ? ORDER BY user LIMIT ?",
            container, environment.column, user, limit
        ) { $0.text(0) }
    }

    /// Whether no copy of a subscription is to be sent, and no effect waits to be delivered.
    package static func hasSentCopies(in db: Database) throws -> Bool {
        let waits = try db.first(
            """
            SELECT EXISTS (SELECT 1 FROM subscription WHERE is_sent = 0)
                OR EXISTS (SELECT 1 FROM outbox_stream WHERE rows > 0)
            """
        ) { $0.integer(0) != 0 }
        return waits != true
    }
}

// A webhook subscribes as a user does, under a name that no user has. What it hears of private databases is of every
// user's.
extension DatabaseKey {
    private static let webhookPrefix = "_webhook/"

    /// The private database that stands for a webhook, as one stands for each user.
    /// - Parameter id: the webhook's.
    package static func webhook(_ id: String, container: String, environment: Environment) -> DatabaseKey {
        DatabaseKey(container: container, environment: environment, scope: .private, owner: webhookPrefix + id)
    }

    /// Whether it stands for a webhook.
    package var isOfWebhook: Bool { owner.hasPrefix(Self.webhookPrefix) }

    /// What stands for the private databases of all users.
    var ofEveryOwner: DatabaseKey {
        var all = self
        all.owner = ""
        return all
    }
}

/// Those who watch one database.
struct WatchersOfDatabase {
    var own: DatabaseWatchers
    /// Those who watch the databases of all users; from `FeatureLevel.webhooks` on.
    var ofEveryOwner: DatabaseWatchers?

    var isEmpty: Bool { own.isEmpty && ofEveryOwner?.isEmpty ?? true }

    /// Of zones and of the whole database, by row.
    var zones: [WatcherEntry] {
        guard let others = ofEveryOwner?.zones, !others.isEmpty else { return own.zones }
        return (own.zones + others).sorted { $0.id < $1.id }
    }

    /// Those whom a change of a zone may concern, by row: that it was deleted those with queries in it, too.
    func all(for matching: ZoneMatching) -> [WatcherEntry] {
        let queries = matching.endsZone ? own.queries(in: matching.change.zone) : []
        return queries.isEmpty ? zones : (zones + queries).sorted { $0.id < $1.id }
    }
}
