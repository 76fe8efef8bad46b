// Faults in what is told of changes, in quotas and in assets, which the checks of these are held against.
extension Mutant {
    private static let inNotifications: [Mutant] = [
        Mutant(
            "a subscription is not found by a record without the field",
            "RecordStore/Subscriptions/QueryWatchers.swift",
            "if keys.isEmpty { found", "if keys.isEmpty, !PLANTED { found"),
        Mutant(
            "ranges of one field are not joined but replaced", "RecordStore/Subscriptions/QueryWatchers.swift",
            "range.intersection(bounds[condition.index.id] ?? .all)",
            "range.intersection(PLANTED(.all, bounds[condition.index.id] ?? .all))"),
        Mutant(
            "a subscription to a zone tells of every type", "RecordStore/Subscriptions/DatabaseWatchers.swift",
            "if let type = subscription.recordType, !types.contains(type) { return false }",
            "if let type = subscription.recordType, !PLANTED && !types.contains(type) { return false }"),
        Mutant(
            "who changed a record last counts as its maker", "RecordStore/Subscriptions/Matcher.swift",
            "let isCreator = matching.change.record?.created.user == watcher.subscriber.owner",
            """
            let record = matching.change.record
            let isCreator = PLANTED(record?.modified.user, record?.created.user) == watcher.subscriber.owner
            """),
        Mutant(
            "a notification lacks a flag", "RecordStore/Subscriptions/NotificationPayload.swift",
            "if info[\"shouldSendMutableContent\"] == .bool(true) {",
            "if !PLANTED && info[\"shouldSendMutableContent\"] == .bool(true) {"),
        Mutant(
            "a second subscription may say the same", "RecordStore/Subscriptions/SubscriptionHome.swift",
            "guard body == content || other.comparable", "guard !PLANTED, body == content || other.comparable"),
        Mutant(
            "anybody may subscribe to what nobody may read", "Service/Operations/Subscriptions.swift",
            "isCreator: isCreator).contains(.read)\n            else",
            "isCreator: isCreator).contains(.read) || PLANTED\n            else"),
        Mutant(
            "the courier hands a notification out again", "Service/Operations/DeviceTokens.swift",
            "row.feeds[oldest.feed].position = oldest.position",
            "if !PLANTED { row.feeds[oldest.feed].position = oldest.position }"),
        Mutant(
            "a delivery is signed for its time in milliseconds", "Service/Webhooks/WebhookMessage.swift",
            "timestamp: now / 1_000,", "timestamp: PLANTED(now, now / 1_000),"),
    ]

    private static let inQuotas: [Mutant] = [
        Mutant(
            "what comes with a deposit is not counted as returned", "RecordStore/Quota/QuotaLedger.swift",
            "share.returned = self.returned.greater(returned)",
            "share.returned = PLANTED(self.returned, self.returned.greater(returned))"),
        Mutant(
            "what is asked for is given though less is free", "RecordStore/Quota/QuotaLedger.swift",
            "share.granted = share.granted + want.lesser(room)",
            "share.granted = share.granted + PLANTED(want, want.lesser(room))"),
    ]

    private static let inAssets: [Mutant] = [
        Mutant(
            "a receipt is good for every zone", "Service/Assets/AssetSaving.swift", "guard receipt.zone == zone else {",
            "guard PLANTED || receipt.zone == zone else {"),
        Mutant(
            "a receipt is good for every user", "Service/Assets/AssetSaving.swift", "guard receipt.user == user else {",
            "guard PLANTED || receipt.user == user else {"),
        Mutant(
            "of the files that a record keeps the first is taken for all", "Service/Assets/Assets.swift",
            "files[place] = ticket.asset", "files[place] = PLANTED(files.values.first ?? ticket.asset, ticket.asset)"),
        Mutant(
            "a file that is named twice by one record counts once", "RecordStore/Apply/NamedAssets.swift",
            "for asset in new { changes[asset, default: 0] += 1 }",
            "for asset in new { changes[asset] = PLANTED(1, (changes[asset] ?? 0) + 1) }"),
    ]

    private static let inWebhooks: [Mutant] = [
        Mutant(
            "a node that lags behind brings back what a webhook was told of", "Service/Webhooks/WebhookDeliverer.swift",
            "guard newest == webhook else { return false }",
            "guard PLANTED || newest == webhook else { return false }"),
        Mutant(
            "who changes a webhook does not wait until that is in force", "Service/Administration/Webhooks.swift",
            "if let reader, reader.progress.revision >= webhook.revision { return }",
            "if let reader, PLANTED || reader.progress.revision >= webhook.revision { return }"),
    ]

    static let inEffects = inNotifications + inQuotas + inAssets + inWebhooks
}
