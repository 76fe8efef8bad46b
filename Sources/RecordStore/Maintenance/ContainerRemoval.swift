import GRDB
import RecordModel
import Wire

/// The removal of a container, in a transaction.
struct ContainerRemoval: TransactionPart {
    let transaction: RecordTransaction

    /// Removes a part of a purged container; repeated until it returns true. Maintenance removes records and index
    /// rows, as those of retired zones.
    ///
    /// Whatever is made later has greater incarnations: no token, tag or cursor of the old life fits it. The rows of
    /// the schemas stay, as if no schema had ever been installed: caches depend on their numbers and revisions, which
    /// are never reused.
    /// - Parameter rowsMax: rows of zones and databases that one part removes.
    /// - Returns: whether everything is gone.
    func remove(_ container: String, rowsMax: Int) throws -> Bool {
        try transaction.forgetRows()
        var budget = rowsMax
        try transaction.removeSubscriptions(of: container, budget: &budget)
        guard budget > 0 else { return false }
        for environment in Environment.allCases {
            guard let schema = try transaction.rows.schema(container: container, environment: environment) else {
                continue
            }
            guard try remove(schemaID: schema.id, budget: &budget) else { return false }
        }
        return true
    }

    private func remove(schemaID: Int64, budget: inout Int) throws -> Bool {
        try raiseIncarnations(aboveThoseOf: schemaID)
        if try exists(
            """
            SELECT EXISTS (SELECT 1 FROM zone z JOIN database d ON d.id = z.database WHERE d.schema = ?1 AND z.state = 0)
                OR EXISTS (SELECT 1 FROM idempotency i JOIN database d ON d.id = i.database WHERE d.schema = ?1)
            """, schemaID)
        {
            try ZoneLives(transaction).retireAll(schemaID: schemaID)
        }
        let isWaiting = try exists(
            """
            SELECT EXISTS (SELECT 1 FROM zone z JOIN database d ON d.id = z.database WHERE d.schema = ?1 AND z.state = 1)
                OR EXISTS (SELECT 1 FROM job WHERE kind IN (2, 4) AND subject = ?1)
                OR EXISTS (SELECT 1 FROM job j JOIN field_index f ON f.id = j.subject JOIN record_type t ON t.id = f.type
                    WHERE j.kind = 1 AND t.schema = ?1)
            """, schemaID)
        if isWaiting { return false }
        guard try removeDatabases(of: schemaID, budget: &budget) else { return false }
        for sql in [
            "DELETE FROM stray WHERE type IN (SELECT id FROM record_type WHERE schema = ?)",
            "DELETE FROM field_index WHERE type IN (SELECT id FROM record_type WHERE schema = ?)",
            "DELETE FROM record_type WHERE schema = ?",
        ] {
            try db.run(sql, schemaID)
        }
        try db.run(
            "UPDATE schema SET version = 0, generation = 0, revision = revision + 1, body = ?2 "
                + "WHERE id = ?1 AND version > 0", schemaID, Schema().encoded())
        return true
    }

    private func raiseIncarnations(aboveThoseOf schemaID: Int64) throws {
        let greatest = try db.first(
            """
            SELECT max(coalesce((SELECT max(incarnation) FROM database WHERE schema = ?1), 0), coalesce((
                SELECT max(z.incarnation) FROM zone z JOIN database d ON d.id = z.database WHERE d.schema = ?1), 0))
            """, schemaID
        ) { $0.integer(0) }
        try transaction.endLives(to: greatest ?? 0, schemaID: schemaID)
    }

    /// - Returns: whether no database is left.
    private func removeDatabases(of schemaID: Int64, budget: inout Int) throws -> Bool {
        while let database = try firstID("SELECT id FROM database WHERE schema = ? ORDER BY id LIMIT 1", schemaID) {
            while let zone = try firstID("SELECT id FROM zone WHERE database = ? ORDER BY id LIMIT 1", database) {
                guard budget > 0 else { return false }
                budget -= 1
                try db.run("DELETE FROM zone WHERE id = ?", zone)
                try db.checkOneRow("the removal of zone \(zone)")
            }
            guard budget > 0 else { return false }
            budget -= 1
            for sql in [
                "DELETE FROM ledger_share WHERE database = ?", "DELETE FROM ledger WHERE database = ?",
                "DELETE FROM database WHERE id = ?",
            ] {
                try db.run(sql, database)
            }
            try db.checkOneRow("the removal of database \(database)")
            if transaction.level >= .endedAllotments { try AssetTables.forget(database: database, in: db) }
        }
        return true
    }

    private func firstID(_ sql: String, _ owner: Int64) throws -> Int64? {
        try db.first(sql, owner) { $0.integer(0) }
    }

    private func exists(_ sql: String, _ schemaID: Int64) throws -> Bool {
        try db.first(sql, schemaID) { $0.integer(0) != 0 } ?? false
    }
}
