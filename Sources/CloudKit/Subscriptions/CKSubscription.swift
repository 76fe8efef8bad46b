public import Foundation
import Synchronization

/// Asks the server to tell of changes: one of `CKQuerySubscription`, `CKRecordZoneSubscription` and
/// `CKDatabaseSubscription`.
///
/// The server does not have subscriptions yet: saving one fails and says so.
// @unchecked: what changes is `state`, behind its lock, and subclasses add what is immutable.
public class CKSubscription: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    /// The name of a subscription, unique within the user's database.
    public typealias ID = String
    public typealias NotificationInfo = CKNotificationInfo

    /// What a subscription looks at.
    public enum SubscriptionType: Int, Hashable, Sendable {
        /// The records that match a query.
        case query = 1
        /// The records of a zone.
        case recordZone = 2
        /// All zones of a database.
        case database = 3
    }

    /// Its name.
    public let subscriptionID: CKSubscription.ID
    /// What it looks at.
    public let subscriptionType: CKSubscription.SubscriptionType
    private let state: Mutex<Content>

    struct Content: Sendable {
        var notificationInfo: CKNotificationInfo?
        var zoneID: CKRecordZoneID?
        var recordType: String?
    }

    init(subscriptionID: CKSubscription.ID, type: SubscriptionType, content: Content = Content()) {
        self.subscriptionID = subscriptionID
        subscriptionType = type
        state = Mutex(content)
    }

    /// What its notifications look like: a copy of what was set. Nil shows nothing.
    public var notificationInfo: CKSubscription.NotificationInfo? {
        get { content.notificationInfo }
        set {
            let copy = newValue?.copy() as? CKNotificationInfo
            update { $0.notificationInfo = copy }
        }
    }

    final var content: Content { state.withLock { $0 } }
    final func update(_ change: (inout Content) -> Void) { state.withLock { change(&$0) } }

    /// What goes into a copy: its own notification info.
    final var copiedContent: Content {
        var content = content
        content.notificationInfo = content.notificationInfo?.copy() as? CKNotificationInfo
        return content
    }

    public override var description: String { "<\(Self.self): \(subscriptionID)>" }

    /// One of its own; every subclass makes its kind.
    public func copy(with zone: NSZone? = nil) -> Any {
        CKSubscription(subscriptionID: subscriptionID, type: subscriptionType, content: copiedContent)
    }

    public class var supportsSecureCoding: Bool { true }

    public func encode(with coder: NSCoder) {
        let content = content
        coder.write(subscriptionID, "SubscriptionID")
        coder.encode(Int64(subscriptionType.rawValue), forKey: "SubscriptionType")
        coder.write(content.notificationInfo, "NotificationInfo")
        coder.write(content.zoneID, "ZoneID")
        coder.write(content.recordType, "RecordType")
    }

    /// Nil where the archive holds no subscription.
    public required init?(coder: NSCoder) {
        guard let id = coder.text("SubscriptionID"),
            let type = SubscriptionType(rawValue: coder.integer("SubscriptionType"))
        else { return nil }
        subscriptionID = id
        subscriptionType = type
        state = Mutex(
            Content(
                notificationInfo: coder.object(CKNotificationInfo.self, "NotificationInfo"),
                zoneID: coder.object(CKRecordZoneID.self, "ZoneID"), recordType: coder.text("RecordType")))
    }
}
