import RecordModel
import ServiceClient
import Synchronization

/// Hears of changes of the database by the user's notifications, for an engine that syncs by itself.
///
/// It is made after a fetch, because only then the engine's state is the signed-in user's. When it ends, for whatever
/// reason, the engine asks for changes at short intervals, and a listener begins with the next of them.
final class SyncListener: Sendable {
    /// Where in the log it begins.
    let start: String?
    private let reader: NotificationReader
    /// The scope as Apple's payloads have it, which is not its raw value.
    private let scope: Int64
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Why an engine is called.
    enum Event: Sendable {
        /// The place in the log moved to this token.
        case moved(String)
        /// Something changed in the database.
        case changed
        /// Nothing more comes: the token has expired, the user signed out, or may not read notifications any more.
        case ended
    }

    /// Listens from a place in the log on, or from its end where there is none: what was told before is in the fetch
    /// that follows.
    /// - Throws: where nobody is signed in, or the end cannot be found out.
    init(_ database: DatabaseService, since token: String?) async throws {
        let session = try database.account.session().session
        start =
            if let token {
                token
            } else { try await session.notificationPage("changes", since: nil, fromEnd: true).token }
        reader = NotificationReader(session, since: start)
        scope = database.scope == .shared ? 3 : 1
    }

    /// Begins to tell what it hears. Called once.
    func begin(_ tell: @escaping @Sendable (Event) -> Void) {
        let task = Task { [reader, scope] in
            do {
                while let news = try await reader.next() {
                    switch news {
                    case .changedHere: tell(.changed)
                    case .page(let page):
                        if let token = page.token { tell(.moved(token)) }
                        if page.entries.contains(where: { Self.tells($0.payload, of: scope) }) { tell(.changed) }
                    }
                }
            } catch {
                tell(.ended)
            }
        }
        self.task.withLock { $0 = task }
    }

    deinit { end() }

    func end() { task.withLock { $0 }?.cancel() }

    /// Tells the process's other engines of the user that something was changed.
    func tellOthers() { reader.tellOthers() }

    private static func tells(_ payload: JSONValue, of scope: Int64) -> Bool {
        guard let change = payload["ck"]?["met"] ?? payload["ck"]?["fet"] else { return false }
        return change["dbs"] == .integer(scope)
    }
}

extension SubscriptionService {
    /// Makes a subscription to the whole database, unless the user has one.
    /// - Parameter id: the name of one that is made.
    /// - Returns: whether one was made.
    func subscribe(as id: CKSubscription.ID?) async throws(CKError) -> Bool {
        for case (_, .success(let subscription as CKDatabaseSubscription)) in try await all() {
            if subscription.recordType == nil { return false }
        }
        let subscription = CKDatabaseSubscription(subscriptionID: id ?? "zonekeeper-sync-engine")
        subscription.notificationInfo = CKSubscription.NotificationInfo(shouldSendContentAvailable: true)
        for result in try await modify(saving: [subscription], deleting: []) {
            if case .saved(_, .failure(let error)) = result { throw service.mapping.error(error) }
        }
        return true
    }
}

extension CKSyncEngine: CustomStringConvertible {
    /// The text for logs.
    public var description: String {
        let pending = state.pendingDatabaseChanges.count + state.pendingRecordZoneChanges.count
        return "<CKSyncEngine: \(database.databaseScope), \(pending) pending changes>"
    }
}

extension CKSyncEngine.FetchChangesContext: CustomStringConvertible {
    /// The text for logs.
    public var description: String { "<FetchChangesContext: \(reason), \(options.scope)>" }
}

extension CKSyncEngine.SendChangesContext: CustomStringConvertible {
    /// The text for logs.
    public var description: String { "<SendChangesContext: \(reason), \(options.scope)>" }
}

extension CKSyncEngine.Event.AccountChange: CustomStringConvertible {
    /// The text for logs.
    public var description: String { "<AccountChange: \(changeType)>" }
}
