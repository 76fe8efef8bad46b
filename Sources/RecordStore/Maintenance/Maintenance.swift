package import GRDB
import RecordModel
import Wire

/// The most rows that one command may be told to work on.
private let rowsPerCommandMax: UInt64 = 10_000

/// Works off what waits and what is too old, in a transaction.
struct Maintenance: TransactionPart {
    let transaction: RecordTransaction

    /// Works off a bounded part of what waits: jobs in their order, then retired zones, then what is too old.
    ///
    /// What is too old has a tenth of the rows to itself, so that it goes however long the jobs before it are.
    func run(_ command: Maintain) throws -> RecordOutcome {
        try transaction.finish()
        let rowsMax = Int(min(max(command.rowsMax, 1), rowsPerCommandMax))
        let share = max(rowsMax / 10, 1)
        var budget = rowsMax
        transaction.partBytes = 0
        while budget > 0, !transaction.isPartFull, let job = try Job.first(in: db) {
            budget -= try work(on: job, budget: budget)
        }
        let retired = RetiredZones(transaction)
        while budget > 0, !transaction.isPartFull, let zoneID = try retired.first() {
            budget -= try retired.reclaim(zoneID, budget: budget)
        }
        if transaction.level >= .exactNotifications {
            var bytes = RecordTransaction.partBytesMax
            let hasOwn = transaction.level >= .filedSubscriptions
            let used = try MatchingQueue(db: db, level: transaction.level).work(
                budget: hasOwn ? Matcher.maintenanceCostMax : max(budget, share), bytes: &bytes, transaction.matcher,
                open: transaction.openDatabase)
            if !hasOwn { budget -= used }
        }
        budget -= try TombstoneTable(transaction).purge(command.retention, budget: max(budget, share))
        budget -= try IdempotencyTable(transaction).purge(budget: max(budget, share))
        budget -= try VersionTable(transaction).purge(command.versions, budget: max(budget, share))
        budget -= try NamedAssets(transaction).purge(command.retention, budget: max(budget, share))
        if transaction.level >= .notifications {
            budget -= try transaction.home.sendCopies(budget: max(budget, share))
            budget -= try NotificationRows(db: db, level: transaction.level).purge(
                at: transaction.time, budget: max(budget, share))
        }
        // Index states and rows of zones have changed under what is remembered.
        try transaction.forgetRows()
        transaction.hasJobs = try Job.areWaiting(in: db)
        let hasMore =
            try RecordTables.hasWork(now: transaction.time, retention: command.retention, in: db)
            || EarlierVersions.hasOld(command.versions, now: transaction.time, in: db)
        return .maintained(hasMore: hasMore)
    }

    /// Does a part of a job; returns how many rows it counts for, at least 1.
    private func work(on job: Job, budget: Int) throws -> Int {
        let used =
            switch job.kind {
            case .dropIndex: try IndexJobs(transaction).drop(job, budget: budget)
            case .buildIndexes: try IndexJobs(transaction).build(job, budget: budget)
            case .cascade: try Deletions(transaction).goOn(with: job, budget: budget)
            case .scrub: try ScrubJob(transaction).work(on: job, budget: budget)
            case .recount: try RecountJob(transaction).work(on: job, budget: budget)
            case .match: try transaction.matchMore(job, budget: budget)
            case nil: throw WireError.invalidValue(field: 0)
            }
        try Invariant.check(used >= 0, "a part of job \(job.id) counts for \(used) rows")
        return max(used, 1)
    }
}

extension RecordTables {
    /// Whether maintenance has something to do at a time, by any connection's view.
    ///
    /// - Parameter now: milliseconds since 1970; what would be too old by then counts.
    package static func hasWork(now: Int64, retention: Retention = Retention(), in db: Database) throws -> Bool {
        if try Job.areWaiting(in: db) { return true }
        let found = try db.first(
            """
            SELECT EXISTS (SELECT 1 FROM record WHERE deleted = 1 AND modified_at < ?)
                OR EXISTS (SELECT 1 FROM zone WHERE tombstones > 0 AND tombstones > ? AND state = 0)
                OR EXISTS (SELECT 1 FROM idempotency WHERE expires <= ?)
                OR EXISTS (SELECT 1 FROM asset WHERE named = 0 AND released_at <= ?)
                OR EXISTS (SELECT 1 FROM subscription WHERE is_sent = 0) AND NOT EXISTS (\(Outbox.fullStream))
                OR EXISTS (SELECT 1 FROM notification WHERE time < ?)
                OR EXISTS (SELECT 1 FROM log_reader WHERE expires <= ?)
            """, retention.cutoff(now), retention.countMax, now, retention.assetCutoff(now),
            NotificationLog.cutoff(now), now
        ) { $0.integer(0) != 0 }
        return found ?? false
    }

    /// Whether the shard's time is so far from a clock that maintenance is to move it. A shard that nothing was written
    /// to has no time.
    package static func isAstray(from now: Int64, in db: Database) throws -> Bool {
        let time = try db.first("SELECT time FROM record_state") { $0.integer(0) } ?? 0
        let (distance, isFar) = now.subtractingReportingOverflow(time)
        return time != 0 && (isFar || distance.magnitude > UInt64(ShardClock.lagMax))
    }

    /// Whether maintenance has something to do at a time; see the static form.
    package func hasWork(now: Int64, retention: Retention = Retention(), in db: Database) throws -> Bool {
        try Self.hasWork(now: now, retention: retention, in: db)
    }
}

extension Retention {
    /// Tombstones from before this time are too old.
    func cutoff(_ now: Int64) -> Int64 {
        tombstoneAgeMax >= 0 ? saturating(now, -tombstoneAgeMax) : now
    }

    /// Assets that nothing names since this time are forgotten.
    func assetCutoff(_ now: Int64) -> Int64 { saturating(now, -max(assetGrace, 0)) }

    var countMax: Int64 { Int64(clamping: tombstonesMax) }
}
