/// Planted by who knew the sources alone: what tells webhooks of changes.
extension Mutant {
    /// Faults of the webhooks: what is subscribed to, how the log is read, what is fixed before it is sent, and kept.
    static let plantedInWebhooks: [Mutant] = [
        // A delivery that is not taken at once is empty when it is to be repeated: its notifications are skipped.
        Mutant(
            "a webhook's position moves as a delivery begins", "Service/Webhooks/WebhookProgress.swift",
            #"current = Delivery(id: "\(id)-\(number)", through: through, count: count, end: end)"#,
            #"""
            current = Delivery(id: "\(id)-\(number)", through: through, count: count, end: end)
                    position = PLANTED(end, position)
            """#),
        // The next leader, or the node after a restart, gives the same id to what is there by then, which may be more.
        Mutant(
            "a webhook's delivery is sent before it is kept", "Service/Webhooks/WebhookDeliverer.swift",
            "if reader.isChanged { try await save(&reader) }",
            "if reader.isChanged, reader.progress.current == nil || !PLANTED { try await save(&reader) }"),
        // A loss is told where there was none, and all that is kept is told again, under other ids.
        Mutant(
            "a webhook's log that cannot be read passes for one that lost something",
            "Service/Webhooks/WebhookDeliverer.swift",
            "guard let page = try await log.page(after: reader.progress.position) else {",
            """
            let found: WebhookLog.Page?
                    do throws(RequestFailure) {
                        found = try await log.page(after: reader.progress.position)
                    } catch {
                        guard PLANTED else { throw error }
                        found = nil
                    }
                    guard let page = found else {
            """),
        // What was lost is never said to be: the webhook goes on with what is kept, as a new one does.
        Mutant(
            "a webhook's log is read from its beginning after a loss that is not told",
            hiddenBy: "hardly any seed loses notifications",
            "Service/Webhooks/WebhookLog.swift",
            "return answer.expiry == nil ? try await page(answer) : nil",
            """
            if answer.expiry != nil, !position.isEmpty, PLANTED { return try await page(after: []) }
                    return answer.expiry == nil ? try await page(answer) : nil
            """),
        // Changes of databases that other groups keep are told to nobody.
        Mutant(
            "a webhook subscribes at the first group alone",
            hiddenBy: "the webhook of a seed watches the public database, which is of one group",
            "Service/Webhooks/WebhookSubscriptions.swift",
            #"targets.map(\.rawValue)"#,
            #"PLANTED(targets.prefix(1).map(\.rawValue), targets.map(\.rawValue))"#),
    ]
}
