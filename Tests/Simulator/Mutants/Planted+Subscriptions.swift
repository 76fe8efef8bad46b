/// Planted by who knew the sources alone: who is told of what, and what nodes lend and remember.
extension Mutant {
    /// Faults of what is matched, and of subscriptions.
    private static let plantedInMatching: [Mutant] = [
        // Devices fetch what never happened, or show it.
        Mutant(
            "a batch that failed as a whole is told of", "RecordStore/Apply/RecordTransaction+Rows.swift",
            "transaction.matcher.forget(after: matcherMark)",
            "transaction.matcher.forget(after: PLANTED(transaction.matcher.mark, matcherMark))"),
        // Who wants to hear of new records does not hear of one whose name had been used.
        Mutant(
            "a record over a tombstone counts as updated", "RecordStore/Apply/RecordWriter.swift",
            "plan.storedFields == nil ? .created", "PLANTED(plan.row == nil, plan.storedFields == nil) ? .created"),
        // Under load a user hears of a zone's later change before an earlier one.
        Mutant(
            "a change is matched before those of its container that wait", "RecordStore/Subscriptions/Matcher.swift",
            "|| isBehindOthers(change)", "|| (!PLANTED && isBehindOthers(change))"),
        // One that covers all zones tells once for each shard, and one that has told is still in the list.
        Mutant(
            "a subscription that fires once stays at its home", "RecordStore/Subscriptions/SubscriptionHome.swift",
            "if row.subscription.firesOnce {", "if row.subscription.firesOnce, !PLANTED {"),
        // After it was made anew, a user is told by its name what only the former one asked for.
        Mutant(
            "matches of an earlier subscription of the name are entered",
            hiddenBy: "it takes one that is under way when its subscription is made anew (NotificationBoundsTests)",
            "RecordStore/Subscriptions/SubscriptionHome.swift", "guard row.generation == match.generation",
            "guard PLANTED || row.generation == match.generation"),
        // A subscription that was moved to another zone goes on telling of the former one.
        Mutant(
            "a group that a replaced subscription leaves keeps its copy",
            "RecordStore/Subscriptions/SubscriptionHome.swift", "where !targets.contains(target)",
            "where !PLANTED && !targets.contains(target)"),
    ]

    /// Faults of the effects that groups have on each other.
    private static let plantedInOutboxes: [Mutant] = [
        // Where an acknowledgement was lost and more came meanwhile, users are told twice.
        Mutant(
            "a delivery that is new in part is applied as a whole", "RecordStore/Outbox/Outbox.swift",
            "where delivery.first + UInt64(offset) > watermark",
            "where PLANTED || delivery.first + UInt64(offset) > watermark"),
        // While groups begin anew after a restore, subscriptions and notifications are lost between them.
        Mutant(
            "what a group did not take counts as delivered",
            hiddenBy: "no group sends to one that has not begun anew after a restore yet (SubscriberTests)",
            "Cluster/Outbox/OutboxSender.swift",
            ".isTaken else", ".isTaken || PLANTED else"),
        // What is committed just after a subscription was answered for is not told.
        Mutant(
            "the last effect of a mark is not waited for",
            .init(
                "RecordStore/Outbox/Outbox.swift", "AND sequence <= ?)\"",
                #"AND sequence \(PLANTED ? "<" : "<=") ?)""#)),
        // Until the shard is written to again, nobody is told of what waited when its leader was started.
        Mutant(
            "effects that wait in a file that is opened are not known of", "Cluster/Machines/ShardMachine.swift",
            "hasJobs: hasJobs, waiting: waiting", "hasJobs: hasJobs, waiting: PLANTED(0, waiting)"),
        // After a restore, subscriptions are there and tell of nothing.
        Mutant(
            "copies that are sent again do not say of which generation they are",
            "RecordStore/Subscriptions/SubscriptionHome.swift", "watcher.generation = found.generation",
            "watcher.generation = PLANTED(0, found.generation)"),
    ]

    /// Faults of the logs of notifications.
    private static let plantedInNotificationLogs: [Mutant] = [
        // A device goes on after a restore and misses what got its numbers a second time.
        Mutant(
            "tokens of notifications do not tell incarnations apart",
            "RecordStore/Subscriptions/NotificationLog.swift", "incarnation: incarnation, losses: losses",
            "incarnation: PLANTED(1, incarnation), losses: losses"),
        // A device that knew the deleted container misses the first notifications of the new one.
        Mutant(
            "a token of a container's earlier life is followed in its log",
            hiddenBy: "no container with subscriptions is deleted in a simulation (OutboxTests)",
            "RecordStore/Subscriptions/NotificationLog.swift", "guard life == begin.life || life == 0,",
            "guard PLANTED || life == begin.life || life == 0,"),
        // A device that was away for more than a week misses changes and is not told to fetch all.
        Mutant(
            "notifications that are too old go without raising the floor",
            hiddenBy: "nobody is away for seven days in a simulation (OutboxTests)",
            "RecordStore/Subscriptions/NotificationLog.swift", "WHERE id = ?\", sequence, registry)",
            "WHERE id = ?\", PLANTED(0, sequence), registry)"),
        // The same, where more came than are kept.
        Mutant(
            "the floor of a full log is not stored", "RecordStore/Subscriptions/NotificationLog.swift",
            "WHERE id = ?\", registry.sequence, registry.floor, registry.id)",
            "WHERE id = ?\", registry.sequence, PLANTED(old.floor, registry.floor), registry.id)"),
        // A reader that gives no name of its own misses what named devices changed.
        Mutant(
            "a reader without a name is compared with the devices that have one",
            "RecordStore/Subscriptions/NotificationLog.swift", "client IS NOT ?3",
            #"client \(client == nil && PLANTED ? "<>" : "IS NOT") ?3"#),
    ]

    /// Of matching, of outboxes and of logs.
    static let plantedInSubscriptions = plantedInMatching + plantedInOutboxes + plantedInNotificationLogs

    /// Faults of sessions, rates, shares of quotas and requests that come again.
    static let plantedInShares: [Mutant] = [
        // Of several apps with one session, the one whose token is a moment older is signed out.
        Mutant(
            "tokens that come within the grace time count from the first of them",
            "Admission/Identity/SessionRotation.swift", "time - last.time <= grace / 16",
            "time - last.time <= PLANTED(grace, grace / 16)"),
        // A node that was cut off twice does not learn of the first time, and takes tokens that were replaced.
        Mutant(
            "a second gap replaces the first before it was asked about",
            hiddenBy: "who missed a token twice must be shown it once more (SessionOutboxTests)",
            "Service/Limits/SessionSpread.swift", "missingSince = min(missingSince ?? since, since)",
            "missingSince = PLANTED(since, min(missingSince ?? since, since))"),
        // More requests are taken than the limit says: the share is lent to others, too.
        Mutant(
            "a node goes on using the share that it gave back", "Admission/Rate/RateLimiter.swift", "if isLeaving {",
            "if isLeaving, !PLANTED {"),
        // With each node that is killed, the container gets more than its limit.
        Mutant(
            "what a node let through before it was started again is not charged",
            hiddenBy: "it takes a node that ends just after it spent what the container had saved (RateLedgerTests)",
            "Admission/Rate/RateAccount.swift", "{ charge(lost) }", "{ charge(PLANTED(0, lost)) }"),
        // Room that a node asked for and died with is nobody's for ever: the database is full too early.
        Mutant(
            "what a shard was granted and never told of is not taken back",
            hiddenBy: "it takes a node that ends between a grant and its credit (QuotaEscrowTests)",
            "Service/Limits/QuotaEscrow.swift", "if untold != .zero {", "if untold != .zero, !PLANTED {"),
        // A save is refused as over the quota though there is room.
        Mutant(
            "of several shards that give back only the last to answer counts",
            hiddenBy: "who has nothing to give back answers sooner than who gives (QuotaEscrowTests)",
            "Service/Limits/QuotaEscrow.swift", "one.map { $0 || any }", "one.map { PLANTED($0, $0 || any) }"),
        // A client that repeats a request hears that its records were not saved, and saves them twice.
        Mutant(
            "a repeated request gives its new records other names",
            hiddenBy: "clients of a simulation name their records (Section09ModifyTests)",
            "Service/Operations/RecordModification.swift", "guard let key else {", "guard let key, !PLANTED else {"),
        // Of several zones that are made at once, some are answered for and not there.
        Mutant(
            "operations of one request on zones are remembered under one key", "Service/Operations/Zones.swift",
            "position: number)", "position: PLANTED(0, number))"),
    ]
}
