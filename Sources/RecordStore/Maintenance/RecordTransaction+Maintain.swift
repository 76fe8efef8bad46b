package import GRDB
import RecordModel
import Wire

/// The most rows that one command may be told to work on.
private let rowsPerCommandMax: UInt64 = 10_000

extension RecordTransaction {
    /// Works off a bounded part of what waits: jobs in their order, then retired zones, then what is too old.
    ///
    /// What is too old has a tenth of the rows to itself, so that it goes however long the jobs before it are.
    func maintain(_ command: Maintain) throws -> RecordOutcome {
        try finish()
        let rowsMax = Int(min(max(command.rowsMax, 1), rowsPerCommandMax))
        let share = max(rowsMax / 10, 1)
        var budget = rowsMax
        partBytes = 0
        while budget > 0, !isPartFull, let job = try Job.first(in: db) { budget -= try work(on: job, budget: budget) }
        let retired = RetiredZones(self)
        while budget > 0, !isPartFull, let zoneID = try retired.first() {
            budget -= try retired.reclaim(zoneID, budget: budget)
        }
        if level >= .exactNotifications {
            var bytes = Self.partBytesMax
            let hasOwn = level >= .filedSubscriptions
            let used = try MatchingQueue(db: db, level: level).work(
                budget: hasOwn ? Matcher.maintenanceCostMax : max(budget, share), bytes: &bytes, matcher,
                open: openDatabase)
            if !hasOwn { budget -= used }
        }
        budget -= try TombstoneTable(self).purge(command.retention, budget: max(budget, share))
        budget -= try IdempotencyTable(self).purge(budget: max(budget, share))
        budget -= try VersionTable(self).purge(command.versions, budget: max(budget, share))
        budget -= try NamedAssets(self).purge(command.retention, budget: max(budget, share))
        if level >= .notifications {
            budget -= try home.sendCopies(budget: max(budget, share))
            budget -= try NotificationRows(db: db, level: level).purge(at: time, budget: max(budget, share))
        }
        // Index states and rows of zones have changed under what is remembered.
        try forgetRows()
        hasJobs = try Job.areWaiting(in: db)
        let hasMore =
            try RecordTables.hasWork(now: time, retention: command.retention, in: db)
            || EarlierVersions.hasOld(command.versions, now: time, in: db)
        return .maintained(hasMore: hasMore)
    }

    /// Does a part of a job; returns how many rows it counts for, at least 1.
    private func work(on job: Job, budget: Int) throws -> Int {
        let used =
            switch job.kind {
            case .dropIndex: try IndexJobs(self).drop(job, budget: budget)
            case .buildIndexes: try IndexJobs(self).build(job, budget: budget)
            case .cascade: try Deletions(self).goOn(with: job, budget: budget)
            case .scrub: try ScrubJob(self).work(on: job, budget: budget)
            case .recount: try RecountJob(self).work(on: job, budget: budget)
            case .match: try matchMore(job, budget: budget)
            case nil: throw WireError.invalidValue(field: 0)
            }
        try Invariant.check(used >= 0, "a part of job \(job.id) counts for \(used) rows")
        return max(used, 1)
    }

    /// Lets readers see that indexes or stray fields of a schema have changed.
    func revise(schemaID: Int64) throws {
        try db.run("UPDATE schema SET revision = revision + 1 WHERE id = ?", schemaID)
        try db.checkOneRow("a revision of schema \(schemaID)")
    }

    func schema(id: Int64) throws -> InstalledSchema {
        guard let row = try rows.schema(id: id) else { return .none }
        return try tables.installedSchema(row, in: db)
    }

    /// Calls `body` with rows, in order, until the part has read enough; returns the row to go on after, which is `end`
    /// where all were taken.
    func forEachRow(
        _ ids: [Int64], end: Int64?, body: (_ row: RecordRow, _ zoneID: Int64) throws -> Void
    ) throws -> Int64? {
        for (place, id) in ids.enumerated() {
            if isPartFull && place > 0 { return ids[place - 1] }
            guard let (row, zoneID) = try rows.rowAndZone(id) else { continue }
            partBytes += row.body.count
            try body(row, zoneID)
        }
        return end
    }

    /// The rows of records after a job's position that have one of some types, and what looking for them counts for.
    ///
    /// - Returns: `end` is the last row looked at; nil where there are no more.
    func scan(_ job: Job, types: Set<Int64>, budget: Int) throws -> (ids: [Int64], end: Int64?, used: Int) {
        var ids: [Int64] = []
        var end: Int64?
        var looked = 0
        // Looking at a row is much cheaper than working on it.
        let lookedMax = budget.multipliedReportingOverflow(by: 10)
        let limit = lookedMax.overflow ? Int.max : lookedMax.partialValue
        try db.forEach(
            "SELECT id, type FROM record WHERE id > ? AND id <= ? ORDER BY id", job.position, job.last
        ) { row in
            if ids.count >= budget || looked >= limit { return false }
            looked += 1
            end = row.integer(0)
            if types.contains(row.integer(1)) { ids.append(row.integer(0)) }
            return true
        }
        let isAtEnd = ids.count < budget && looked < limit
        return (ids, isAtEnd ? nil : end, ids.count + (looked - ids.count) / 10)
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
