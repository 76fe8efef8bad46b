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
    }

    /// The notifications of the user's subscriptions, from a token on, for as long as they are awaited.
    ///
    /// Over one connection, to any node; where it is lost another is made, and nothing is missed. This process is not
    /// told of its own changes.
    /// - Parameter token: of the last notification that the app has dealt with; nil begins with the first one that the
    ///   server keeps: those of 7 days, at most 10,000.
    /// - Returns: notifications in the order of the log. They end with an error: `changeTokenExpired` where the token
    ///   is too old; then all changes have to be fetched, and the log followed without a token.
    public func notifications(since token: String? = nil) -> AsyncThrowingStream<DeliveredNotification, any Error> {
        let source = NotificationSource(account: account, token: token)
        return AsyncThrowingStream { try await source.next() }
    }
}

/// The notifications of one reader, over one connection after another.
private actor NotificationSource {
    private let account: ContainerAccount
    private var token: String?
    private var events: AsyncThrowingStream<ServerSentEvent, any Error>.Iterator?
    private var waiting: [CKContainer.DeliveredNotification] = []

    private static let pause = Duration.seconds(1)

    init(account: ContainerAccount, token: String?) {
        self.account = account
        self.token = token
    }

    /// The next one; nil once the task is cancelled. There is one reader, so calls do not overlap.
    func next() async throws -> CKContainer.DeliveredNotification? {
        while waiting.isEmpty {
            if Task.isCancelled { return nil }
            do {
                try await receive()
            } catch let failure as ServiceFailure where Self.isExpired(failure.json) {
                throw Self.expired
            } catch let failure as ServiceFailure where failure.status != 429 && failure.status < 500 {
                throw mapping.error(failure)
            } catch let error as CKError {
                throw error
            } catch let error as ServiceClientError {
                throw mapping.error(error)
            } catch {
                // The connection was lost, or no node has room.
                events = nil
                if Task.isCancelled { return nil }
                try await Task.sleep(for: Self.pause)
            }
        }
        return waiting.removeFirst()
    }

    private var mapping: ErrorMapping { DatabaseService(account: account, scope: .private).mapping }

    private static let expired = CKError(
        .changeTokenExpired, reason: "the token is too old: fetch all changes, then follow the log without a token")

    private static func isExpired(_ json: JSONValue) -> Bool { json["syncTokenExpired"] != nil }

    /// Waits for the next event.
    private func receive() async throws {
        var iterator: AsyncThrowingStream<ServerSentEvent, any Error>.Iterator
        if let events {
            iterator = events
        } else {
            iterator = try account.session().0.watchNotifications(syncToken: token).makeAsyncIterator()
        }
        let event = try await iterator.next(isolation: self)
        events = event == nil ? nil : iterator
        guard let event, let json = try? JSONParser.parse(Array(event.data.utf8)) else { return }
        switch event.name {
        case "notifications": take(json)
        case "expired": throw Self.expired
        case "end":
            events = nil
            if json["serverErrorCode"]?.string?.hasPrefix("AUTHENTICATION") == true {
                throw CKError(.notAuthenticated, reason: json["reason"]?.string ?? "the session has ended")
            }
            try await Task.sleep(for: Self.pause)
        default: break
        }
    }

    /// A page: all but its last notification go with the token of the page before, so that none is missed where an app
    /// stops between.
    private func take(_ page: JSONValue) {
        let entries = page["notifications"]?.array ?? []
        let next = page["syncToken"]?.string
        for (place, entry) in entries.enumerated() {
            guard let payload = entry["payload"], let dictionary = Self.object(payload) as? [AnyHashable: Any],
                let notification = CKNotification(fromRemoteNotificationDictionary: dictionary)
            else { continue }
            waiting.append(
                CKContainer.DeliveredNotification(
                    notification: notification, sequence: Self.integer(entry["seq"]),
                    date: Date(timeIntervalSince1970: Double(Self.integer(entry["time"])) / 1_000),
                    token: place == entries.count - 1 ? next : token))
        }
        token = next ?? token
    }

    private static func integer(_ json: JSONValue?) -> Int64 {
        if case .integer(let number)? = json { number } else { 0 }
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
