package import Directory
import GRDB
package import KeyValueStore
package import RecordModel
import RecordStore
package import Wire

extension StoreKey {
    /// What stands for a user in a container's environment, where watchers wait for preferences and notifications.
    /// - Parameter home: the user's private database.
    package init(home: DatabaseKey) {
        self.init(container: home.container, environment: home.environment, user: home.owner)
    }

    /// The user's private database.
    package var home: DatabaseKey {
        DatabaseKey(container: container, environment: environment, scope: .private, owner: user)
    }
}

extension ShardRead.NotificationsRead: WireMessage {
    package static var blank: Self {
        ShardRead.NotificationsRead(subscriber: .blank, token: nil, client: nil, limit: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &subscriber)
        try wire.field(2, &token)
        try wire.field(3, &client)
        try wire.field(4, &limit)
        try wire.field(5, &hidden.types)
        try wire.field(6, &hidden.typesOfOthers)
        try wire.field(7, &hidden.readable)
    }
}

extension ShardRead.SubscriptionsRead: WireMessage {
    package static var blank: Self { ShardRead.SubscriptionsRead(of: .blank, .private, ids: nil) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &subscriber)
        try wire.required(2, &scope)
        try wire.field(3, &ids, members: 4)
    }
}

extension ShardRead {
    /// A read of the users with subscriptions or notifications on a shard.
    package struct SubscribersRead: Hashable, Sendable, WireMessage {
        /// In which container's environment.
        package var key: SchemaKey
        /// The list begins after this one.
        package var user: String
        /// How many are asked for.
        package var limit: Int

        package init(in key: SchemaKey, after user: String, limit: Int) {
            self.key = key
            self.user = user
            self.limit = limit
        }

        package static var blank: Self {
            SubscribersRead(in: SchemaKey(container: "", environment: .development), after: "", limit: 0)
        }

        package mutating func fields(_ wire: inout WireFields) throws(WireError) {
            try wire.required(1, &key.container)
            try wire.required(2, &key.environment)
            try wire.field(3, &user)
            try wire.field(4, &limit)
        }
    }
}

/// Users with subscriptions or notifications on a shard, by the owners of their private databases.
package struct SubscriberPage: Hashable, Sendable, WireMessage {
    /// Ascending; as many as were asked for where there may be more.
    package var users: [String]

    init(_ read: ShardRead.SubscribersRead, in db: Database) throws {
        users = try Subscribers.page(
            container: read.key.container, read.key.environment, after: read.user, limit: read.limit, in: db)
    }

    private init() { users = [] }

    package static var blank: Self { SubscriberPage() }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) { try wire.field(1, &users) }
}

/// Reads of a user's notifications, as the JSON that the edge passes on.
enum NotificationReader {
    /// What tokens are sealed for; the edge opens them.
    private static let tokenPurpose = "notifications token"

    /// - Parameter secret: seals tokens; nil before the cluster has one.
    static func answer(
        _ read: ShardRead.NotificationsRead, _ secret: ClusterSecret?, in db: Database
    ) throws -> ReadAnswer {
        var token: NotificationToken?
        if let bytes = read.token {
            guard let known = try? NotificationToken(decoding: bytes) else {
                return .refused(ServiceError(.badRequest, "Unknown sync continuation type", detail: .expiredSyncToken))
            }
            token = known
        }
        let page = try NotificationLog.page(
            of: read.subscriber, since: token, client: read.client, hidden: read.hidden, limit: read.limit, in: db)
        switch page {
        case .expired(let reason):
            var answer = ShardAnswer([])
            answer.expiry = reason == .lost ? .restored : .tooOld
            return .found(answer)
        case .entries(let entries, let token, let hasMore):
            let bytes = token.encoded()
            let text = Base64.encode(secret?.seal(bytes, purpose: tokenPurpose) ?? bytes)
            var writer = JSONWriter()
            writer.object { writer in
                writer.key("notifications")
                writer.array { writer in for entry in entries { write(entry, to: &writer) } }
                writer.member("syncToken", text)
                writer.member("moreComing", hasMore)
            }
            var answer = ShardAnswer(writer.bytes, cursor: Array(text.utf8), hasMore: hasMore)
            answer.changes = entries.count
            return .found(answer)
        }
    }

    private static func write(_ entry: NotificationLog.Entry, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("seq", integer: entry.sequence)
            writer.member("time", integer: entry.time)
            writer.key("payload")
            writer.raw(entry.payload)
            if let id = entry.collapseID { writer.member("collapseID", id) }
        }
    }
}
