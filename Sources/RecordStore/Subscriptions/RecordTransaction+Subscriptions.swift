import RecordModel
import Wire

// Subscriptions: effects on other shards and of them.
extension RecordTransaction {
    var home: SubscriptionHome { SubscriptionHome(db: db, level: level) }

    /// Saves, deletes and tests subscriptions at their home.
    package func modify(_ command: ModifySubscriptions) throws -> SubscriptionsOutcome {
        commandNumber += 1
        observe(command.time)
        guard level >= .notifications else {
            let error = ServiceError(
                .tryAgainLater, "subscriptions need feature level \(FeatureLevel.notifications)", retryAfterSeconds: 1)
            return SubscriptionsOutcome(failures: command.changes.map { _ in error }, marks: [])
        }
        return try home.modify(command, life: incarnationFloor, at: time, notified: &notified)
    }

    /// Applies the effects of another group, each once and in order.
    package func deliver(_ delivery: OutboxDelivery) throws -> OutboxReceipt {
        commandNumber += 1
        return try Outbox(db: db, level: level).receive(delivery) { effect in
            switch effect {
            case .watch(let watcher): try matcher.install(watcher)
            case .unwatch(let subscriber, let scope, let id):
                try matcher.remove(watcherOf: subscriber, scope: scope, id: id)
            case .notify(let match):
                if try home.notify(match, at: time, from: delivery.source) { notified.append(match.subscriber) }
            case .lost, .lostOf, .resend: break
            }
        }
    }

    /// Removes the effects that a destination has applied.
    package func acknowledge(_ acknowledgement: OutboxAcknowledgement) throws {
        commandNumber += 1
        if try Outbox(db: db, level: level).acknowledge(acknowledgement) { hasJobs = true }
    }

    /// Matches the current command's changes against subscriptions.
    func tellWatchers() throws {
        let queue = MatchingQueue(db: db, level: level)
        for leftover in try matcher.tell(time: stamp) {
            hasJobs = true
            if level >= .exactNotifications { try queue.add(leftover) } else { try add(leftover) }
        }
    }

    private func add(_ leftover: Matcher.Leftover) throws {
        guard case .record(let matching) = leftover.change else { return }
        _ = try JobTable(self).add(
            .match, subject: 0, body: matching.encoded(), position: leftover.stop.position, last: leftover.last)
    }

    /// Continues a matching job.
    func matchMore(_ job: Job, budget: Int) throws -> Int {
        var left = budget
        let matching = try QueryMatching(decoding: job.body)
        let database = try openDatabase(matching.change.zone.database)
        let stop = try matcher.match(
            .record(matching), in: database, after: job.position, through: job.last, &left)
        if let stop { try JobTable(self).advance(job, to: stop.position) } else { try JobTable(self).end(job) }
        return max(budget - left, 1)
    }

    /// Removes a part of what a container's users and their subscriptions have here; uses up the budget where more is
    /// left.
    func removeSubscriptions(of container: String, budget: inout Int) throws {
        guard level >= .notifications else { return }
        if level >= .exactNotifications {
            try MatchingQueue(db: db, level: level).remove(container: container, budget: &budget)
        }
        guard budget > 0 else { return }
        try endLives(to: try home.lastLife(of: container))
        try home.remove(container: container, budget: &budget)
        if budget > 0 { try matcher.remove(container: container, budget: &budget) }
    }

    /// Has what is made later begin a greater life, so that tokens of lives up to one fit none of it.
    func endLives(to life: Int64) throws {
        guard life >= incarnationFloor else { return }
        incarnationFloor = life + 1
        try db.run("UPDATE record_state SET incarnation_floor = ?", incarnationFloor)
        try db.checkOneRow("a floor of incarnations at \(incarnationFloor)")
    }
}
