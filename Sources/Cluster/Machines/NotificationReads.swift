import Directory
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

extension ShardRead.NotificationsRead: WireCodable {
    /// Writes the binary form.
    package func encode(to writer: inout WireWriter) {
        writer.field(1) { subscriber.encode(to: &$0) }
        if let token { writer.field(2, token) }
        if let client { writer.field(3, client) }
        writer.field(4, UInt64(limit))
        for type in hidden.types { writer.field(5, type) }
        for type in hidden.typesOfOthers { writer.field(6, type) }
    }

    /// Reads the binary form; fields that are not known are skipped, or refused where nothing may be.
    package init(from reader: inout WireReader) throws(WireError) {
        var subscriber: DatabaseKey?
        var rest = ShardRead.NotificationsRead(
            subscriber: DatabaseKey(container: "", environment: .development, scope: .private, owner: ""), token: nil,
            client: nil, limit: 0)
        while let field = try reader.nextField() {
            switch field {
            case 1: subscriber = try reader.message()
            case 2: rest.token = try reader.array()
            case 3: rest.client = try reader.string()
            case 4: rest.limit = Int(clamping: try reader.unsigned())
            case 5: rest.hidden.types.append(try reader.string())
            case 6: rest.hidden.typesOfOthers.append(try reader.string())
            default: try reader.skip()
            }
        }
        guard let subscriber else { throw .missingField(1) }
        rest.subscriber = subscriber
        self = rest
    }
}

extension ShardRead {
    /// 1 subscriber, 2 scope, 3 whether ids (4) are all that is asked for.
    static func encodeSubscriptions(
        of subscriber: DatabaseKey, _ scope: Scope, _ ids: [String]?, to writer: inout WireWriter
    ) {
        writer.field(1) { subscriber.encode(to: &$0) }
        writer.field(2, scope.rawValue)
        guard let ids else { return }
        writer.field(3, true)
        for id in ids { writer.field(4, id) }
    }

    static func subscriptions(_ nested: WireReader) throws(WireError) -> ShardRead {
        var reader = nested
        var (subscriber, scope, ids): (DatabaseKey?, Scope?, [String]?) = (nil, nil, nil)
        while let field = try reader.nextField() {
            switch field {
            case 1: subscriber = try reader.message()
            case 2: scope = try reader.choice()
            case 3: ids = try reader.bool() ? [] : nil
            case 4: ids?.append(try reader.string())
            default: try reader.skip()
            }
        }
        guard let subscriber, let scope else { throw .missingField(1) }
        return .subscriptions(of: subscriber, scope, ids: ids)
    }
}

/// Reads of a user's notifications, as the JSON that the edge passes on.
enum NotificationReader {
    /// What tokens are sealed for; the edge opens them.
    private static let tokenPurpose = "notifications token"

    /// - Parameter secret: seals tokens; nil while the cluster has none.
    static func answer(
        _ read: ShardRead.NotificationsRead, _ secret: ClusterSecret?, in db: Database
    ) throws -> ReadAnswer {
        var token: NotificationToken?
        if let bytes = read.token {
            guard let known = try? NotificationToken(decoding: bytes) else {
                return .refused(ServiceError(.badRequest, "Unknown sync continuation type"))
            }
            token = known
        }
        let page = try RecordTables.notifications(
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
        }
    }
}
