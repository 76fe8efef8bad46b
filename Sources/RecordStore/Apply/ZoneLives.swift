import Authorization
import GRDB
import RecordModel

/// Makes zones and takes them away, in a transaction.
struct ZoneLives: TransactionPart {
    let transaction: RecordTransaction

    func run(_ command: ModifyZone) throws -> RecordOutcome {
        let key = command.zone
        if let earlier = try IdempotencyTable(transaction).earlierOutcome(of: command) { return earlier }
        let installed = try transaction.openDatabase(key.database).version
        guard installed >= command.schemaVersion else { return .needsSchema(installed: installed) }
        if let refusal = command.refusal { return .refused(refusal) }
        let outcome = try perform(command)
        if let idempotency = command.idempotency {
            try IdempotencyTable(transaction).remember(
                RememberedOutcome(outcome, at: transaction.level), of: idempotency, in: key.database)
        }
        return outcome
    }

    private func perform(_ command: ModifyZone) throws -> RecordOutcome {
        let key = command.zone
        let live = try transaction.openZone(key)
        switch command.kind {
        case .create:
            if live == nil, let refusal = try refusalOfZone(in: key.database) { return .refused(refusal) }
            return .zone(.exists(try (live ?? makeCustomZone(key)).row.described(as: key.name)))
        case .delete:
            guard let live else { return .refused(ZoneRules.notFound(key)) }
            try retire(live)
            return .zone(.deleted)
        }
    }

    private func refusalOfZone(in database: DatabaseKey) throws -> ServiceError? {
        let count = try transaction.openDatabase(database).row?.zones ?? 0
        guard count >= Limits.zonesPerDatabaseMax else { return nil }
        return ServiceError(
            .badRequest, "the database has \(count) zones on this shard, which is the most there may be: delete some"
        )
    }

    private func makeCustomZone(_ key: ZoneKey) throws -> OpenZone {
        let zone = try transaction.makeZone(key)
        zone.database.row?.zones += 1
        try transaction.touch(zone)
        try transaction.matcher.note(zone, type: nil)
        return zone
    }

    private func retire(_ zone: OpenZone) throws {
        try transaction.touch(zone)
        try transaction.matcher.note(zone, type: nil, transaction.level < .boundSubscriptions ? .updated : .deleted)
        try Invariant.check(!zone.key.isDefault, "the default zone \(zone.row.id) would be deleted")
        try Invariant.check(
            zone.database.row.map { $0.zones > 0 } ?? false, "the database of zone \(zone.row.id) counts no zone")
        zone.database.row?.zones -= 1
        let used = zone.row.used
        // Its rows take room until maintenance has removed them; its files count as given up at once.
        zone.count(
            .zero - (transaction.counted.isNone ? used : QuotaAmounts(records: used.records, assets: used.assets)))
        // The whole row is written: what it says must not depend on how commands were grouped.
        try transaction.write(zone)
        try db.run("UPDATE zone SET state = 1 WHERE id = ?", zone.row.id)
        try db.checkOneRow("the deletion of zone \(zone.row.id)")
        transaction.zones[zone.key] = nil
        transaction.hasJobs = true
    }

    /// Takes every zone of a container environment away, default zones too, and forgets what requests did to them.
    ///
    /// Tokens of its databases end by a new incarnation; the zones' rows are reclaimed by maintenance, and count until
    /// then.
    func retireAll(schemaID: Int64) throws {
        for sql in [
            "DELETE FROM idempotency WHERE database IN (SELECT id FROM database WHERE schema = ?)",
            "DELETE FROM idempotency_use WHERE database IN (SELECT id FROM database WHERE schema = ?)",
            """
            UPDATE zone SET state = 1, changed_at = 0, \(transaction.counted.isNone ? "bytes = 0, " : "")records = 0
            WHERE state = 0 AND database IN (SELECT id FROM database WHERE schema = ?)
            """,
            """
            UPDATE zone SET changed_at = 0
            WHERE state <> 0 AND database IN (SELECT id FROM database WHERE schema = ?)
            """,
            """
            DELETE FROM asset_zone WHERE zone IN (
                SELECT z.id FROM zone z JOIN database d ON d.id = z.database WHERE d.schema = ?)
            """,
            "UPDATE asset_database SET bytes = 0 WHERE database IN (SELECT id FROM database WHERE schema = ?)",
            """
            DELETE FROM asset_database WHERE received = 0 AND returned = 0
                AND database IN (SELECT id FROM database WHERE schema = ?)
            """,
            """
            UPDATE database SET incarnation = incarnation + 1, sequence = 0, zones = 0, records = 0,
                bytes = (SELECT coalesce(sum(z.bytes), 0) FROM zone z WHERE z.database = database.id)
            WHERE schema = ?
            """,
        ] {
            try db.run(sql, schemaID)
        }
        transaction.hasJobs = true
    }
}
