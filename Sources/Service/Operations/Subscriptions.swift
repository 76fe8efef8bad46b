import Authorization
import Cluster
import Directory
import RaftCore
package import RecordModel
import RecordStore

/// The subscriptions of one user to databases of one scope, in a container's environment.
package struct Subscriptions: Sendable {
    private let request: DatabaseRequest
    private var service: RecordService { request.service }

    package init(_ request: DatabaseRequest) { self.request = request }

    /// The user, as a private database.
    /// - Throws: `AUTHENTICATION_REQUIRED` where nobody is signed in.
    private func subscriber() throws(RequestFailure) -> DatabaseKey {
        guard let user = request.caller.user, !request.caller.isAdministrator else {
            throw RequestFailure(
                .authenticationRequired, "request needs authorization: subscriptions belong to a signed-in user")
        }
        return DatabaseKey(privateDataOf: user, in: request.schemaKey)
    }

    /// All of them, by name.
    package func list() async throws(RequestFailure) -> [Subscription] { try await read(ids: nil) }

    /// Those that there are of some.
    package func lookUp(_ ids: [String]) async throws(RequestFailure) -> [Subscription] { try await read(ids: ids) }

    private func read(ids: [String]?) async throws(RequestFailure) -> [Subscription] {
        try await Self.list(
            of: try subscriber(), to: request.key.scope, ids: ids, in: service, by: request.deadline)
    }

    /// A user's subscriptions to databases of a scope, by name.
    /// - Parameter ids: those that are asked for; nil: all.
    package static func list(
        of subscriber: DatabaseKey, to scope: Scope, ids: [String]? = nil, in service: RecordService,
        by deadline: Deadline
    ) async throws(RequestFailure) -> [Subscription] {
        let found = try await service.cluster.answer(
            to: .subscriptions(.init(of: subscriber, scope, ids: ids)), from: subscriber.home(in: service), by: deadline
        )
        return try unpacked(found.bytes, as: ShardList<Subscription>.self).elements
    }

    /// What became of an operation.
    package enum Outcome: Sendable {
        case saved(Subscription)
        case deleted
        case failed(ServiceError)
    }

    /// Saves and deletes, each on its own. What is committed after this returns is matched.
    package func modify(
        _ operations: [SubscriptionsModifyRequest.Operation]
    ) async throws(RequestFailure) -> [Outcome] {
        let subscriber = try subscriber()
        let home = subscriber.home(in: service)
        try await requireLevel(in: home)
        var outcomes: [Outcome] = []
        var command = ModifySubscriptions(
            subscriber: subscriber, home: home.rawValue, time: try service.trustedNow(), changes: [])
        var places: [Int] = []
        for operation in operations {
            do throws(RequestFailure) {
                let change = try await change(operation)
                command.changes.append(change)
                places.append(outcomes.count)
                if case .save(let subscription, _) = change {
                    outcomes.append(.saved(subscription))
                } else {
                    outcomes.append(.deleted)
                }
            } catch {
                if error.error.code == .tryAgainLater { throw error }
                outcomes.append(.failed(error.error))
            }
        }
        if command.changes.isEmpty { return outcomes }
        service.peerExchange.rates.charge(Self.tokens(for: command.changes), to: request)
        let failures = try await Self.submit(command, to: home, in: service, by: request.deadline)
        for (place, failure) in zip(places, failures) {
            if let failure { outcomes[place] = .failed(failure) }
        }
        return outcomes
    }

    /// What a request costs beyond one token: that of its changes, each of which is compared with all that the user
    /// has, and a token for each MB of copies that go to shards.
    static func tokens(for changes: [ModifySubscriptions.Change]) -> Int {
        let copies = changes.reduce(0) { bytes, change in
            guard case .save(let subscription, let targets) = change else { return bytes }
            return bytes + subscription.content.count * targets.count
        }
        return RateExchange.tokens(forOperations: changes.count) + copies / 1_000_000
    }

    /// Deletes one of a user's subscriptions; what is committed after this returns is not matched with it.
    static func delete(
        _ id: String, of subscriber: DatabaseKey, to scope: Scope, in service: RecordService, by deadline: Deadline
    ) async throws(RequestFailure) {
        try await change(
            .delete(scope, id: id), of: subscriber, subscriber.home(in: service), at: try service.trustedNow(),
            in: service, by: deadline)
    }

    /// Enters a notification that says it is a test into the log of a user, as one of their subscriptions would tell of
    /// something.
    static func test(
        _ id: String, of subscriber: DatabaseKey, to scope: Scope, in service: RecordService, by deadline: Deadline
    ) async throws(RequestFailure) {
        let home = subscriber.home(in: service)
        try await service.node.require(.testNotifications, for: "a test notification needs", in: home)
        let time = try service.trustedNow()
        try await change(
            .test(scope, id: id, change: service.node.platform.newID(at: time).bytes), of: subscriber, home, at: time,
            in: service, by: deadline)
    }

    /// Makes one change of an administrator's.
    private static func change(
        _ change: ModifySubscriptions.Change, of subscriber: DatabaseKey, _ home: GroupID, at time: Int64,
        in service: RecordService, by deadline: Deadline
    ) async throws(RequestFailure) {
        let command = ModifySubscriptions(subscriber: subscriber, home: home.rawValue, time: time, changes: [change])
        let failures = try await submit(command, to: home, in: service, by: deadline)
        if case let failure?? = failures.first { throw RequestFailure(failure) }
    }

    /// - Returns: why a change was not made; nil for one that was.
    private static func submit(
        _ command: ModifySubscriptions, to home: GroupID, in service: RecordService, by deadline: Deadline
    ) async throws(RequestFailure) -> [ServiceError?] {
        let outcome = try await service.cluster.submit(
            .subscriptions(command), to: home, by: deadline, as: SubscriptionsOutcome.self)
        try await service.awaitCopies(outcome.marks, from: home, by: deadline)
        return outcome.failures
    }

    private func requireLevel(in group: GroupID) async throws(RequestFailure) {
        try await service.node.require(.notifications, for: "subscriptions need", in: group)
    }

    // MARK: One operation

    private func change(
        _ operation: SubscriptionsModifyRequest.Operation
    ) async throws(RequestFailure) -> ModifySubscriptions.Change {
        switch operation {
        case .invalid(_, let error): throw RequestFailure(error)
        case .delete(let id): return .delete(request.key.scope, id: id)
        case .save(let input):
            var subscription = try await subscription(input)
            subscription.zoneLife = try await zoneLife(of: subscription)
            let groups = targets(of: subscription)
            for group in groups { try await requireLevel(in: group) }
            return .save(subscription, targets: groups.map(\.rawValue))
        }
    }

    private func subscription(_ input: SubscriptionInput) async throws(RequestFailure) -> Subscription {
        var subscription = Subscription(
            id: input.id.isEmpty ? service.newID().text : input.id, scope: request.key.scope, kind: input.kind)
        subscription.recordType = input.recordType
        subscription.info = input.info
        if let zoneID = input.zoneID { subscription.zone = try request.zone(zoneID).name }
        switch input.kind {
        case .query:
            subscription.query = try await query(input, subscription)
            subscription.queryJSON = input.queryJSON
            subscription.firing = input.firing
            subscription.firesOnce = input.firesOnce
        case .zone, .database:
            guard request.key.scope == .private else {
                throw .badRequest("subscriptionType: the public database has subscriptions to queries only")
            }
            if subscription.zone == ZoneKey.defaultZoneName {
                throw .badRequest("zoneID.zoneName: the default zone has no change feed; subscribe to a query")
            }
        }
        return subscription
    }

    /// The query, held against the schema and the caller's rights.
    private func query(
        _ input: SubscriptionInput, _ subscription: Subscription
    ) async throws(RequestFailure) -> Query? {
        guard let query = input.query else { return nil }
        return try await request.judge { attempt throws(ServiceError) in
            guard let type = attempt.schema.schema.type(named: query.recordType) else {
                throw ServiceError(
                    .badRequest, "query.recordType: the schema has no record type '\(query.recordType)'")
            }
            let isCreator = request.caller.user != nil
            guard Permissions(of: request.caller, in: type, of: request.key, isCreator: isCreator).contains(.read)
            else { throw ServiceError(.accessDenied, "the caller may not read records of type '\(type.name)'") }
            return try query.resolve(
                schema: type, zone: subscription.zone.map { request.zoneID(named: $0) },
                container: request.key.container)
        }
    }

    /// The zone that a subscription is bound to; nil where it looks at every zone.
    private func zone(of subscription: Subscription) -> ZoneKey? {
        subscription.zone.map { ZoneKey(database: request.key, name: $0) }
    }

    /// The life that the custom zone of a subscription has now; nil where its home does not know of that yet.
    private func zoneLife(of subscription: Subscription) async throws(RequestFailure) -> UInt64? {
        guard let zone = zone(of: subscription), !zone.isDefault else { return nil }
        guard let state = try await service.attempts.zoneState(zone, by: request.deadline) else {
            throw RequestFailure(.zoneNotFound, "no zone '\(zone.name)' in this database")
        }
        let (home, levels) = (try subscriber().home(in: service), service.node.levels)
        let isKnown = try await ask(await levels.isInForce(.boundSubscriptions, in: home, by: request.deadline))
        return isKnown ? state.incarnation : nil
    }

    /// The groups whose changes a subscription may match, ascending.
    private func targets(of subscription: Subscription) -> [GroupID] {
        guard let zone = zone(of: subscription) else { return service.cluster.groups(of: request.key).sorted() }
        return [service.node.map.group(of: zone)]
    }
}

extension DatabaseKey {
    /// The group that has the preferences, subscriptions and notifications of the user whose private database it is.
    func home(in service: RecordService) -> GroupID {
        service.node.map.group(of: ZoneKey(database: self, name: "_keyValueStore"))
    }
}

extension DatabaseRequest {
    /// What a command says of the device that asks; nil where the group cannot know of such things yet. Where that
    /// cannot be found out the request waits: a device would be told of its own changes.
    func client(in group: GroupID) async throws(RequestFailure) -> String? {
        guard let clientID else { return nil }
        let isKnown = try await ask(await service.node.levels.isInForce(.notifications, in: group, by: deadline))
        return isKnown ? clientID : nil
    }
}
