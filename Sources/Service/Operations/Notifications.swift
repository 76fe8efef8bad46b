import Admission
import Authorization
package import Cluster
import Directory
package import KeyValueStore
package import RaftCore
import RecordModel
import RecordStore

/// The log of one user's notifications in a container's environment.
package struct Notifications: WatchedFeed {
    /// The node's service.
    package let service: RecordService
    /// Whose they are.
    package let store: StoreKey
    /// Whose they are.
    private let accountID: String
    /// The device that reads: it is not told of its own changes.
    private let client: String?
    /// Whether what has no token begins with what comes next.
    private let beginsAtEnd: Bool

    /// - Parameter beginsAtEnd: a page without a token is empty, with the token of the end; else it begins with the
    ///   first notification that is kept.
    package init(
        _ service: RecordService, _ store: StoreKey, accountID: String, client: String?, beginsAtEnd: Bool = false
    ) {
        self.service = service
        self.store = store
        self.accountID = accountID
        self.client = client
        self.beginsAtEnd = beginsAtEnd
    }

    /// As limits, logs and events name what is watched.
    package var name: String { "notifications" }
    /// The name of a page in a stream of events.
    package var event: String { "notifications" }
    /// As the audit log names the request.
    package var action: String { "push/watch" }
    /// The user's home.
    package var group: GroupID { store.home.home(in: service) }

    /// What of the public database the caller may not read any more.
    private var hidden: NotificationLog.Hidden {
        let key = SchemaKey(of: store.home)
        let database = DatabaseKey(publicDataIn: key)
        let target = Target(container: store.container, environment: store.environment, needsUser: true)
        let caller = Admission.caller(accountID, for: target, in: service.directory)
        var hidden = NotificationLog.Hidden()
        var readable = NotificationLog.Readable(types: [], typesOfOthers: [])
        for type in service.schema(key).schema.types {
            func mayRead(isCreator: Bool) -> Bool {
                Permissions(of: caller, in: type, of: database, isCreator: isCreator).contains(.read)
            }
            if mayRead(isCreator: true) { readable.types.insert(type.name) } else { hidden.types.append(type.name) }
            if mayRead(isCreator: false) {
                readable.typesOfOthers.insert(type.name)
            } else {
                hidden.typesOfOthers.append(type.name)
            }
        }
        hidden.readable = readable
        return hidden
    }

    /// A page of the log.
    /// - Throws: `BAD_REQUEST` for a token that cannot be followed, with why.
    package func changes(
        since token: String?, limit: Int, by deadline: Deadline
    ) async throws(RequestFailure) -> ShardAnswer {
        let position = try await SealedPosition.notifications.open(token, in: service)
        let isEnd = position == nil && beginsAtEnd
        if isEnd { try await service.node.require(.webhooks, for: "fromEnd needs", in: group) }
        let answer = try await page(after: position, limit: isEnd ? 0 : limit, by: deadline)
        guard let expiry = answer.expiry else {
            service.requests.told(answer.changes, container: store.container, store.environment)
            return answer
        }
        throw RequestFailure(
            expiry,
            (expiry == .tooOld
                ? "notifications since it was given are not kept any more"
                : "notifications were lost since it was given, in a restore or because too many waited")
                + ". Fetch all changes, and start again without one")
    }

    /// A page of the log, or why a place cannot be followed.
    /// - Parameters:
    ///   - position: a token, opened; nil begins with the first notification that is kept.
    ///   - limit: 0 asks for the token of the end.
    func page(
        after position: [UInt8]?, limit: Int, by deadline: Deadline
    ) async throws(RequestFailure) -> ShardAnswer {
        guard await service.node.levels.has(.notifications, in: group) else {
            throw .tryAgain("notifications need feature level \(FeatureLevel.notifications)")
        }
        var read = ShardRead.NotificationsRead(subscriber: store.home, token: position, client: client, limit: limit)
        // Roles and schema as they are now: a node that lags behind must not send by what was revoked.
        try await service.cluster.requireDirectory()
        read.hidden = hidden
        return try await service.cluster.answer(to: .notifications(read), from: group, by: deadline)
    }
}
