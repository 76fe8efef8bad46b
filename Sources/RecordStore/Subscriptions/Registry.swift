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
        try SQLStatement(
            cached: """
                SELECT id, life, sequence, floor FROM registry WHERE container = ? AND environment = ? AND user = ?
                """, in: db
        ).first(.text(subscriber.container), .integer(subscriber.environment.column), .text(subscriber.owner)) { row in
            RegistryRow(
                id: row.integer(0), life: row.integer(1), sequence: row.integer(2), floor: row.integer(3))
        }
    }
}

/// A subscription at home, with the groups that have copies.
struct SubscriptionRow {
    var id: Int64
    var targets: [UInt64]
    var subscription: Subscription

    static func find(
        _ registry: Int64, scope: Scope, id: String, in db: Database
    ) throws -> SubscriptionRow? {
        try SQLStatement(
            cached: "SELECT id, targets, body FROM subscription WHERE registry = ? AND scope = ? AND name = ?", in: db
        ).first(.integer(registry), .integer(scope.column), .text(id)) {
            try SubscriptionRow($0, scope: scope, name: id)
        }
    }

    /// A row of `id, targets, body`.
    init(_ row: SQLRow, scope: Scope, name: String) throws {
        id = row.integer(0)
        targets = []
        var reader = WireReader(row.bytes(1))
        while try reader.nextField() != nil { targets.append(try reader.unsigned()) }
        subscription = try Subscription(decoding: row.bytes(2))
        subscription.scope = scope
        subscription.id = name
    }

    static func encoded(_ targets: [UInt64]) -> [UInt8] {
        var writer = WireWriter()
        writer.fields(1, targets)
        return writer.bytes
    }
}

extension RecordTables {
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
        return try SQLStatement(
            cached: "SELECT id, targets, body, name FROM subscription WHERE registry = ? AND scope = ? ORDER BY name",
            in: db
        ).all(.integer(registry.id), .integer(scope.column)) { row in
            try SubscriptionRow(row, scope: scope, name: row.text(3)).subscription
        }
    }
}

// At home.
extension RecordTransaction {
    /// Saves and deletes subscriptions at their home.
    package func modify(_ command: ModifySubscriptions) throws -> SubscriptionsOutcome {
        commandNumber += 1
        observe(command.time)
        guard level >= .notifications else {
            let error = ServiceError(
                .tryAgainLater, "subscriptions need feature level \(FeatureLevel.notifications)", retryAfterSeconds: 1)
            return SubscriptionsOutcome(failures: command.changes.map { _ in error }, marks: [])
        }
        let registry = try RegistryRow.find(command.subscriber, in: db) ?? makeRegistry(for: command)
        var (failures, destinations): ([ServiceError?], Set<UInt64>) = ([], [])
        for change in command.changes {
            switch change {
            case .save(let subscription, let targets):
                let failure = try save(subscription, for: command, targets, in: registry)
                if failure == nil { destinations.formUnion(targets) }
                failures.append(failure)
            case .delete(let scope, let id):
                let row = try SubscriptionRow.find(registry.id, scope: scope, id: id, in: db)
                if let row {
                    try remove(row, of: command.subscriber)
                    destinations.formUnion(row.targets)
                }
                failures.append(row == nil ? ServiceError(.notFound, "no subscription '\(id)'") : nil)
            }
        }
        return SubscriptionsOutcome(
            failures: failures, marks: try destinations.sorted().map { try outbox.mark(of: $0) })
    }

    private func makeRegistry(for command: ModifySubscriptions) throws -> RegistryRow {
        try SQLStatement(cached: "INSERT INTO registry VALUES (NULL, ?, ?, ?, ?, ?, 0, 0)", in: db).run(
            .text(command.subscriber.container), .integer(command.subscriber.environment.column),
            .text(command.subscriber.owner), .integer(Int64(bitPattern: command.home)), .integer(incarnationFloor))
        return RegistryRow(id: db.lastInsertedRowID, life: incarnationFloor, sequence: 0, floor: 0)
    }

    private func save(
        _ subscription: Subscription, for command: ModifySubscriptions, _ targets: [UInt64], in registry: RegistryRow
    ) throws -> ServiceError? {
        let earlier = try SubscriptionRow.find(registry.id, scope: subscription.scope, id: subscription.id, in: db)
        if earlier?.subscription == subscription, earlier?.targets == targets { return nil }
        let content = subscription.content
        if let refusal = try refusal(of: subscription, content, isNew: earlier == nil, in: registry) { return refusal }
        for target in targets where try outbox.isFull(for: target) {
            return ServiceError(
                .tryAgainLater, "nothing was done: too much waits to be delivered to group \(target)",
                retryAfterSeconds: 5)
        }
        let full = SubscriptionRow.encoded(targets)
        if let earlier {
            try SQLStatement(cached: "UPDATE subscription SET targets = ?, body = ? WHERE id = ?", in: db).run(
                .blob(full), .blob(content), .integer(earlier.id))
            for target in earlier.targets where !targets.contains(target) {
                try outbox.send(unwatch(subscription, of: command.subscriber), to: target)
            }
        } else {
            try SQLStatement(cached: "INSERT INTO subscription VALUES (NULL, ?, ?, ?, ?, ?, 1)", in: db).run(
                .integer(registry.id), .integer(subscription.scope.column), .text(subscription.id), .blob(full),
                .blob(content))
        }
        let watcher = Watcher(subscriber: command.subscriber, home: command.home, subscription: subscription)
        for target in targets { try outbox.send(.watch(watcher), to: target) }
        return nil
    }

    private func refusal(
        of subscription: Subscription, _ content: [UInt8], isNew: Bool, in registry: RegistryRow
    ) throws -> ServiceError? {
        let equal = try SQLStatement(
            cached: "SELECT name FROM subscription WHERE registry = ? AND scope = ? AND name <> ? AND body = ?", in: db
        ).first(
            .integer(registry.id), .integer(subscription.scope.column), .text(subscription.id), .blob(content)
        ) { $0.text(0) }
        if let equal { return ServiceError(.exists, "subscription is duplicate of '\(equal)'") }
        guard isNew else { return nil }
        let count =
            try SQLStatement(cached: "SELECT count(*) FROM subscription WHERE registry = ?", in: db)
            .first(.integer(registry.id)) { $0.integer(0) } ?? 0
        guard count >= Limits.subscriptionsMax else { return nil }
        return ServiceError(
            .badRequest, "the user has \(count) subscriptions, which is the most there may be: delete some")
    }

    private func unwatch(_ subscription: Subscription, of subscriber: DatabaseKey) -> Effect {
        .unwatch(subscriber: subscriber, scope: subscription.scope, id: subscription.id)
    }

    private func remove(_ row: SubscriptionRow, of subscriber: DatabaseKey) throws {
        try SQLStatement(cached: "DELETE FROM subscription WHERE id = ?", in: db).run(.integer(row.id))
        for target in row.targets { try outbox.send(unwatch(row.subscription, of: subscriber), to: target) }
    }

    /// Makes an entry of the subscriber's log, if there still is such a subscription.
    func notify(_ match: Match) throws {
        guard var registry = try RegistryRow.find(match.subscriber, in: db),
            let row = try SubscriptionRow.find(registry.id, scope: match.scope, id: match.subscriptionID, in: db),
            let payload = NotificationPayload.json(of: match, for: row.subscription)
        else { return }
        registry.sequence += 1
        try SQLStatement(cached: "INSERT INTO notification VALUES (?, ?, ?, ?, ?, ?, ?)", in: db).run(
            .integer(registry.id), .integer(registry.sequence), .integer(time),
            match.client.map { .text($0) } ?? .null,
            // Private records are their owner's to read, whatever roles say.
            match.scope == .private ? .null : match.record.map { .text($0.type) } ?? .null,
            .integer(match.record?.isCreator == true ? 1 : 0), .blob(payload))
        // One comes, so one goes at most.
        if registry.sequence - registry.floor > Limits.notificationsMax {
            registry.floor = registry.sequence - Limits.notificationsMax
            try SQLStatement(cached: "DELETE FROM notification WHERE registry = ? AND sequence <= ?", in: db)
                .run(.integer(registry.id), .integer(registry.floor))
        }
        try SQLStatement(cached: "UPDATE registry SET sequence = ?, floor = ? WHERE id = ?", in: db).run(
            .integer(registry.sequence), .integer(registry.floor), .integer(registry.id))
        if row.subscription.firesOnce { try remove(row, of: match.subscriber) }
        notified.append(match.subscriber)
    }

    /// Sends copies again that a restore has removed.
    /// - Returns: how many subscriptions that were.
    func sendCopies(budget: Int) throws -> Int {
        let waiting = try SQLStatement(
            cached: """
                SELECT s.id, s.targets, s.body, s.scope, s.name, r.container, r.environment, r.user, r.home
                FROM subscription s JOIN registry r ON r.id = s.registry WHERE s.is_sent = 0 ORDER BY s.id LIMIT ?
                """, in: db
        ).all(.integer(Int64(budget))) { row -> (SubscriptionRow, Watcher)? in
            guard let scope = Scope(column: row.integer(3)), let environment = Environment(column: row.integer(6))
            else { return nil }
            let found = try SubscriptionRow(row, scope: scope, name: row.text(4))
            let subscriber = DatabaseKey(
                container: row.text(5), environment: environment, scope: .private, owner: row.text(7))
            let home = UInt64(bitPattern: row.integer(8))
            return (found, Watcher(subscriber: subscriber, home: home, subscription: found.subscription))
        }
        for case let (row, watcher)? in waiting {
            for target in row.targets { try outbox.send(.watch(watcher), to: target) }
            try SQLStatement(cached: "UPDATE subscription SET is_sent = 1 WHERE id = ?", in: db).run(.integer(row.id))
        }
        return waiting.count
    }

    /// Removes notifications that are too old.
    /// - Returns: how many rows that were.
    func purgeNotifications(budget: Int) throws -> Int {
        let old = try SQLStatement(
            cached: "SELECT registry, sequence FROM notification WHERE time < ? ORDER BY time LIMIT ?", in: db
        ).all(.integer(NotificationLog.cutoff(time)), .integer(Int64(budget))) { ($0.integer(0), $0.integer(1)) }
        for (registry, sequence) in old {
            try SQLStatement(cached: "DELETE FROM notification WHERE registry = ? AND sequence = ?", in: db)
                .run(.integer(registry), .integer(sequence))
            try SQLStatement(cached: "UPDATE registry SET floor = max(floor, ?) WHERE id = ?", in: db)
                .run(.integer(sequence), .integer(registry))
        }
        return old.count
    }

    /// Removes a part of what a container's users have here.
    /// - Returns: whether nothing is left.
    func removeSubscriptions(of container: String, budget: inout Int) throws -> Bool {
        guard level >= .notifications else { return true }
        let lives =
            try SQLStatement(cached: "SELECT max(life) FROM registry WHERE container = ?", in: db)
            .first(.text(container)) { $0.integer(0) } ?? 0
        // Tokens of the old lives shall fit no new one.
        if lives >= incarnationFloor {
            incarnationFloor = lives + 1
            try SQLStatement(cached: "UPDATE record_state SET incarnation_floor = ?", in: db)
                .run(.integer(incarnationFloor))
        }
        for sql in [
            """
            DELETE FROM notification WHERE (registry, sequence) IN (SELECT n.registry, n.sequence FROM notification n
                JOIN registry r ON r.id = n.registry WHERE r.container = ?1 LIMIT ?2)
            """,
            """
            DELETE FROM subscription WHERE id IN (SELECT s.id FROM subscription s
                JOIN registry r ON r.id = s.registry WHERE r.container = ?1 LIMIT ?2)
            """,
            "DELETE FROM registry WHERE id IN (SELECT id FROM registry WHERE container = ?1 LIMIT ?2)",
            "DELETE FROM watcher WHERE id IN (SELECT id FROM watcher WHERE container = ?1 LIMIT ?2)",
        ] {
            try SQLStatement(cached: sql, in: db).run(.text(container), .integer(Int64(budget)))
            budget -= db.changesCount
            guard budget > 0 else { return false }
        }
        try reviseWatchers()
        return true
    }
}
