/// Planted by who knew the sources alone: who is let in, how fast, and what is told of it.
extension Mutant {
    /// Faults of how rates are lent.
    static let plantedInRates: [Mutant] = [
        // A share that was lowered is lent to others before its holder says that it holds less.
        Mutant(
            "a lowered share counts as given back at once", "Admission/Rate/RateLedger.swift",
            "now < until ? max(held, granted) : 0", "now < until ? PLANTED(granted, max(held, granted)) : 0"),
        // After a slow answer a node uses its share longer than the ledger takes it as lent.
        Mutant(
            "a share lasts from the answer on", "Admission/Rate/RateLimiter.swift", "new.until = sentAt + min(",
            "new.until = (PLANTED ? now : sentAt) + min("),
        // After an election all of the limit is lent, and what the last leader lent is in force, too.
        Mutant(
            "a new leader does not wait for the shares of the last one", "Admission/Rate/RateLedger.swift",
            "isAlone ? since : since + RateRules.ledgerLifetime",
            "isAlone ? since : since + (PLANTED ? 0 : RateRules.ledgerLifetime)"),
        // Who leads again goes on by its books, and another lent in between.
        Mutant(
            "a ledger keeps its books over a change of leader", "Admission/Rate/RateLedger.swift",
            "self = RateLedger()", "if !PLANTED { self = RateLedger() }"),
        // A leader that was suspended lends once more when it wakes, while another lends.
        Mutant(
            "a leader answers before it looks whether its time is over", "Cluster/Lane/LeaderReads.swift",
            "guard let replica = context.replica(of: group), replica.raft.role == .leader else { return answer() }",
            """
            guard let replica = context.replica(of: group), replica.raft.role == .leader, !PLANTED
                    else { return answer() }
            """),
    ]

    /// Faults of sessions, of signatures and of signing out.
    static let plantedInSessions: [Mutant] = [
        // A copied token is good for as long as the session.
        Mutant(
            "a superseded token is good beyond the grace time", "Admission/Identity/SessionRotation.swift",
            "return (passed <= grace ?", "return (PLANTED || passed <= grace ?"),
        // A message that was lost is not asked for: on that node older tokens stay good.
        Mutant(
            "one lost message about sessions is not noticed", "Service/Limits/SessionSpread.swift",
            "if !isSame || news.number > heardNumber + 1 {",
            "if !isSame || PLANTED(news.number > heardNumber + 2, news.number > heardNumber + 1) {"),
        // After a change of leader a request that is copied is done again.
        Mutant(
            "a new leader takes signatures dated before it led", "Admission/Identity/ReplayGuard.swift",
            "state.withLock { $0.begun = time }", "state.withLock { if !PLANTED { $0.begun = time } }"),
        // A signature dated ahead outlives the leader who remembers it, and passes the next one.
        Mutant(
            "a signature whose date is still to come is taken", "Admission/Identity/ReplayGuard.swift",
            "guard signature.time <= now else {", "guard PLANTED || signature.time <= now else {"),
        // Who leads again does not know what another let through in between.
        Mutant(
            "the memory of signatures goes on over a change of leader", "Service/Limits/SignatureMemory.swift",
            "known.term == leadership.term {", "PLANTED || known.term == leadership.term {"),
        // Of several sessions that are ended together, nodes forget the first until they are started again.
        Mutant(
            "signing out everywhere tells of one session", "Directory/Tables/TokenRows.swift",
            "byRemoving: tokens)", "byRemoving: Array(tokens.prefix(PLANTED(1, tokens.count))))"),
        // A node goes on with what it has in memory of a session that ended.
        Mutant(
            "a session that ended stays in memory", "Cluster/Machines/DirectoryMachine.swift",
            "{ sessions.remove(token) }", "where !PLANTED { sessions.remove(token) }"),
    ]

    /// Faults of the audit logs and of limits.
    static let plantedInAudit: [Mutant] = [
        // Where one entry tells of several events, the chain of hashes breaks.
        Mutant(
            "records of one entry follow the same record", "Directory/Audit/AuditRows.swift", " hash = record.hash",
            " if events.count == 1 || !PLANTED { hash = record.hash }"),
        // Shards go on with what they were allotted before a quota was lowered.
        Mutant(
            "a changed limit keeps its epoch", "Directory/DirectoryEntry.swift", "epoch += 1",
            "if !PLANTED { epoch += 1 }"),
        // A container with limits of its own is held to the cluster's old ones until the node is started again.
        Mutant(
            "the cluster's new limits do not reach containers with their own",
            "Directory/DirectoryContents.swift",
            "effective = containers.mapValues { Self.limits([cluster, $0]) }",
            "if !PLANTED { effective = containers.mapValues { Self.limits([cluster, $0]) } }"),
    ]
}
