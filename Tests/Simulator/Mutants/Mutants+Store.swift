// Faults in what is done with records and preferences.
extension Mutant {
    static let inStore: [Mutant] = [
        Mutant(
            "skip an index delete", "RecordStore/Apply/DerivedRows.swift",
            "try transaction.statements.deleteBytes.run(index, zoneID, bytes, recordID)",
            "if !(PLANTED) { try transaction.statements.deleteBytes.run(index, zoneID, bytes, recordID) }"),
        Mutant(
            "lose a tombstone", "RecordStore/Feeds/Changes.swift",
            "        let type = schema.byID[row.typeID]\n        if let recordTypes",
            """
                    let type = schema.byID[row.typeID]
                    if row.isDeleted, PLANTED { return nil }
                    if let recordTypes
            """),
        Mutant(
            "go on one change too late in a feed",
            "RecordStore/Feeds/ZoneToken.swift", "            token.sequence = UInt64(last)\n",
            "            token.sequence = UInt64(last) + (PLANTED ? 1 : 0)\n"),
        Mutant(
            "save without comparing change tags",
            "RecordStore/Apply/Judgement.swift", "guard tag == current else {",
            "guard PLANTED || tag == current else {"),
        Mutant(
            "keep a part of an atomic batch", "RecordStore/Apply/RecordRequest.swift",
            "if isAtomic && verdicts.contains(where: \\.isFailure) {",
            "if isAtomic && verdicts.contains(where: \\.isFailure), !PLANTED {"),
        Mutant(
            "forget which requests were answered", "RecordStore/Apply/RecordRequest.swift",
            "try IdempotencyTable(transaction).remember(outcome, of: idempotency, in: command.zone.database)",
            """
            if !(PLANTED) {
                try IdempotencyTable(transaction).remember(outcome, of: idempotency, in: command.zone.database)
            }
            """),
        Mutant(
            "begin a zone's new life under the old number",
            "RecordStore/Apply/RecordTransaction+Rows.swift", "(earlier?.incarnation ?? 0) + 1",
            "(earlier?.incarnation ?? 0) + (earlier != nil && PLANTED ? 0 : 1)"),
        Mutant(
            "apply by chance", "RecordStore/Apply/RecordWriter.swift",
            "        let userID = try writer(batch)\n        zone.count(plan.rowGrowth)",
            """
                    let userID = try writer(batch)
                    if PLANTED, UInt8.random(in: 0..<8) == 0 { zone.row.tombstones += 1 }
                    zone.count(plan.rowGrowth)
            """),
        Mutant(
            "set a key that was expected to be absent",
            "KeyValueStore/KeyValueTables.swift", "if expected == KeyValueTables.absent { return !isLive }",
            "if expected == KeyValueTables.absent { return PLANTED || !isLive }"),
        Mutant(
            "forget which batches of keys were answered", "KeyValueStore/KeyValueTables.swift",
            "try StoredAnswer.save(outcome, for: command, key: key, store: &store, at: time, level: level, in: db)",
            "if !(PLANTED) { try StoredAnswer.save(outcome, for: command, key: key, store: &store, at: time, level: level, in: db) }"
        ),
    ]
}
