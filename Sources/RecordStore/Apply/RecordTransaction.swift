import GRDB
package import RecordModel
import Wire

/// A run of commands inside one write transaction of a shard database.
///
/// What the tables say of zones, users and the shard's time is read once and kept here; rows of zones and databases are
/// written by `finish`. After an error is thrown the transaction must be rolled back and this value dropped.
package final class RecordTransaction {
    let tables: RecordTables
    let db: Database
    /// The level that is in force for the commands of this transaction.
    package let level: FeatureLevel
    let rows: Rows
    let statements: WriteStatements
    var names: UserNameCache
    var userIDs: [String: Int64] = [:]
    var databases: [DatabaseKey: OpenDatabase] = [:]
    var zones: [ZoneKey: OpenZone] = [:]
    /// The shard's time in milliseconds, which follows that of its commands (`ShardClock`): what is forgotten is old by
    /// it.
    private(set) var time: Int64
    private var storedTime: Int64
    /// The timestamp of the current command's changes.
    private(set) var stamp: Int64 = 0
    /// The time of the last dated idempotency key whose outcome was forgotten; only later ones may be applied.
    var forgotten: Int64
    private var storedForgotten: Int64
    var incarnationFloor: Int64
    /// Counts the commands of this transaction.
    var commandNumber = 0
    /// Whether jobs or retired zones wait.
    var hasJobs: Bool
    /// Bytes of bodies that the current part of maintenance has read, and an amount for each index row that it changed;
    /// it ends at `partBytesMax`, give or take a record.
    var partBytes = 0
    /// Which rows count in quotas.
    var counted: CountedRows
    static let partBytesMax = 4 * 1_048_576
    var isPartFull: Bool { partBytes >= Self.partBytesMax }
    /// A part changes some 40,000 index rows at most, which takes a fraction of a second.
    private static let indexRowBytes = 100
    /// Assets that were named for the first time, or once more, by the commands of this transaction: the node looks
    /// whether it has their files.
    package internal(set) var namedAssets: [AssetReference] = []
    /// The most that `namedAssets` tells of. Where it has so many there may have been more.
    package static let namedAssetsMax = 10_000
    /// Matches changes against subscriptions.
    let matcher: Matcher
    /// The users, by their private databases, whose notifications grew.
    package internal(set) var notified: [DatabaseKey] = []

    /// Whether maintenance has something to do, as far as can be known without looking for what is too old.
    ///
    /// May be asked after each `apply`. Where it is true the group's leader proposes `RecordCommand.maintain`.
    package var hasWork: Bool { hasJobs }

    init(tables: RecordTables, db: Database, level: FeatureLevel) throws {
        self.tables = tables
        self.db = db
        self.level = level
        rows = Rows(db: db)
        statements = try WriteStatements(db)
        names = UserNameCache(db)
        matcher = Matcher(tables: tables, db: db, level: level)
        counted = try CountedRows.load(at: level, in: db)
        let state = try db.first("SELECT time, incarnation_floor, forgotten, \(Job.exist) FROM record_state") {
            ($0.integer(0), $0.integer(1), $0.integer(2), $0.integer(3) != 0)
        }
        (storedTime, incarnationFloor, storedForgotten, hasJobs) = state ?? (0, 1, 0, false)
        time = storedTime
        forgotten = storedForgotten
    }

    /// Lets the time of a command move the shard's.
    /// - Returns: the shard's time from now on.
    @discardableResult
    package func observe(_ command: Int64, stepMax: Int64 = ShardClock.stepMax) -> Int64 {
        stamp = ShardClock.stamp(of: command, notBefore: time)
        time = ShardClock.time(time, after: command, stepMax: stepMax)
        return time
    }

    /// Whether the same command once more would move the shard's time again: a shard that lags behind catches up at
    /// once.
    package func isToGoOn(_ command: RecordCommand) -> Bool {
        guard case .maintain(let command) = command, level >= .evenSteps else { return false }
        return ShardClock.time(time, after: command.time) != time
    }

    /// Applies one command.
    /// - Throws: `DatabaseError` on an I/O error, `WireError` on a damaged row: both stop the replica.
    package func apply(_ command: RecordCommand) throws -> RecordOutcome {
        matcher.origin = command.origin
        let outcome = try perform(command)
        try tellWatchers()
        return outcome
    }

    /// Removes a part of a purged container; repeated until it returns true.
    /// - Parameter rowsMax: rows of zones and databases that one part removes.
    /// - Returns: whether everything is gone.
    package func removeContainer(_ container: String, rowsMax: Int = 500) throws -> Bool {
        try ContainerRemoval(self).remove(container, rowsMax: rowsMax)
    }

    private func perform(_ command: RecordCommand) throws -> RecordOutcome {
        commandNumber += 1
        stamp = time
        switch command {
        case .modifyRecords(let command):
            observe(command.time)
            return try RecordRequest(self).run(command)
        case .modifyZone(let command):
            observe(command.time)
            return try ZoneLives(self).run(command)
        case .installSchema(let command):
            return try SchemaInstallation(self).install(command)
        case .maintain(let command):
            observe(command.time, stepMax: level < .evenSteps ? ShardClock.hourStepMax : ShardClock.stepMax)
            return try Maintenance(self).run(command)
        case .quota(let command):
            return try QuotaLedger(self).apply(command)
        }
    }

    /// Writes what was kept back; the caller commits afterwards.
    package func finish() throws {
        if (time, forgotten) != (storedTime, storedForgotten) {
            try Invariant.check(
                forgotten >= storedForgotten, "keys up to \(storedForgotten) were forgotten, not \(forgotten)")
            try db.run("UPDATE record_state SET time = ?, forgotten = ?", time, forgotten)
            try db.checkOneRow("the shard's time at \(time)")
            (storedTime, storedForgotten) = (time, forgotten)
        }
        for zone in zones.values where zone.isChanged { try write(zone) }
        for database in databases.values where database.isChanged {
            if let row = database.row {
                try row.check()
                try NamedAssets(self).write(of: database)
                try statements.updateDatabase.run(
                    row.sequence, row.zones, row.used.bytes, row.used.records, row.epoch, row.received.bytes,
                    row.received.records, row.returned.bytes, row.returned.records, row.overdrawn.rawValue, row.id)
                try db.checkOneRow("the counts of database \(row.id)")
            }
            database.isChanged = false
        }
    }

    func write(_ zone: OpenZone) throws {
        try zone.check()
        try statements.updateZone.run(
            zone.row.sequence, zone.row.floor, zone.row.tombstones, zone.row.changedAt, zone.row.used.bytes,
            zone.row.used.records, zone.row.id)
        try db.checkOneRow("the counts of zone \(zone.row.id)")
        try NamedAssets(self).write(of: zone)
        zone.isChanged = false
    }

    /// Writes what was kept back and forgets the rows: for commands that change them by other ways.
    func forgetRows() throws {
        try finish()
        databases.removeAll()
        zones.removeAll()
    }
}

/// A part of the work of a transaction, as a value of its own.
protocol TransactionPart {
    var transaction: RecordTransaction { get }
    init(transaction: RecordTransaction)
}

extension TransactionPart {
    var db: Database { transaction.db }

    init(_ transaction: RecordTransaction) { self.init(transaction: transaction) }
}

/// The statements of a save, prepared once a transaction.
struct WriteStatements {
    let insertRecord: SQLStatement
    let updateRecord: SQLStatement
    let updateZone: SQLStatement
    let updateDatabase: SQLStatement
    let insertNumber: SQLStatement
    let insertBytes: SQLStatement
    let insertMissing: SQLStatement
    let deleteNumber: SQLStatement
    let deleteBytes: SQLStatement
    let deleteMissing: SQLStatement

    init(_ db: Database) throws {
        func prepare(_ sql: String) throws -> SQLStatement { try SQLStatement(cached: sql, in: db) }
        insertRecord = try prepare("INSERT INTO record VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)")
        updateRecord = try prepare(
            """
            UPDATE record SET type = ?, sequence = ?, created_at = ?, created_by = ?, modified_at = ?, modified_by = ?,
                deleted = ?, body = ? WHERE id = ?
            """)
        updateZone = try prepare(
            """
            UPDATE zone SET sequence = ?, floor = ?, tombstones = ?, changed_at = ?, bytes = ?, records = ? WHERE id = ?
            """)
        updateDatabase = try prepare(
            """
            UPDATE database SET sequence = ?, zones = ?, bytes = ?, records = ?, epoch = ?, received_bytes = ?,
                received_records = ?, returned_bytes = ?, returned_records = ?, overdrawn = ? WHERE id = ?
            """)
        // A record's rows may be there already: a building index meets records from both sides.
        insertNumber = try prepare("INSERT OR IGNORE INTO index_number VALUES (?, ?, ?, ?)")
        insertBytes = try prepare("INSERT OR IGNORE INTO index_bytes VALUES (?, ?, ?, ?)")
        insertMissing = try prepare("INSERT OR IGNORE INTO index_missing VALUES (?, ?, ?)")
        deleteNumber = try prepare("DELETE FROM index_number WHERE field = ? AND zone = ? AND value = ? AND record = ?")
        deleteBytes = try prepare("DELETE FROM index_bytes WHERE field = ? AND zone = ? AND value = ? AND record = ?")
        deleteMissing = try prepare("DELETE FROM index_missing WHERE field = ? AND zone = ? AND record = ?")
    }
}

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
        return try home.modify(command, life: try subscriberLife(), at: time, notified: &notified)
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
            case .end(let subscriber, let zone, let life, let id):
                try home.end(id, of: subscriber, with: zone, life: life)
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
        try endSubscriberLives(to: try home.lastLife(of: container))
        try home.remove(container: container, budget: &budget)
        if budget > 0 { try matcher.remove(container: container, budget: &budget) }
    }

    /// The life of a subscriber who has no row yet.
    func subscriberLife() throws -> Int64 {
        guard level >= .ownLives else { return incarnationFloor }
        return max(incarnationFloor, try home.leastLife() ?? 0)
    }

    /// Has subscribers who come begin a greater life than those who go.
    func endSubscriberLives(to life: Int64) throws {
        if level >= .ownLives { try home.endLives(to: life) } else { try endLives(to: life) }
    }

    /// Counts an index row that is changed.
    func takeIndexRow() {
        if level >= .boundedDeletions { partBytes += Self.indexRowBytes }
    }

    /// The least incarnation of what comes to a container's environment.
    func incarnationFloor(schemaID: Int64) throws -> Int64 {
        max(incarnationFloor, try rows.incarnationFloor(schemaID: schemaID) ?? 0)
    }

    /// Has what a container's environment gets later begin a greater life, so that tokens of lives up to one fit none
    /// of it; below `FeatureLevel.ownFloors` what any other gets, too.
    func endLives(to life: Int64, schemaID: Int64) throws {
        guard level >= .ownFloors else { return try endLives(to: life) }
        guard try life >= incarnationFloor(schemaID: schemaID) else { return }
        try db.run("INSERT OR REPLACE INTO schema_floor VALUES (?, ?)", schemaID, life + 1)
        try db.checkOneRow("a floor of incarnations of schema \(schemaID) at \(life + 1)")
    }

    /// Has what is made later begin a greater life, so that tokens of lives up to one fit none of it.
    private func endLives(to life: Int64) throws {
        guard life >= incarnationFloor else { return }
        incarnationFloor = life + 1
        try db.run("UPDATE record_state SET incarnation_floor = ?", incarnationFloor)
        try db.checkOneRow("a floor of incarnations at \(incarnationFloor)")
    }
}
