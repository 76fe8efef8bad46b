import Directory
import RecordModel
import Service

/// `/admin/1/subscriptions`: what the users of a container's environment are told of. The values that a query compares
/// with are the user's, and stay out of the answers.
struct SubscriberRoutes {
    let request: AdminRequest
    private var subscriptions: SubscriptionAdministration { request.administration.subscriptions }

    /// How long a count takes at most.
    private static let countSecondsMax: UInt64 = 60

    /// One user's, or a page of all users'; with `types` how many of each type there are.
    func list() async throws(RequestFailure) -> Reply {
        let (url, key) = (request.url, try request.url.schemaKey())
        if try url.flag("types") { return try await count(in: key) }
        let user = url.text("user")
        let page =
            if let user {
                try await subscriptions.page(of: user, in: key)
            } else {
                try await subscriptions.page(of: key, after: try position(), limit: try url.pageLimit())
            }
        return Reply { writer in
            writer.members(of: key)
            writer.optional("user", user)
            let all = page.subscribers.flatMap { subscriber in subscriber.subscriptions.map { (subscriber, $0) } }
            writer.list("subscriptions", all) { Self.write($0.1, of: $0.0, to: &$1) }
            writer.optional("next", page.next?.text)
        }
    }

    private func count(in key: SchemaKey) async throws(RequestFailure) -> Reply {
        let (url, subscriptions, position) = (request.url, subscriptions, try position())
        let (limit, user) = (try url.pageLimit(), url.text("user"))
        let seconds = min(try url.number("seconds") ?? 1, Self.countSecondsMax)
        let counts = try await request.call.clientDisconnect.whileClientStays { () throws(RequestFailure) in
            guard let user else {
                return try await subscriptions.counts(of: key, after: position, limit: limit, seconds: seconds)
            }
            return try await subscriptions.counts(of: user, in: key)
        }
        return Reply { writer in
            writer.members(of: key)
            writer.optional("user", user)
            writer.list("types", counts.types) { Self.write($0, to: &$1) }
            writer.optional("next", counts.next?.text)
        }
    }

    private func position() throws(RequestFailure) -> SubscriberPosition? {
        guard let text = request.url.text("after") else { return nil }
        if let position = SubscriberPosition(text) { return position }
        throw RequestURL.wrongCursor(text)
    }

    /// Takes one of a user's away, such as one that an app made by mistake.
    func delete() async throws(RequestFailure) -> Reply {
        let (id, scope, user, key) = try one()
        try await subscriptions.delete(id, to: scope, of: user, in: key)
        return .done("deleted", "subscriptionID", id)
    }

    /// Has one of a user's tell of nothing, as a test.
    func test() async throws(RequestFailure) -> Reply {
        let (id, scope, user, key) = try one()
        try await subscriptions.test(id, to: scope, of: user, in: key)
        return .done("tested", "subscriptionID", id)
    }

    private func one() throws(RequestFailure) -> (id: String, Scope, user: String, SchemaKey) {
        let (url, key) = (request.url, try request.url.schemaKey())
        let (id, database) = (try url.need("id"), try url.need("database"))
        guard let scope = Scope(rawValue: database), scope != .shared else {
            throw .badRequest("database: 'private' or 'public' is expected, not '\(database)'")
        }
        return (id, scope, try url.need("user"), key)
    }

    private static func write(_ count: SubscriptionAdministration.Count, to writer: inout JSONWriter) {
        writer.member("subscriptionType", count.key.kind.webName)
        writer.member("database", count.key.scope.rawValue)
        writer.optional("recordType", count.key.recordType)
        writer.member("subscriptions", count: count.subscriptions)
        writer.member("users", count: count.users)
    }

    private static func write(
        _ subscription: Subscription, of subscriber: SubscriptionAdministration.Subscriber, to writer: inout JSONWriter
    ) {
        writer.optional("user", subscriber.name)
        writer.member("userRecordName", subscriber.recordName)
        writer.member("subscriptionID", subscription.id)
        writer.member("subscriptionType", subscription.kind.webName)
        writer.member("database", subscription.scope.rawValue)
        writer.optional("zone", subscription.zone)
        writer.optional("recordType", subscription.query?.recordType ?? subscription.recordType)
        guard subscription.kind == .query else { return }
        writer.list("fields", (subscription.query?.filters ?? []).map { $0.field ?? "*" })
        writer.list("firesOn", subscription.firing.names)
        writer.member("firesOnce", subscription.firesOnce)
    }
}
