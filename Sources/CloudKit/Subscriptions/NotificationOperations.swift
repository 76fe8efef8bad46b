import ServiceClient

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

    /// An operation that begins with the first notification.
    public override init() { super.init() }

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

    /// An operation with nothing to do yet.
    public override init() { super.init() }

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

    /// An operation that takes the badge away.
    public override init() { super.init() }

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
