import Cluster
import Directory
import RaftCore
import RecordModel
import RecordStore

/// The subscriptions by which a webhook is told: they follow from what is configured.
struct WebhookSubscriptions {
    let service: RecordService
    let webhook: Webhook

    /// The one to the private databases.
    private static let privateID = "private"

    private var wanted: [Subscription] {
        var info = JSONWriter()
        info.object { writer in
            writer.member("shouldSendContentAvailable", true)
            guard !webhook.fields.isEmpty else { return }
            writer.key("additionalFields")
            writer.array { writer in for field in webhook.fields { writer.string(field) } }
        }
        var all = webhook.recordTypes.map { type in
            var subscription = Subscription(id: type, scope: .public, kind: .query)
            subscription.recordType = type
            subscription.query = Query(recordType: type)
            subscription.firing = .all
            subscription.info = info.bytes
            return subscription
        }
        if webhook.watchesPrivate {
            all.append(Subscription(id: Self.privateID, scope: .private, kind: .database))
        }
        return all
    }

    private func groups(of scope: Scope) -> [GroupID] {
        var database = webhook.subscriber
        database.scope = scope
        if scope == .public { database.owner = DatabaseKey.publicOwner }
        return service.cluster.groups(of: database).sorted()
    }

    /// Why something is not as it is to be. What is not there to be deleted was deleted meanwhile, by the node that led
    /// the home before.
    static func failure(in failures: [ServiceError?]) -> ServiceError? {
        failures.compactMap(\.self).first { $0.code != .notFound }
    }

    /// Brings them about. What is committed after this returns is told of.
    func save(by deadline: Deadline) async throws(RequestFailure) {
        let home = webhook.subscriber.home(in: service)
        var command = ModifySubscriptions(
            subscriber: webhook.subscriber, home: home.rawValue, time: try service.trustedNow(), changes: [])
        var groups: Set<GroupID> = [home]
        for scope in [Scope.public, .private] {
            let targets = self.groups(of: scope)
            let wanted = wanted.filter { $0.scope == scope }
            let known = try await Subscriptions.list(of: webhook.subscriber, to: scope, in: service, by: deadline)
            for old in known where !wanted.contains(where: { $0.id == old.id }) {
                command.changes.append(.delete(scope, id: old.id))
            }
            for subscription in wanted {
                command.changes.append(.save(subscription, targets: targets.map(\.rawValue)))
                groups.formUnion(targets)
            }
        }
        for group in groups.sorted() { try await service.node.require(.webhooks, for: "webhooks need", in: group) }
        let outcome = try await service.cluster.submit(
            .subscriptions(command), to: home, by: deadline, as: SubscriptionsOutcome.self)
        if let failure = Self.failure(in: outcome.failures) { throw RequestFailure(failure) }
        try await service.awaitCopies(outcome.marks, from: home, by: deadline)
    }
}

extension ClusterNode {
    /// - Parameter what: what needs the level, such as `webhooks need`.
    /// - Throws: `TRY_AGAIN_LATER` while a feature level is not in force in a group, or that cannot be found out.
    func require(_ level: FeatureLevel, for what: String, in group: GroupID) async throws(RequestFailure) {
        guard await !levels.has(level, in: group) else { return }
        throw .nothingDone(
            "\(what) feature level \(level), which comes into force once every node runs this build; see "
                + "`zonekeeper cluster status`")
    }
}
