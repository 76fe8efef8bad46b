import GRDB
import RecordModel
import Wire

/// How long a request's repetition is recognised, in milliseconds.
private let rememberedMilliseconds: Int64 = 24 * 60 * 60 * 1000

extension RecordTransaction {
    /// What a request gets without being applied; nil if it is to be applied.
    func earlierOutcome(of command: ModifyRecords) throws -> RecordOutcome? {
        guard let idempotency = command.idempotency else { return nil }
        let databaseID = try openDatabase(command.zone.database).row?.id
        if let databaseID, let known = try tables.earlierOutcome(of: command, databaseID: databaseID, in: db) {
            return known
        }
        return try refusal(of: idempotency, databaseID: databaseID, at: command.time).map(RecordOutcome.refused)
    }

    /// What a request gets without being applied; nil if it is to be applied.
    func earlierOutcome(of command: ModifyZone) throws -> RecordOutcome? {
        guard let idempotency = command.idempotency else { return nil }
        let databaseID = try openDatabase(command.zone.database).row?.id
        if let databaseID, let found = try RememberedOutcome.find(idempotency, databaseID: databaseID, in: db) {
            switch found {
            case .success(let remembered): return remembered.outcome
            case .failure(let error): return .refused(error)
            }
        }
        return try refusal(of: idempotency, databaseID: databaseID, at: command.time).map(RecordOutcome.refused)
    }

    /// Why a key that is not remembered may not be used; nil if it may.
    ///
    /// A key's age is judged by the clock of the command. Whether its outcome may have been forgotten is judged by what
    /// was forgotten: so no request is applied twice, however wrong the clocks were by which maintenance removed rows.
    private func refusal(of idempotency: IdempotencyKey, databaseID: Int64?, at now: Int64) throws -> ServiceError? {
        if let made = idempotency.madeAt {
            if made <= forgotten || made < saturating(now, -rememberedMilliseconds) { return Self.tooOld }
            if made > saturating(now, rememberedMilliseconds) {
                return ServiceError(.badRequest, "Idempotency-Key is dated more than 24 hours ahead: check the clock")
            }
        }
        let used = try databaseID.flatMap { databaseID in
            try SQLStatement(cached: "SELECT bytes FROM idempotency_use WHERE database = ? AND caller = ?", in: db)
                .first(.integer(databaseID), .text(idempotency.caller)) { $0.integer(0) }
        }
        guard let used, used >= Limits.rememberedBytesMax else { return nil }
        return ServiceError(
            .quotaExceeded,
            """
            what this caller's requests of the last 24 hours are remembered by takes \(used) bytes, of at most \
            \(Limits.rememberedBytesMax): send the request without an Idempotency-Key, or later
            """)
    }

    /// Stores an outcome, for 24 hours from now or from the key's own time, whichever is later. Maintenance removes the
    /// row; from then on the key is too old.
    func remember(_ outcome: RememberedOutcome, of idempotency: IdempotencyKey, in database: DatabaseKey) throws {
        let expires = saturating(max(time, idempotency.madeAt ?? time), rememberedMilliseconds)
        let databaseID = try makeDatabase(database).id
        let bytes = outcome.encoded()
        try SQLStatement(cached: "INSERT INTO idempotency VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", in: db).run(
            .integer(databaseID), .text(idempotency.caller), .blob(idempotency.key),
            .integer(Int64(bitPattern: idempotency.position)), .blob(idempotency.bodyHash), .blob(bytes),
            .integer(expires))
        let rowBytes = RememberedOutcome.rowBytes(outcome: bytes, caller: idempotency.caller)
        if counted.contains(RowPlace(.idempotency, row: db.lastInsertedRowID)) {
            try count(rowBytes, databaseID: databaseID)
        }
        try SQLStatement(
            cached: """
                INSERT INTO idempotency_use VALUES (?, ?, ?)
                ON CONFLICT (database, caller) DO UPDATE SET bytes = bytes + excluded.bytes
                """, in: db
        ).run(.integer(databaseID), .text(idempotency.caller), .integer(rowBytes))
    }

    /// Removes what is remembered of requests whose keys are too old to be used again.
    func purgeIdempotency(budget: Int) throws -> Int {
        let old = try SQLStatement(
            cached: """
                SELECT id, database, caller, key, \(RememberedOutcome.rowBytes) FROM idempotency WHERE expires <= ?
                ORDER BY expires, id LIMIT ?
                """, in: db
        ).all(.integer(time), .integer(Int64(budget))) { row in
            (
                id: row.integer(0), databaseID: row.integer(1),
                key: IdempotencyKey(key: row.bytes(3), bodyHash: [], caller: row.text(2)), bytes: row.integer(4)
            )
        }
        var count = 0
        // Rows of earlier versions may carry records; these rows have 4 MB of their own, whatever jobs read.
        var bytes: Int64 = 0
        var freed: [Int64: Int64] = [:]
        for row in old where bytes < Int64(Self.partBytesMax) {
            try SQLStatement(cached: "DELETE FROM idempotency WHERE id = ?", in: db).run(.integer(row.id))
            try db.checkOneRow("the end of answer \(row.id)")
            try SQLStatement(
                cached: "UPDATE idempotency_use SET bytes = bytes - ? WHERE database = ? AND caller = ?", in: db
            ).run(.integer(row.bytes), .integer(row.databaseID), .text(row.key.caller))
            try db.checkOneRow("\(row.bytes) bytes of answers to a caller of database \(row.databaseID)")
            try SQLStatement(
                cached: "DELETE FROM idempotency_use WHERE database = ? AND caller = ? AND bytes <= 0", in: db
            ).run(.integer(row.databaseID), .text(row.key.caller))
            if let made = row.key.madeAt { forgotten = max(forgotten, made) }
            if counted.contains(RowPlace(.idempotency, row: row.id)) { freed[row.databaseID, default: 0] += row.bytes }
            count += 1
            bytes += row.bytes
        }
        for (databaseID, bytes) in freed.sorted(by: { $0.key < $1.key }) {
            try self.count(0 - bytes, databaseID: databaseID)
        }
        return count
    }

    private static let tooOld = ServiceError(
        .badRequest, "Idempotency-Key is older than 24 hours: read the records, then use a new key")
}

/// A sum that stops at the ends of the range: commands may carry any time.
func saturating(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? (right > 0 ? Int64.max : Int64.min) : sum
}

extension IdempotencyKey {
    /// The time inside a UUIDv7 in milliseconds; nil for other keys.
    var madeAt: Int64? { UUIDv7.milliseconds(of: key) }
}
