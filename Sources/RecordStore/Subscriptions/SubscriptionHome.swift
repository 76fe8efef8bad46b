import GRDB
import RecordModel
import Wire

/// The subscriptions and notifications of the users whose home this shard is.
struct SubscriptionHome {
    let db: Database
    private let level: FeatureLevel
    private let outbox: Outbox

    init(db: Database, level: FeatureLevel) {
        self.db = db
        self.level = level
        outbox = Outbox(db: db, level: level)
    }

    /// Saves and deletes subscriptions at their home.
    /// - Parameter life: that of a subscriber who has no row yet.
    func modify(_ command: ModifySubscriptions, life: Int64) throws -> SubscriptionsOutcome {
        let registry = try RegistryRow.find(command.subscriber, in: db) ?? makeRegistry(for: command, life)
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

    private func makeRegistry(for command: ModifySubscriptions, _ life: Int64) throws -> RegistryRow {
        try SQLStatement(cached: "INSERT INTO registry VALUES (NULL, ?, ?, ?, ?, ?, 0, 0)", in: db).run(
            .text(command.subscriber.container), .integer(command.subscriber.environment.column),
            .text(command.subscriber.owner), .integer(Int64(bitPattern: command.home)), .integer(life))
        return RegistryRow(id: db.lastInsertedRowID, life: life, sequence: 0, floor: 0)
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

    /// Makes an entry of the subscriber's log.
    /// - Parameter time: when, in milliseconds since 1970.
    /// - Returns: whether there still is such a subscription.
    func notify(_ match: Match, at time: Int64) throws -> Bool {
        guard var registry = try RegistryRow.find(match.subscriber, in: db),
            let row = try SubscriptionRow.find(registry.id, scope: match.scope, id: match.subscriptionID, in: db),
            let payload = NotificationPayload.json(of: match, for: row.subscription, at: level)
        else { return false }
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
        return true
    }

    /// Sends copies again that a restore has removed; the rest waits where too much waits to be delivered.
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
        var count = 0
        for case let (row, watcher)? in waiting {
            if try row.targets.contains(where: { try outbox.isFull(for: $0) }) { break }
            for target in row.targets { try outbox.send(.watch(watcher), to: target) }
            try SQLStatement(cached: "UPDATE subscription SET is_sent = 1 WHERE id = ?", in: db).run(.integer(row.id))
            count += 1
        }
        return count
    }

    /// Removes notifications that are too old at a time.
    /// - Returns: how many rows that were.
    func purge(at time: Int64, budget: Int) throws -> Int {
        let old = try SQLStatement(
            cached: """
                SELECT registry, sequence FROM notification WHERE time < ? ORDER BY time, registry, sequence LIMIT ?
                """, in: db
        ).all(.integer(NotificationLog.cutoff(time)), .integer(Int64(budget))) { ($0.integer(0), $0.integer(1)) }
        for (registry, sequence) in old {
            try SQLStatement(cached: "DELETE FROM notification WHERE registry = ? AND sequence = ?", in: db)
                .run(.integer(registry), .integer(sequence))
            try SQLStatement(cached: "UPDATE registry SET floor = max(floor, ?) WHERE id = ?", in: db)
                .run(.integer(sequence), .integer(registry))
        }
        return old.count
    }

    /// The greatest life of a container's users; 0 where there are none.
    func lastLife(of container: String) throws -> Int64 {
        try SQLStatement(cached: "SELECT max(life) FROM registry WHERE container = ?", in: db)
            .first(.text(container)) { $0.integer(0) } ?? 0
    }

    /// Removes a part of what a container's users have here; uses up the budget where more is left.
    func remove(container: String, budget: inout Int) throws {
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
        ] where budget > 0 {
            try SQLStatement(cached: sql, in: db).run(.text(container), .integer(Int64(budget)))
            budget -= db.changesCount
        }
    }
}
