import RecordModel
import Wire

/// How long a request's repetition is recognised, in milliseconds of shard time.
private let rememberedMilliseconds: Int64 = 24 * 60 * 60 * 1000

extension RecordTransaction {
    /// What a request with this key gets without being applied; nil if it is to be applied.
    func earlierOutcome(_ idempotency: IdempotencyKey, in database: DatabaseKey) throws -> RecordOutcome? {
        if let databaseID = try openDatabase(database).row?.id {
            let found = try SQLStatement(
                cached: """
                    SELECT hash, outcome, expires FROM idempotency
                    WHERE database = ? AND caller = ? AND key = ? AND position = ?
                    """, in: db
            ).first(
                .integer(databaseID), .text(idempotency.caller), .blob(idempotency.key),
                .integer(Int64(bitPattern: idempotency.position))
            ) { ($0.bytes(0), $0.bytes(1), $0.integer(2)) }
            if let (hash, outcome, expires) = found {
                guard expires > time else { return Self.tooOld }
                guard hash == idempotency.bodyHash else {
                    return .refused(
                        ServiceError(.badRequest, "Idempotency-Key was used before with another body: use a new key"))
                }
                return try RecordOutcome(decoding: outcome)
            }
        }
        guard let made = idempotency.madeAt else { return nil }
        if made < saturating(time, -rememberedMilliseconds) { return Self.tooOld }
        if made > saturating(time, rememberedMilliseconds) {
            return .refused(
                ServiceError(.badRequest, "Idempotency-Key is dated more than 24 hours ahead: check the clock"))
        }
        return nil
    }

    /// Stores the outcome, for 24 hours from now or from the key's own time, whichever is later: when the row goes, the
    /// key itself is too old. Maintenance removes the row.
    func remember(_ outcome: RecordOutcome, of idempotency: IdempotencyKey, in database: DatabaseKey) throws {
        let expires = saturating(max(time, idempotency.madeAt ?? time), rememberedMilliseconds)
        try SQLStatement(cached: "INSERT INTO idempotency VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", in: db).run(
            .integer(try makeDatabase(database).id), .text(idempotency.caller), .blob(idempotency.key),
            .integer(Int64(bitPattern: idempotency.position)), .blob(idempotency.bodyHash), .blob(outcome.encoded()),
            .integer(expires))
    }

    private static let tooOld = RecordOutcome.refused(
        ServiceError(.badRequest, "Idempotency-Key is older than 24 hours: read the records, then use a new key"))
}

/// A sum that stops at the ends of the range: commands may carry any time.
func saturating(_ left: Int64, _ right: Int64) -> Int64 {
    let (sum, overflow) = left.addingReportingOverflow(right)
    return overflow ? (right > 0 ? Int64.max : Int64.min) : sum
}

extension IdempotencyKey {
    /// The time inside a UUIDv7 in milliseconds; nil for other keys.
    var madeAt: Int64? {
        guard key.count == 16, key[6] >> 4 == 7 else { return nil }
        return key[0..<6].reduce(0) { $0 << 8 | Int64($1) }
    }
}
