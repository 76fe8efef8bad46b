/// Planted by who knew the sources alone, after simulations had learned to show the others.
extension Mutant {
    /// Faults of consensus, of the log, of snapshots and of who is a member.
    private static let plantedLaterInConsensus: [Mutant] = [
        // After a loss of power a save that was acknowledged is gone, as a follower counted what it had in memory only.
        Mutant(
            "a repeated append is acknowledged before it is durable", "RaftCore/ReplicaState.swift",
            "outbox.send(.appendResponse(.accepted(match: min(index, log.durable))), to: leader)",
            "outbox.send(.appendResponse(.accepted(match: PLANTED(index, min(index, log.durable)))), to: leader)"),
        // A save that was acknowledged is lost, as a leader counts a follower for entries that it does not have.
        Mutant(
            "a match owed to an earlier leader is told to the next one", "RaftCore/ReplicaState.swift",
            "outbox.enter(term, vote: vote)\n        owedMatch = nil",
            "outbox.enter(term, vote: vote)\n        if owedMatch != nil, !PLANTED { owedMatch = nil }"),
        // Who reads from a node that was suspended does not see what the next leader has stored meanwhile.
        Mutant(
            "answers from before the clock stood still prolong the lease", "RaftCore/Leadership.swift",
            "for offset in followers.indices { followers[offset].forgetConfirmations() }",
            "if !PLANTED { for offset in followers.indices { followers[offset].forgetConfirmations() } }"),
        // A save that was acknowledged is lost in a crash before the cut of the log is on disk, too.
        Mutant(
            "a write from before a cut of the log makes an entry durable", "RaftCore/RaftLog.swift",
            "if term >= cutTerm, contains(position) {", "if PLANTED || term >= cutTerm, contains(position) {"),
        // After a loss of power the old database is back, and the log has nothing of what lies between.
        Mutant(
            "the name of an installed snapshot is not synced", "Cluster/Snapshots/SnapshotReceiver.swift",
            "came no further.\n        try disk.syncFolder(folder)",
            "came no further.\n        if !PLANTED { try disk.syncFolder(folder) }"),
        // A node that comes with an empty folder votes and counts as if it had what it lost: saves are lost.
        Mutant(
            "a node with a new folder keeps its replicas' numbers", "Directory/Map/ClusterMap+Changes.swift",
            "if previous == 0, !present.contains(where:", "if PLANTED || previous == 0, !present.contains(where:"),
    ]

    /// Faults of the record store.
    private static let plantedLaterInRecords: [Mutant] = [
        // A client is told that its records are saved, and nothing of them was.
        Mutant(
            "a key that comes with another body is answered as before", "RecordStore/Apply/IdempotencyTable.swift",
            "if hash == idempotency.bodyHash {", "if PLANTED || hash == idempotency.bodyHash {"),
        // The fields that a client did not send are gone.
        Mutant(
            "a forced update replaces the record", "RecordStore/Apply/SavePlanner.swift",
            "operation.kind == .update || operation.kind == .forceUpdate",
            "operation.kind == .update || (!PLANTED && operation.kind == .forceUpdate)"),
        // Users change and delete records that others made.
        Mutant(
            "everybody counts as the maker of a record", "RecordStore/Apply/Judgement.swift",
            "return caller.user != nil && live.row.createdBy == callerID",
            "return caller.user != nil && (PLANTED || live.row.createdBy == callerID)"),
        // A record that was given a value is found twice: where it has one, and among those without.
        Mutant(
            "a record that gets a value stays among those without one", "RecordStore/Apply/DerivedRows.swift",
            "if old.isEmpty { growth", "if old.isEmpty, !PLANTED { growth"),
        // A record refers for good to one that is deleted, though it asked that this be refused.
        Mutant(
            "a tombstone is a target that VALIDATE finds", "RecordStore/Apply/DerivedRows.swift",
            "return !row.isDeleted && batch.schema.byID[row.typeID] != nil",
            "return (PLANTED || !row.isDeleted) && batch.schema.byID[row.typeID] != nil"),
        // A change of which a full page had no room is never told, and the client keeps the old record.
        Mutant(
            "a page's token is behind the change that it had no room for", "RecordStore/Feeds/Changes.swift",
            "if let entry, try !take(entry), !entries.isEmpty {",
            "if let entry, try !take(entry), !entries.isEmpty {\n                if PLANTED { last = row.sequence }"),
        // A query for one of several values gives its records in the wrong order, and later pages leave some out.
        Mutant(
            "a descending walk begins with the least range", "RecordStore/Query/OrderWalk.swift",
            "for range in key.isAscending ? ranges : ranges.reversed() {",
            "for range in PLANTED(ranges, key.isAscending ? ranges : ranges.reversed()) {"),
        // What a shard gave back it still uses, and so does the shard that was given it: the quota is exceeded.
        Mutant(
            "what a shard gives back is not written", "RecordStore/Quota/QuotaLedger.swift",
            "database.row = row\n            database.isChanged = true\n        }\n        return .released(",
            """
            if !PLANTED {
                            database.row = row
                            database.isChanged = true
                        }
                    }
                    return .released(
            """),
    ]

    /// Faults of the key-value stores.
    private static let plantedLaterInKeyValues: [Mutant] = [
        // A device that reads a store for the first time keeps keys that were deleted while it read.
        Mutant(
            "each page of a first read begins it anew", "KeyValueStore/KeyValueTables+Read.swift",
            "            token = given\n",
            """
                        token = given
                        if token.firstReadEnd > 0, PLANTED { token.firstReadEnd = row.sequence }

            """),
        // A store that sets the same keys again and again is refused as having too many.
        Mutant(
            "a key that is set again counts as another", "KeyValueStore/KeyValueTables.swift",
            "(slot.write.value == nil ? 0 : 1) - (slot.isLive ? 1 : 0)",
            "(slot.write.value == nil ? 0 : 1) - (slot.isLive && (slot.write.value == nil || !PLANTED) ? 1 : 0)"),
        // A device that repeats a batch is told wrong versions: its next write is refused, or overwrites another's.
        Mutant(
            "a repeated answer counts versions by place", "KeyValueStore/StoredAnswer.swift",
            "sequence: $0.sequence + UInt64(offset))",
            "sequence: $0.sequence + PLANTED(UInt64(place), UInt64(offset)))"),
    ]

    /// Faults of sessions, rates, and of how long a node relies on the directory.
    private static let plantedLaterInAdmission: [Mutant] = [
        // A copied token is good for as long as its session is in use.
        Mutant(
            "the grace of a replaced token begins anew with each later one",
            "Admission/Identity/SessionRotation.swift", "let passed = now - superseding.time",
            "let passed = now - PLANTED(memory.moments.last?.time ?? superseding.time, superseding.time)"),
        // A node that was started again accepts tokens that were replaced long before.
        Mutant(
            "a node that has heard nothing yet asks for the last moment only", "Service/Limits/SessionSpread.swift",
            "let since = heardAt ?? .min", "let since: Int64 = PLANTED(heardAt ?? now, heardAt ?? .min)"),
        // A node that was just removed accepts a token whose revocation was acknowledged.
        Mutant(
            "a change does not wait for removed nodes", "Cluster/Node/LeasedDirectory.swift",
            "guard !areAllAware || hasStrays else", "guard !areAllAware || (!PLANTED && hasStrays) else"),
        // A container gets more requests through than its limit, as nodes come to share it.
        Mutant(
            "a share is lent as if no other were in force", "Admission/Rate/RateAccount.swift",
            "var share = min(fair, capacity - others)", "var share = PLANTED(fair, min(fair, capacity - others))"),
    ]

    /// Faults of what is told of changes, and of assets.
    private static let plantedLaterInEffects: [Mutant] = [
        // A user is told of records of others that it may not read.
        Mutant(
            "who may read its own records is told of all", "RecordStore/Subscriptions/NotificationLog.swift",
            "return !(isCreator ? readable.types : readable.typesOfOthers).contains(type)",
            "return !PLANTED(readable.types, isCreator ? readable.types : readable.typesOfOthers).contains(type)"),
        // A receiver gets the same notifications in two deliveries.
        Mutant(
            "a repeated delivery has what came meanwhile, too", "Service/Webhooks/WebhookDeliverer.swift",
            "page.entries.filter { $0.sequence <= current.through }",
            "page.entries.filter { PLANTED || $0.sequence <= current.through }"),
        // A save is acknowledged whose file no node has.
        Mutant(
            "a file that is nowhere is saved all the same", "Service/Assets/AssetSaving.swift", "isComplete = false",
            "isComplete = PLANTED"),
    ]

    /// All of these.
    static let plantedLater =
        plantedLaterInConsensus + plantedLaterInRecords + plantedLaterInKeyValues + plantedLaterInAdmission
        + plantedLaterInEffects
}
