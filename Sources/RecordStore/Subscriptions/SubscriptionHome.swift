import GRDB
import RecordModel
import Wire

/// How large subscriptions may be, in the binary form.
package enum SubscriptionBounds {
    /// Bytes of one.
    package static let bytesMax = 16 << 10
    /// Bytes of all of one user in a container's environment.
    package static let bytesOfUserMax = 1 << 20
}

/// The subscriptions of the users whose home this shard is, and what they tell them.
struct SubscriptionHome {
    let db: Database
    private let level: FeatureLevel
    private let outbox: Outbox
    private let log: NotificationRows

    /// Makes what a shard lacks of the tables for effects and notifications.
    static func makeTables(in db: Database) throws {
        if try !db.tableExists("outbox") { try db.execute(sql: Outbox.tables + RegistryRow.tables) }
        if try !db.tableExists("matching") { try db.execute(sql: MatchingQueue.tables + WatcherTable.tables) }
        if try !db.tableExists("log_reader") { try db.execute(sql: LogReaderTable.tables) }
        if try !db.tableExists("subscriber_life") { try db.execute(sql: lives) }
    }

    /// The least life of a subscriber who comes; no row until one has gone.
    private static let lives = "CREATE TABLE subscriber_life (id INTEGER PRIMARY KEY, least INTEGER NOT NULL)"

    init(db: Database, level: FeatureLevel) {
        self.db = db
        self.level = level
        outbox = Outbox(db: db, level: level)
        log = NotificationRows(db: db, level: level)
    }

    /// Saves, deletes and tests subscriptions at their home.
    /// - Parameters:
    ///   - life: that of a subscriber who has no row yet.
    ///   - time: the shard's.
    ///   - notified: gets those whose notifications grew.
    func modify(
        _ command: ModifySubscriptions, life: Int64, at time: Int64, notified: inout [DatabaseKey]
    ) throws -> SubscriptionsOutcome {
        let registry = try registry(of: command.subscriber, home: command.home, life: life)
        var (failures, destinations): ([ServiceError?], Set<UInt64>) = ([], [])
        for change in command.changes {
            switch change {
            case .save(let subscription, let targets):
                let earlier = try SubscriptionRow.find(
                    registry.id, scope: subscription.scope, id: subscription.id, in: db)
                let failure = try save(subscription, for: command, targets, in: registry, earlier)
                // Groups that match it no more have to know, too.
                if failure == nil { destinations.formUnion(targets + (earlier?.targets ?? [])) }
                failures.append(failure)
            case .test(let scope, let id, let change):
                let row = try SubscriptionRow.find(registry.id, scope: scope, id: id, in: db)
                let failure = row == nil ? Self.noSubscription(id) : nil
                if let row { try test(row.subscription, change, for: command, at: time) }
                if failure == nil { notified.append(command.subscriber) }
                failures.append(failure)
            case .delete(let scope, let id):
                let row = try SubscriptionRow.find(registry.id, scope: scope, id: id, in: db)
                var failure: ServiceError? = Self.noSubscription(id)
                if let row { failure = try delete(row, of: command.subscriber) }
                if failure == nil { destinations.formUnion(row?.targets ?? []) }
                failures.append(failure)
            }
        }
        return SubscriptionsOutcome(
            failures: failures, marks: try destinations.sorted().map { try outbox.mark(of: $0) })
    }

    private static func noSubscription(_ id: String) -> ServiceError {
        ServiceError(.notFound, "no subscription '\(id)'")
    }

    /// Enters a notification as the subscription would tell of something, marked as a test. One that fires once is not
    /// used up by it.
    private func test(
        _ subscription: Subscription, _ change: [UInt8], for command: ModifySubscriptions, at time: Int64
    ) throws {
        guard let registry = try RegistryRow.find(command.subscriber, in: db) else { return }
        let watcher = Watcher(subscriber: command.subscriber, home: command.home, subscription: subscription)
        var match = Match(
            subscriber: command.subscriber, scope: subscription.scope, subscriptionID: subscription.id,
            time: level < .changeTimes ? time : command.time, id: change,
            zone: ZoneKey(database: watcher.database, name: subscription.zone ?? ZoneKey.defaultZoneName))
        if let query = subscription.query {
            let event = Match.Event.allCases.first { subscription.firing.contains($0.firing) } ?? .created
            match.record = Match.Record(
                name: "test", type: query.recordType, event: event, isCreator: true, fields: Fields())
        }
        if let payload = NotificationPayload.stored(of: match, for: subscription, at: level, isTest: true) {
            try log.enter(match, payload, at: time, in: registry)
        }
    }

    /// A subscriber's row, which is made where there is none.
    /// - Parameters:
    ///   - home: the number of this group.
    ///   - life: that of a new row.
    func registry(of subscriber: DatabaseKey, home: UInt64, life: Int64) throws -> RegistryRow {
        if let known = try RegistryRow.find(subscriber, in: db) { return known }
        try db.run(
            "INSERT INTO registry VALUES (NULL, ?, ?, ?, ?, ?, 0, 0)", subscriber.container,
            subscriber.environment.column, subscriber.owner, home, life)
        return RegistryRow(id: db.lastInsertedRowID, life: life, sequence: 0, floor: 0)
    }

    private func save(
        _ subscription: Subscription, for command: ModifySubscriptions, _ targets: [UInt64],
        in registry: RegistryRow, _ earlier: SubscriptionRow?
    ) throws -> ServiceError? {
        if earlier?.subscription == subscription, earlier?.targets == targets { return nil }
        let content = subscription.content
        if let refusal = try refusal(of: subscription, content, isNew: earlier == nil, in: registry) { return refusal }
        if let refusal = try refusal(of: targets) { return refusal }
        let generation = try generation(of: subscription, earlier)
        let full = SubscriptionRow.encoded(targets, generation: generation)
        if let earlier {
            try db.run("UPDATE subscription SET targets = ?, body = ? WHERE id = ?", full, content, earlier.id)
            for target in earlier.targets where !targets.contains(target) {
                try outbox.send(unwatch(subscription, of: command.subscriber), to: target)
            }
        } else {
            try db.run(
                "INSERT INTO subscription VALUES (NULL, ?, ?, ?, ?, ?, 1)", registry.id, subscription.scope.column,
                subscription.id, full, content)
        }
        var watcher = Watcher(subscriber: command.subscriber, home: command.home, subscription: subscription)
        watcher.generation = generation
        for target in targets { try outbox.send(.watch(watcher), to: target) }
        return nil
    }

    /// What tells matches of a subscription from those of an earlier one of its name. One that is changed keeps it, and
    /// goes on to tell of what its copies matched before; but one that fires once must not be used up by that.
    private func generation(of subscription: Subscription, _ earlier: SubscriptionRow?) throws -> Int64 {
        if level < .exactNotifications { return 0 }
        if let earlier {
            let isKept =
                level < .renewedSubscriptions || !subscription.firesOnce || earlier.subscription == subscription
            if isKept { return earlier.generation }
        }
        return try WatcherTable(db: db, level: level).makeNumber()
    }

    /// Why effects on some groups have to wait; nil where there is room for them.
    private func refusal(of targets: [UInt64]) throws -> ServiceError? {
        guard let full = try targets.first(where: { try outbox.isFull(for: $0) }) else { return nil }
        return ServiceError(
            .tryAgainLater, "nothing was done: too much waits to be delivered to group \(full)", retryAfterSeconds: 5)
    }

    private func delete(_ row: SubscriptionRow, of subscriber: DatabaseKey) throws -> ServiceError? {
        if level >= .exactNotifications, let refusal = try refusal(of: row.targets) { return refusal }
        try remove(row, of: subscriber)
        return nil
    }

    private func refusal(
        of subscription: Subscription, _ content: [UInt8], isNew: Bool, in registry: RegistryRow
    ) throws -> ServiceError? {
        if let equal = try twin(of: subscription, content, in: registry) {
            return ServiceError(.exists, "subscription is duplicate of '\(equal)'")
        }
        let others = try db.first(
            """
            SELECT count(*), coalesce(sum(length(body)), 0) FROM subscription
            WHERE registry = ? AND NOT (scope = ? AND name = ?)
            """, registry.id, subscription.scope.column, subscription.id
        ) { (count: Int($0.integer(0)), bytes: Int($0.integer(1))) }
        let (count, bytes) = others ?? (0, 0)
        if isNew, count >= Limits.subscriptionsMax {
            return ServiceError(
                .badRequest, "the user has \(count) subscriptions, which is the most there may be: delete some")
        }
        guard level >= .exactNotifications else { return nil }
        if content.count > SubscriptionBounds.bytesMax {
            return ServiceError(
                .badRequest,
                "the subscription has \(content.count) bytes, at most \(SubscriptionBounds.bytesMax) are allowed")
        }
        guard bytes + content.count > SubscriptionBounds.bytesOfUserMax else { return nil }
        return ServiceError(
            .badRequest,
            "the user's subscriptions would have \(bytes + content.count) bytes, at most "
                + "\(SubscriptionBounds.bytesOfUserMax) are allowed: delete some")
    }

    /// The name of another subscription of the user's that says the same.
    private func twin(of subscription: Subscription, _ content: [UInt8], in registry: RegistryRow) throws -> String? {
        // Of a query, those with its binary form are looked at: it may be written otherwise. The life of a zone comes
        // last in a body, and does not count.
        let query = level < .collapseIDs ? nil : subscription.query?.encoded()
        let lifeless = level < .boundSubscriptions ? nil : subscription.lifeless.content
        let wanted = subscription.comparable
        var found: String?
        try db.forEach(
            """
            SELECT name, body FROM subscription
            WHERE registry = ? AND scope = ? AND name <> ? AND (body = ? OR instr(body, ?) > 0 OR instr(body, ?) > 0)
            ORDER BY name
            """, registry.id, subscription.scope.column, subscription.id, content, query, lifeless
        ) { row in
            let body = row.bytes(1)
            let other = try Subscription(decoding: body)
            guard body == content || other.comparable == wanted, !other.isOver(before: subscription) else {
                return true
            }
            found = row.text(0)
            return false
        }
        return found
    }

    private func unwatch(_ subscription: Subscription, of subscriber: DatabaseKey) -> Effect {
        .unwatch(subscriber: subscriber, scope: subscription.scope, id: subscription.id)
    }

    private func remove(_ row: SubscriptionRow, of subscriber: DatabaseKey) throws {
        try db.run("DELETE FROM subscription WHERE id = ?", row.id)
        for target in row.targets { try outbox.send(unwatch(row.subscription, of: subscriber), to: target) }
    }

    /// Makes an entry of the subscriber's log.
    /// - Parameters:
    ///   - time: the shard's, in milliseconds since 1970.
    ///   - source: the group whose change it is.
    /// - Returns: whether there still is such a subscription.
    func notify(_ match: Match, at time: Int64, from source: UInt64) throws -> Bool {
        let found = try RegistryRow.find(match.subscriber, in: db)
        let row = try found.flatMap {
            try SubscriptionRow.find($0.id, scope: match.scope, id: match.subscriptionID, in: db)
        }
        guard let registry = found, let row else {
            try removeOrphan(match, at: source)
            return false
        }
        guard row.generation == match.generation || level < .exactNotifications,
            let payload = NotificationPayload.stored(of: match, for: row.subscription, at: level)
        else { return false }
        try log.enter(match, payload, at: time, in: registry)
        if row.subscription.firesOnce { try remove(row, of: match.subscriber) }
        return true
    }

    /// Removes a subscription that is bound to a zone, where a life of that has ended and it was not saved for a later
    /// one.
    func end(_ id: String, of subscriber: DatabaseKey, with zone: ZoneKey, life: UInt64) throws {
        guard level >= .boundSubscriptions, let registry = try RegistryRow.find(subscriber, in: db),
            let row = try SubscriptionRow.find(registry.id, scope: zone.database.scope, id: id, in: db),
            row.subscription.isBound(to: zone), row.subscription.zoneLife ?? 0 <= life
        else { return }
        try remove(row, of: subscriber)
    }

    /// A copy that a group still matches goes there, too: that it is to go may have been lost.
    private func removeOrphan(_ match: Match, at source: UInt64) throws {
        guard try level >= .exactNotifications && !outbox.isFull(for: source) else { return }
        try outbox.send(
            .unwatch(subscriber: match.subscriber, scope: match.scope, id: match.subscriptionID), to: source)
    }

    /// Sends copies again that a restore has removed, or that a loss may have; the rest waits where too much waits to
    /// be delivered.
    /// - Returns: how many subscriptions that were.
    func sendCopies(budget: Int) throws -> Int {
        let waiting = try db.all(
            """
            SELECT s.id, s.targets, s.body, s.scope, s.name, r.container, r.environment, r.user, r.home
            FROM subscription s JOIN registry r ON r.id = s.registry WHERE s.is_sent = 0 ORDER BY s.id LIMIT ?
            """, budget
        ) { row -> (SubscriptionRow, Watcher)? in
            guard let scope = Scope(column: row.integer(3)), let environment = Environment(column: row.integer(6))
            else { return nil }
            let found = try SubscriptionRow(row, scope: scope, name: row.text(4))
            let subscriber = DatabaseKey(
                container: row.text(5), environment: environment, scope: .private, owner: row.text(7))
            let home = UInt64(bitPattern: row.integer(8))
            var watcher = Watcher(subscriber: subscriber, home: home, subscription: found.subscription)
            watcher.generation = found.generation
            return (found, watcher)
        }
        var count = 0
        for case let (row, watcher)? in waiting {
            if try row.targets.contains(where: { try outbox.isFull(for: $0) }) { break }
            for target in row.targets { try outbox.send(.watch(watcher), to: target) }
            try db.run("UPDATE subscription SET is_sent = 1 WHERE id = ?", row.id)
            count += 1
        }
        return count
    }

    /// The least life that the rows say for a subscriber who comes.
    func leastLife() throws -> Int64? {
        try db.first("SELECT least FROM subscriber_life") { $0.integer(0) }
    }

    /// Has subscribers who come begin a greater life, so that tokens of logs of lives up to one fit none of theirs.
    func endLives(to life: Int64) throws {
        guard try life >= leastLife() ?? 0 else { return }
        try db.run("INSERT OR REPLACE INTO subscriber_life VALUES (1, ?)", life + 1)
        try db.checkOneRow("the end of subscribers' lives up to \(life)")
    }

    /// The greatest life of a container's users; 0 where there are none.
    func lastLife(of container: String) throws -> Int64 {
        try db.first("SELECT max(life) FROM registry WHERE container = ?", container) { $0.integer(0) } ?? 0
    }

    /// Removes a part of what a subscriber has here.
    /// - Returns: whether nothing is left.
    func forget(_ subscriber: DatabaseKey, subscriptionsMax: Int, rowsMax: Int) throws -> Bool {
        guard let registry = try RegistryRow.find(subscriber, in: db) else { return true }
        let rows = try db.all(
            "SELECT id, targets, body, scope, name FROM subscription WHERE registry = ? ORDER BY id LIMIT ?",
            registry.id, Int64(subscriptionsMax)
        ) { row in
            guard let scope = Scope(column: row.integer(3)) else { throw WireError.invalidValue(field: 4) }
            return try SubscriptionRow(row, scope: scope, name: row.text(4))
        }
        for row in rows {
            if try row.targets.contains(where: { try outbox.isFull(for: $0) }) { return false }
            try remove(row, of: subscriber)
        }
        if level >= .endedLogs {
            // Who reads meanwhile is told that its token has expired, and misses nothing unawares.
            try db.run("UPDATE registry SET floor = sequence WHERE id = ?", registry.id)
        }
        try db.run(
            """
            DELETE FROM notification WHERE registry = ?1 AND sequence IN (SELECT sequence FROM notification
                WHERE registry = ?1 ORDER BY sequence LIMIT ?2)
            """, registry.id, rowsMax)
        if rows.count == subscriptionsMax || db.changesCount == rowsMax { return false }
        for sql in ["DELETE FROM log_reader WHERE registry = ?", "DELETE FROM registry WHERE id = ?"] {
            try db.run(sql, registry.id)
        }
        return true
    }

    /// Removes a part of what a container's users have here; uses up the budget where more is left.
    func remove(container: String, budget: inout Int) throws {
        for sql in [
            """
            DELETE FROM notification WHERE (registry, sequence) IN (SELECT n.registry, n.sequence FROM notification n
                JOIN registry r ON r.id = n.registry WHERE r.container = ?1
                ORDER BY r.environment, r.user, n.sequence LIMIT ?2)
            """,
            """
            DELETE FROM log_reader WHERE (registry, name) IN (SELECT l.registry, l.name FROM log_reader l
                JOIN registry r ON r.id = l.registry WHERE r.container = ?1
                ORDER BY r.environment, r.user, l.name LIMIT ?2)
            """,
            """
            DELETE FROM subscription WHERE id IN (SELECT s.id FROM subscription s
                JOIN registry r ON r.id = s.registry WHERE r.container = ?1
                ORDER BY r.environment, r.user, s.scope, s.name LIMIT ?2)
            """,
            """
            DELETE FROM registry WHERE id IN (SELECT id FROM registry WHERE container = ?1
                ORDER BY environment, user LIMIT ?2)
            """,
        ] where budget > 0 {
            try db.run(sql, container, budget)
            budget -= db.changesCount
        }
    }
}

extension Subscription {
    /// The same for any life of its zone.
    fileprivate var lifeless: Subscription {
        var lifeless = self
        lifeless.zoneLife = nil
        return lifeless
    }

    /// Whether the zone's life that it was saved for had ended when another one was saved for that zone.
    fileprivate func isOver(before other: Subscription) -> Bool {
        guard let zoneLife, let later = other.zoneLife else { return false }
        return zoneLife < later
    }

    /// What it says, however its query and its texts are written, as binary form.
    fileprivate var comparable: [UInt8] {
        var comparable = lifeless
        comparable.queryJSON = []
        if let info = try? JSONParser.parse(info) {
            var writer = JSONWriter()
            writer.value(info.inOrderOfKeys)
            comparable.info = writer.bytes
        }
        return comparable.content
    }
}

extension JSONValue {
    /// The same with the members of all objects in the order of their keys.
    fileprivate var inOrderOfKeys: JSONValue {
        switch self {
        case .object(let members):
            .object(
                members.map { Member($0.key, $0.value.inOrderOfKeys) }
                    .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) })
        case .array(let values): .array(values.map(\.inOrderOfKeys))
        default: self
        }
    }
}
