import Cluster
package import Directory
import RaftCore
package import RecordModel
import RecordStore

/// What the users of a container's environment are told of.
package struct SubscriptionAdministration: Sendable {
    /// A user, and what they are told of.
    package struct Subscriber: Sendable {
        /// Their record's name in the container.
        package var recordName: String
        /// Nil where the account was deleted a short time ago.
        package var name: String?
        /// By private and then by public data, each by name.
        package var subscriptions: [Subscription]
    }

    /// Some of the subscribers, in an order of the server's own.
    package struct Page: Sendable {
        /// Who has no subscription now was told of something in the last days.
        package var subscribers: [Subscriber] = []
        /// Where the list goes on.
        package var next: SubscriberPosition?
    }

    /// How many subscriptions of each type there are.
    package struct Counts: Sendable {
        private var counts: [Count.Key: Count] = [:]
        /// The users after this one are not among them; nil: all are.
        package fileprivate(set) var next: SubscriberPosition?

        fileprivate mutating func add(_ page: Page) {
            for subscriber in page.subscribers {
                for (key, same) in Dictionary(grouping: subscriber.subscriptions, by: { Count.Key(of: $0) }) {
                    counts[key, default: Count(key: key)].users += 1
                    counts[key]?.subscriptions += same.count
                }
            }
            next = page.next
        }

        /// The most frequent first.
        package var types: [Count] {
            counts.values.sorted { ($1.subscriptions, $0.key) < ($0.subscriptions, $1.key) }
        }
    }

    /// How many subscriptions of a type there are.
    package struct Count: Sendable {
        /// What they have in common.
        package struct Key: Hashable, Comparable, Sendable {
            /// The database.
            package var scope: Scope
            /// To a query, a zone or a database.
            package var kind: Subscription.Kind
            /// Nil: of every type.
            package var recordType: String?

            fileprivate init(of subscription: Subscription) {
                (scope, kind) = (subscription.scope, subscription.kind)
                recordType = subscription.query?.recordType ?? subscription.recordType
            }

            /// By database, kind and type.
            package static func < (left: Self, right: Self) -> Bool { left.order < right.order }

            private var order: (String, String, String) { (scope.rawValue, kind.webName, recordType ?? "") }
        }

        /// Of which type.
        package var key: Key
        /// All of them.
        package var subscriptions = 0
        /// Who has one at least.
        package var users = 0
    }

    let administration: Administration
    private var service: RecordService { administration.service }

    /// Users that one page looks at; each takes two reads of their shard. After this time it ends with the last one.
    private static let subscribersMax = 100
    private static let pageNanoseconds: UInt64 = 1_000_000_000

    /// What one user is told of.
    package func page(of user: String, in key: SchemaKey) async throws(RequestFailure) -> Page {
        _ = try await administration.directory(with: key.container)
        let account = try await administration.owner(named: user)
        let database = DatabaseKey(privateDataOf: account, in: key)
        let found = try await subscriptions(of: database, by: service.deadline())
        // A record's name would tell that there is the user.
        if found.isEmpty, try administration.access.containers != nil { return Page() }
        return Page(subscribers: [Subscriber(recordName: database.owner, name: account.name, subscriptions: found)])
    }

    /// What all users are told of, shard by shard.
    /// - Parameter limit: the page ends with the user with whom it has so many subscriptions.
    /// - Throws: `TRY_AGAIN_LATER` while a shard does not know webhooks, whose subscribers the list leaves out.
    package func page(
        of key: SchemaKey, after: SubscriberPosition?, limit: Int
    ) async throws(RequestFailure) -> Page {
        _ = try await administration.directory(with: key.container)
        return try await named(try await unnamedPage(of: key, after: after, limit: limit), in: key)
    }

    /// How many of each type one user has.
    package func counts(of user: String, in key: SchemaKey) async throws(RequestFailure) -> Counts {
        var counts = Counts()
        counts.add(try await page(of: user, in: key))
        return counts
    }

    /// How many of each type all users have, page by page until the time is over.
    /// - Throws: as `page`.
    package func counts(
        of key: SchemaKey, after: SubscriberPosition?, limit: Int, seconds: UInt64
    ) async throws(RequestFailure) -> Counts {
        _ = try await administration.directory(with: key.container)
        let end = service.uptime + seconds * 1_000_000_000
        var counts = Counts()
        counts.next = after
        repeat {
            counts.add(try await unnamedPage(of: key, after: counts.next, limit: limit))
        } while counts.next != nil && service.uptime < end && !Task.isCancelled
        return counts
    }

    private func unnamedPage(
        of key: SchemaKey, after: SubscriberPosition?, limit: Int
    ) async throws(RequestFailure) -> Page {
        let (deadline, end) = (service.deadline(), service.uptime + Self.pageNanoseconds)
        var (page, examined, count) = (Page(), 0, 0)
        for group in service.node.map.groups.dropFirst() where group.rawValue >= after?.group ?? 0 {
            let last = group.rawValue == after?.group ? after?.user ?? "" : ""
            let users = try await users(
                of: key, on: group, after: last, limit: Self.subscribersMax - examined, by: deadline)
            for user in users {
                let database = DatabaseKey(privateDataOf: user, in: key)
                if !database.isOfWebhook {
                    let found = try await subscriptions(of: database, by: deadline)
                    page.subscribers.append(Subscriber(recordName: user, subscriptions: found))
                    count += found.count
                }
                examined += 1
                guard count < limit, examined < Self.subscribersMax, service.uptime < end else {
                    page.next = SubscriberPosition(group: group.rawValue, user: user)
                    return page
                }
            }
        }
        return page
    }

    /// The users with subscriptions or notifications on a shard, webhooks among them.
    private func users(
        of key: SchemaKey, on group: GroupID, after user: String, limit: Int, by deadline: Deadline
    ) async throws(RequestFailure) -> [String] {
        try await service.node.require(.webhooks, for: "a list of all users' subscriptions needs", in: group)
        let answer = try await service.cluster.answer(
            to: .subscribers(.init(in: key, after: user, limit: limit)), from: group, by: deadline)
        return try unpacked(answer.bytes, as: SubscriberPage.self).users
    }

    private func named(_ page: Page, in key: SchemaKey) async throws(RequestFailure) -> Page {
        try await service.cluster.refreshDirectory()
        let names = try await service.accounts.names(
            ofOwners: page.subscribers.map { DatabaseKey(privateDataOf: $0.recordName, in: key) })
        var page = page
        for place in page.subscribers.indices {
            page.subscribers[place].name = names[page.subscribers[place].recordName]
        }
        return page
    }

    private func subscriptions(
        of subscriber: DatabaseKey, by deadline: Deadline
    ) async throws(RequestFailure) -> [Subscription] {
        var found: [Subscription] = []
        for scope in [Scope.private, .public] {
            found += try await Subscriptions.list(of: subscriber, to: scope, in: service, by: deadline)
        }
        return found
    }

    /// Deletes one of a user's subscriptions to databases of a scope. The audit log names it before.
    /// - Throws: `NOT_FOUND` where the user has no subscription of that name.
    package func delete(
        _ id: String, to scope: Scope, of user: String, in key: SchemaKey
    ) async throws(RequestFailure) {
        let subscriber = try await subscriber(of: id, to: scope, user, in: key, auditing: "subscription.delete")
        try await Subscriptions.delete(id, of: subscriber, to: scope, in: service, by: service.deadline())
    }

    /// Has a user told by one of their subscriptions as if something had happened, with a note that it is a test. The
    /// audit log names it before.
    /// - Throws: `NOT_FOUND` where the user has no subscription of that name.
    package func test(
        _ id: String, to scope: Scope, of user: String, in key: SchemaKey
    ) async throws(RequestFailure) {
        let subscriber = try await subscriber(of: id, to: scope, user, in: key, auditing: "subscription.test")
        try await Subscriptions.test(id, of: subscriber, to: scope, in: service, by: service.deadline())
    }

    /// The private database of a user who has a subscription, once the audit log names what is done with it.
    private func subscriber(
        of id: String, to scope: Scope, _ user: String, in key: SchemaKey, auditing action: String
    ) async throws(RequestFailure) -> DatabaseKey {
        _ = try await administration.directory(with: key.container)
        let account = try await administration.owner(named: user)
        let subscriber = DatabaseKey(privateDataOf: account, in: key)
        let found = try await Subscriptions.list(
            of: subscriber, to: scope, ids: [id], in: service, by: service.deadline())
        if found.isEmpty { throw .notFound("'\(user)' has no subscription '\(id)' to the \(scope.rawValue) database") }
        let subject =
            "\(AuditText.id(id)) of user \(AuditText.id(user)) in \(key.container) \(key.environment.rawValue)"
        try await administration.tell(action, subject)
        return subscriber
    }
}

/// Where a list of subscribers goes on.
package struct SubscriberPosition: Hashable, Sendable {
    fileprivate var group: UInt64
    fileprivate var user: String

    fileprivate init(group: UInt64, user: String) { (self.group, self.user) = (group, user) }

    /// As `text` has it; nil for any other text.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let group = UInt64(parts[0]), !parts[1].isEmpty else { return nil }
        self.init(group: group, user: String(parts[1]))
    }

    /// For a client, which gives it back.
    package var text: String { "\(group)/\(user)" }
}
