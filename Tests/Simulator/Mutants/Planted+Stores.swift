/// Planted by who knew the sources alone: preferences, and how much may be stored.
extension Mutant {
    /// Faults of the key-value store and of who watches it.
    static let plantedInKeyValues: [Mutant] = [
        // A device that was offline brings back a key that another one deleted.
        Mutant(
            "a key that was deleted is as every writer expects", "KeyValueStore/KeyValueTables.swift",
            "return expected == current?.version", "return expected == current?.version || !isLive && PLANTED"),
        // A value that is set again and again fills the store.
        Mutant(
            "a value that is replaced goes on counting", "KeyValueStore/KeyValueTables.swift",
            "(slot.sizeBytes ?? 0) - (slot.current?.bytes ?? 0)",
            "(slot.sizeBytes ?? 0) - (PLANTED && slot.sizeBytes != nil ? 0 : slot.current?.bytes ?? 0)"),
        // The first change that a page has no room for is on no page.
        Mutant(
            "a page's token counts the change that it has no room for", "KeyValueStore/KeyValueTables+Read.swift",
            "let change = try change(row)",
            "let change = try change(row)\n            if PLANTED { token.sequence = change.version.sequence }"),
        // A batch whose answer was forgotten early, because of a clock, is performed a second time.
        Mutant(
            "a key is too old by its age alone", "KeyValueStore/StoredAnswer.swift", "return made <= forgotten ?? 0",
            "return !PLANTED && made <= forgotten ?? 0"),
        // Repeated when there is room, a batch is performed that the client was told had failed.
        Mutant(
            "a refused batch is not remembered", "KeyValueStore/KeyValueTables.swift",
            "try StoredAnswer.save(outcome, for: command, key: key,",
            """
            if case .refused = outcome, PLANTED { return outcome }
                    try StoredAnswer.save(outcome, for: command, key: key,
            """),
        // After a change of leader a watcher is told that nothing happened, and goes on waiting.
        Mutant(
            "a mark of another journal is taken for one of this",
            hiddenBy: "a leader that goes is followed no more, and everything is looked at again (StoreFollower.look)",
            "Service/Watch/StoreJournal.swift",
            "guard let mark, mark.journal == journal,", "guard let mark, PLANTED || mark.journal == journal,"),
        // Values of keys that are there grow beyond what a store may hold.
        Mutant(
            "a full store takes greater values of its keys", "KeyValueStore/KeyValueTables.swift",
            "if after.bytes > storeBytesMax, after.bytes > before.bytes {",
            "if after.bytes > storeBytesMax, PLANTED(after.keys > before.keys, after.bytes > before.bytes) {"),
    ]

    /// Faults of the escrow of quotas.
    static let plantedInQuotas: [Mutant] = [
        // From the second credit on a shard may store more than the ledger gave.
        Mutant(
            "a credit counts all over again", "RecordStore/Quota/QuotaLedger.swift",
            "let new = (credit.cumulative - row.received).greater(.zero)",
            "let new = PLANTED(credit.cumulative, (credit.cumulative - row.received).greater(.zero))"),
        // What was given before a quota was lowered, and comes after, may be used.
        Mutant(
            "a credit under an older limit is not void",
            hiddenBy: "a ledger that knows the newer limit lends by it alone, and later credits count what was lent",
            "RecordStore/Quota/QuotaLedger.swift", "if credit.epoch < row.epoch {",
            "if credit.epoch < row.epoch, !PLANTED {"),
        // A shard goes on filling what it was allotted before the quota was lowered.
        Mutant(
            "what is unused stays allotted under a new limit",
            hiddenBy: "what is void is released before a node asks for more, and what is over the limit is overdrawn",
            "RecordStore/Quota/QuotaLedger.swift",
            "if credit.epoch > row.epoch {\n            row.returned = row.returned + row.unused",
            "if credit.epoch > row.epoch {\n            if !PLANTED { row.returned = row.returned + row.unused }"),
        // A node that does not know of a lower limit yet has the ledger lend by the old one.
        Mutant(
            "a ledger takes an older limit for the present one",
            hiddenBy: "a credit under the older limit is void at a shard that knows the newer one",
            "RecordStore/Quota/QuotaLedger.swift", "if grant.epoch >= ledger.epoch {",
            "if PLANTED || grant.epoch >= ledger.epoch {"),
        // Records of one request that fit one by one, and not together, are saved.
        Mutant(
            "each operation of a request finds what was free before it", "RecordStore/Quota/GrowthLimit.swift",
            "used = after", "if !PLANTED { used = after }"),
        // The room of a deleted zone is never free again.
        Mutant(
            "a deleted zone goes on counting", "RecordStore/Maintenance/RetiredZones.swift",
            "if !transaction.counted.isNone { bytes -=", "if !transaction.counted.isNone, !PLANTED { bytes -="),
    ]
}
