public import Foundation
import RecordModel
import ServiceClient

// An addition of ours: on Linux no system service hands notifications to apps.
extension CKContainer {
    /// A notification from the user's log.
    public struct DeliveredNotification: Sendable {
        /// What it says.
        public let notification: CKNotification
        /// Its number in the user's log, which grows: what came before may come again after a lost connection.
        public let sequence: Int64
        /// When it came into the log.
        public let date: Date
        /// Where to go on: `notifications(since:)` gives all that come after this one, and perhaps some before.
        public let token: String?
        private let payload: JSONValue

        /// - Returns: nil where the entry is not of a form that this build knows.
        init?(_ entry: NotificationPage.Entry, token: String?) {
            guard let notification = CKNotification(fromRemoteNotificationDictionary: Self.userInfo(entry.payload))
            else { return nil }
            self.notification = notification
            sequence = entry.sequence
            date = Date(timeIntervalSince1970: Double(entry.time) / 1_000)
            self.token = token
            payload = entry.payload
        }

        /// What a device of Apple's hands to its app, from which `CKNotification(fromRemoteNotificationDictionary:)`
        /// makes a notification.
        public var userInfo: [AnyHashable: Any] { Self.userInfo(payload) }

        private static func userInfo(_ payload: JSONValue) -> [AnyHashable: Any] {
            object(payload) as? [AnyHashable: Any] ?? [:]
        }

        /// As Foundation's JSON reader would give it.
        private static func object(_ json: JSONValue) -> Any {
            switch json {
            case .null: NSNull()
            case .bool(let flag): flag
            case .integer(let number): number
            case .number(let number): number
            case .string(let text): text
            case .array(let members): members.map { object($0) }
            case .object(let members):
                Dictionary(members.map { (AnyHashable($0.key), object($0.value)) }) { first, _ in first }
            }
        }
    }

    /// The notifications of the user's subscriptions, from a token on, for as long as they are awaited.
    ///
    /// All readers of a user in a process, sync engines among them, share one connection to any node. Where it is lost
    /// another is made, and nothing is missed. This process is not told of its own changes.
    /// - Parameter token: of the last notification that the app has dealt with; nil begins with the first one that the
    ///   server keeps: those of 7 days, at most 10,000.
    /// - Returns: notifications in the order of the log. They end with an error: `changeTokenExpired` where the token
    ///   is too old; then all changes have to be fetched, and the log followed without a token.
    public func notifications(since token: String? = nil) -> AsyncThrowingStream<DeliveredNotification, any Error> {
        let source = NotificationSource(account: account, token: token)
        return AsyncThrowingStream { try await source.next() }
    }
}

/// The notifications of one reader, one by one.
private actor NotificationSource {
    private let account: ContainerAccount
    private var token: String?
    private var reader: NotificationReader?
    private var waiting: ArraySlice<CKContainer.DeliveredNotification> = []

    init(account: ContainerAccount, token: String?) {
        self.account = account
        self.token = token
    }

    /// The next one; nil once the task is cancelled. There is one reader, so calls do not overlap.
    func next() async throws -> CKContainer.DeliveredNotification? {
        let reader = try self.reader ?? NotificationReader(account.session().session, since: token)
        self.reader = reader
        while waiting.isEmpty {
            do {
                guard let news = try await reader.next() else { return nil }
                if case .page(let page) = news { take(page) }
            } catch {
                throw account.mapped(error)
            }
        }
        return waiting.removeFirst()
    }

    /// A page: all but its last notification go with the token of the page before, so that none is missed where an app
    /// stops between.
    private func take(_ page: NotificationPage) {
        let next = page.token ?? token
        for entry in page.entries {
            let isLast = entry.sequence == page.entries.last?.sequence
            if let delivered = CKContainer.DeliveredNotification(entry, token: isLast ? next : token) {
                waiting.append(delivered)
            }
        }
        token = next
    }
}

extension ContainerAccount {
    /// The error that following the user's notifications ended with, as the framework gives it.
    func mapped(_ error: any Error) -> CKError {
        if (error as? ServiceFailure)?.isExpiredToken == true {
            return CKError(
                .changeTokenExpired,
                reason: "the token is too old: fetch all changes, then follow the log without a token")
        }
        return DatabaseService(account: self, scope: .private).mapping.error(error)
    }
}

// What Apple deprecated of notifications, and CloudKit no longer has. The first works here: the server keeps a log.

/// Fetches a page of the notifications of the user's subscriptions. Apple deprecated it; see
/// `CKContainer.notifications(since:)`.
@available(*, deprecated, message: "no longer supported; fetch changes instead")
open class CKFetchNotificationChangesOperation: CKOperation, @unchecked Sendable {
    /// Where the page before ended; nil begins with the first notification that the server keeps.
    @CKGuarded public var previousServerChangeToken: CKServerChangeToken? = nil
    /// The most notifications of the page; 0 for as many as the server gives.
    @CKGuarded public var resultsLimit: Int = 0
    @CKGuarded private var hasMore = false
    /// Called for each notification.
    @preconcurrency @CKGuarded public var notificationChangedBlock: (@Sendable (CKNotification) -> Void)? = nil
    /// Called once, at the end, with the token for the next page.
    @preconcurrency @CKGuarded
    public var fetchNotificationChangesCompletionBlock: (@Sendable (CKServerChangeToken?, (any Error)?) -> Void)? = nil

    /// Whether there are more notifications, for another operation.
    public var moreComing: Bool { hasMore }

    /// An operation that goes on at a token.
    public convenience init(previousServerChangeToken: CKServerChangeToken?) {
        self.init()
        self.previousServerChangeToken = previousServerChangeToken
    }

    override func execute() async {
        let limit = resultsLimit == 0 ? nil : resultsLimit
        let result = await outcome { () async throws(CKError) in
            try checkCancellation()
            return try await users.notifications(since: previousServerChangeToken, limit: limit)
        }
        let page = try? result.get()
        hasMore = page?.hasMore ?? false
        await Callbacks.run { [self] in
            for entry in page?.entries ?? [] {
                guard let delivered = CKContainer.DeliveredNotification(entry, token: page?.token) else { continue }
                notificationChangedBlock?(delivered.notification)
            }
            fetchNotificationChangesCompletionBlock?(page?.token.map { CKServerChangeToken($0) }, result.failure)
        }
    }
}

extension DatabaseService {
    /// A page of the user's log of notifications.
    fileprivate func notifications(
        since token: CKServerChangeToken?, limit: Int?
    ) async throws(CKError) -> NotificationPage {
        let (session, _) = try account.session()
        do {
            return try await session.notificationPage("changes", since: token?.value, limit: limit)
        } catch {
            throw account.mapped(error)
        }
    }
}

/// Marks notifications as read for other devices. Apple withdrew it. It ends with `serverRejectedRequest`.
@available(*, deprecated, message: "no longer supported")
open class CKMarkNotificationsReadOperation: CKOperation, @unchecked Sendable {
    /// The notifications.
    @CKGuarded public var notificationIDs: [CKNotification.ID] = []
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var markNotificationsReadCompletionBlock: (@Sendable ([CKNotification.ID]?, (any Error)?) -> Void)? = nil

    /// An operation for these notifications.
    public convenience init(notificationIDsToMarkRead notificationIDs: [CKNotification.ID]) {
        self.init()
        self.notificationIDs = notificationIDs
    }

    override func execute() async {
        let refusal = CKError(
            .serverRejectedRequest,
            reason: "the server does not keep what was read: each device goes on at its own token")
        await refuse(refusal) { [self] in markNotificationsReadCompletionBlock?(nil, $0) }
    }
}

/// Sets the app's badge. Apple withdrew it: an app sets its badge itself. It ends with `serverRejectedRequest`.
@available(*, deprecated, message: "no longer supported; set the badge in the app")
open class CKModifyBadgeOperation: CKOperation, @unchecked Sendable {
    /// The number on the badge.
    @CKGuarded public var badgeValue: Int = 0
    /// Called once, at the end.
    @preconcurrency @CKGuarded public var modifyBadgeCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation that sets the badge to a number.
    public convenience init(badgeValue: Int) {
        self.init()
        self.badgeValue = badgeValue
    }

    override func execute() async {
        let refusal = CKError(
            .serverRejectedRequest, reason: "no badges are kept on the server: CloudKit withdrew this operation")
        await refuse(refusal) { [self] in modifyBadgeCompletionBlock?($0) }
    }
}
