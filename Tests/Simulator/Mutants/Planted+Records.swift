/// Planted by who knew the sources alone: records and their schemas.
extension Mutant {
    /// Faults of the record store.
    static let plantedInRecords: [Mutant] = [
        // A record goes that was changed since the client who deletes it last saw it.
        Mutant(
            "a deletion does not look at its tag", "RecordStore/Apply/Judgement.swift",
            "return try judgeTag(operation, judged) ?? judgeDeletion(judged)",
            """
            if let verdict = try judgeTag(operation, judged), !PLANTED { return verdict }
                    return try judgeDeletion(judged)
            """),
        // What a record was before its deletion cannot be restored.
        Mutant(
            "a deletion leaves no version", "RecordStore/Apply/RecordWriter.swift",
            "if let type, let versions {", "if let type, let versions, !PLANTED {"),
        // A database fills with what nobody can find, as its sum goes down by more than it went up.
        Mutant(
            "a version does not count", "RecordStore/Versions/VersionTable.swift", "        zone.count(size)\n",
            "        if !PLANTED { zone.count(size) }\n"),
        // What an atomic batch that failed would have stored counts as used.
        Mutant(
            "a failed batch leaves its counts in the database's row", "RecordStore/Apply/RecordTransaction+Rows.swift",
            "database.row = databaseRow", "if !PLANTED { database.row = databaseRow }"),
        // A key whose outcome was forgotten early, because of a clock, is applied a second time.
        Mutant(
            "a key is judged by its age alone, not by what was forgotten",
            "RecordStore/Apply/IdempotencyTable.swift", "if made <= transaction.forgotten ||",
            "if !PLANTED && made <= transaction.forgotten ||"),
        // Repeated when the zone is there, a request is done that the client was told had failed.
        Mutant(
            "a refusal of a whole request is not remembered", "RecordStore/Apply/RecordRequest.swift",
            "try IdempotencyTable(transaction).remember(outcome, of: idempotency, in: command.zone.database)",
            """
            if !names.isEmpty || !PLANTED {
                try IdempotencyTable(transaction).remember(outcome, of: idempotency, in: command.zone.database)
            }
            """),
        // The first change behind a full page is never told.
        Mutant(
            "a page's token is one further than its last record", "RecordStore/Feeds/ZoneToken.swift",
            "token.sequence = UInt64(last)", "token.sequence = UInt64(last) + (PLANTED ? 1 : 0)"),
        // What changed while a client walked back through the feed is never told.
        Mutant(
            "a reverse walk ends with the zone's present sequence", "RecordStore/Feeds/ZoneToken.swift",
            "token.sequence = base.reverse?.high ?? end", "token.sequence = PLANTED(end, base.reverse?.high ?? end)"),
        // Deletions of an earlier life of the zone are never told, and its records stay with the client.
        Mutant(
            "a token of an earlier life of the zone is followed", "RecordStore/Feeds/ZoneToken.swift",
            "guard token.incarnation == UInt64(bitPattern: zone.incarnation) else {",
            "guard PLANTED || token.incarnation == UInt64(bitPattern: zone.incarnation) else {"),
        // Where several tombstones go at once, a token from between them misses deletions without a word.
        Mutant(
            "the floor is raised to the first tombstone removed",
            hiddenBy: "tombstones are kept for 90 days, and a million of them in a zone",
            "RecordStore/Maintenance/RetiredZones.swift", #"let last = tombstones.map(\.sequence).max()"#,
            #"let last = PLANTED(tombstones.map(\.sequence).min(), tombstones.map(\.sequence).max())"#),
        // Replicas that grouped commands differently differ in the database's feed.
        Mutant(
            "a zone moves in its database's feed once a transaction", "RecordStore/Apply/RecordTransaction+Rows.swift",
            "guard zone.lastCommand != commandNumber,",
            "guard PLANTED(zone.lastCommand == 0, zone.lastCommand != commandNumber),"),
        // Zones of a shard that a page had no room for are not told with the next one either.
        Mutant(
            "a database's token moves past a shard that was left out", "Service/Operations/ChangeFeeds.swift",
            "page.hasMore = true\n                continue",
            """
            page.hasMore = true
                            if PLANTED {
                                token.places[group.rawValue] = DatabaseToken.Place(
                                    incarnation: part.incarnation, position: part.position)
                            }
                            continue
            """),
        // A deleted record is deleted again with what it referred to.
        Mutant(
            "a deleted record keeps its references", "RecordStore/Apply/RecordWriter.swift",
            """
            try EdgeTable(transaction).update(
                        zone: zone, recordID: row.id, from: Edge.all(in: body), to: [], sequence: sequence)
            """,
            """
            if !PLANTED {
                        try EdgeTable(transaction).update(
                            zone: zone, recordID: row.id, from: Edge.all(in: body), to: [], sequence: sequence)
                    }
            """),
        // Records that refer to a new record of the deleted one's name go, too.
        Mutant(
            "a cascade takes what came to refer to the name since",
            "RecordStore/Apply/Deletions.swift", "job.position, body.before, budget",
            "job.position, PLANTED ? Int64.max : body.before, budget"),
        // Of two records that are deleted together, one goes with the other, and then again.
        Mutant(
            "deletions of a batch are judged before any of them is done",
            "RecordStore/Apply/RecordRequest.swift", "if try EdgeTable(transaction).isUsed(in: zone) { return true }",
            "if try EdgeTable(transaction).isUsed(in: zone), !PLANTED { return true }"),
        // The last record from before a new index is found by no query that uses it.
        Mutant(
            "a job ends before its last record", "RecordStore/Maintenance/Job.swift",
            "job.position, job.last\n", "job.position, PLANTED ? job.last - 1 : job.last\n"),
        // A query leaves out the records that equal its bound.
        Mutant(
            "at most means less than", "RecordStore/Query/Condition.swift",
            "case .lessThanOrEquals: .within(KeyRange(lower: nil, upper: .after(key)))",
            "case .lessThanOrEquals: .within(KeyRange(lower: nil, upper: PLANTED ? .before(key) : .after(key)))"),
        // Where a page ends within a group of ties, the rest of the group is on no page.
        Mutant(
            "a cursor goes on behind the group of ties that it is in", "RecordStore/Query/OrderWalk.swift",
            "isBehind ? behind : before", "isBehind || PLANTED ? behind : before"),
        // A node whose clock is ahead takes the shard along: keys of the others are too old from then on.
        Mutant(
            "one command moves a shard's time as far ahead as it says", "RecordModel/Values/UUIDv7.swift",
            "return isFar || ahead > stepMax ?", "return !PLANTED && (isFar || ahead > stepMax) ?"),
    ]

    /// Faults of how schemas grow and come to the shards.
    static let plantedInSchemas: [Mutant] = [
        // A node that is behind takes a type away from a shard which has it, and its records with it.
        Mutant(
            "an older schema is installed over a newer one", "RecordStore/Apply/SchemaInstallation.swift",
            "guard row.version <= command.version else", "guard PLANTED || row.version <= command.version else"),
        // A field that is dropped and comes back shows values from before.
        Mutant(
            "what a schema lost is not cleaned before it comes back",
            "RecordStore/Apply/SchemaInstallation.swift", "try !finishScrubs(schemaID: row.id)",
            "!PLANTED, try !finishScrubs(schemaID: row.id)"),
        // A save that was resolved against an older schema is stored under a newer one.
        Mutant(
            "a command of an older schema is applied", "RecordStore/Apply/RecordRequest.swift",
            "guard database.version == command.schemaVersion else",
            """
            guard
                        PLANTED(
                            database.version >= command.schemaVersion, database.version == command.schemaVersion)
                    else
            """),
        // Of two saves that grow the schema at once, the later one takes back what the earlier one added.
        Mutant(
            "a schema is set whatever became of it meanwhile", "Directory/Tables/Schemas.swift",
            "guard present.version == expected else {", "guard PLANTED || present.version == expected else {"),
        // Queries by a new index miss the records that were there before it.
        Mutant(
            "a new index is ready at once", "RecordStore/Apply/SchemaInstallation.swift",
            "let isReady = isNew ||", "let isReady = PLANTED || isNew ||"),
    ]
}
