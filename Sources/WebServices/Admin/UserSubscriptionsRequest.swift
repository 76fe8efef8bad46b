import Directory
import RecordModel
import Service

/// `GET subscriptions`: what a user is told of in a container's environment.
///
/// The values that a query compares with are the user's, and stay out of the answer.
struct UserSubscriptionsRequest {
    let request: AdminRequest

    func respond() async throws(RequestFailure) -> Reply {
        let key = try request.schemaKey()
        try AdminRequest.requireContainer(key.container, in: try await request.directory())
        let account = try await request.account(named: try request.parameter("user"))
        let subscriber = DatabaseKey(
            container: key.container, environment: key.environment, scope: .private,
            owner: Account.userRecordName(accountID: account.id, container: key.container))
        var found: [Subscription] = []
        for scope in [Scope.private, .public] {
            found += try await Subscriptions.list(
                of: subscriber, to: scope, in: request.context.service, by: request.deadline)
        }
        return Reply { writer in
            writer.member("container", key.container)
            writer.member("environment", key.environment.rawValue)
            writer.member("user", account.name)
            writer.key("subscriptions")
            writer.array { writer in for each in found { writer.object { Self.write(each, to: &$0) } } }
        }
    }

    private static func write(_ subscription: Subscription, to writer: inout JSONWriter) {
        writer.member("subscriptionID", subscription.id)
        writer.member("subscriptionType", subscription.kind.webName)
        writer.member("database", subscription.scope.rawValue)
        if let zone = subscription.zone { writer.member("zone", zone) }
        if let type = subscription.query?.recordType ?? subscription.recordType { writer.member("recordType", type) }
        guard subscription.kind == .query else { return }
        writer.key("fields")
        writer.array { writer in
            for filter in subscription.query?.filters ?? [] { writer.string(filter.field ?? "*") }
        }
        writer.key("firesOn")
        writer.array { writer in for name in subscription.firing.names { writer.string(name) } }
        writer.member("firesOnce", subscription.firesOnce)
    }
}
