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
