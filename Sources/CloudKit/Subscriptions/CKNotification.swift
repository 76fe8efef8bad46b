public import Foundation

// @unchecked: it is not final, and it and its subclasses hold one immutable Sendable value.
/// Says that something changed: a `CKQueryNotification`, `CKRecordZoneNotification` or `CKDatabaseNotification`.
///
/// A hint: several changes may come as one notification or as none, so fetch what changed. Immutable.
public class CKNotification: NSObject, _CKNotificationFactory, @unchecked Sendable {
    /// The name in Swift of the type.
    public typealias ID = CKNotificationID

    /// What a notification tells of.
    public enum NotificationType: Int, Hashable, Sendable {
        /// What was cut off to make the message short enough: fetch changes.
        case unknown = 0
        /// Records that match a query.
        case query = 1
        /// The records of a zone.
        case recordZone = 2
        /// That another notification was read; no longer sent.
        case readNotification = 3
        /// The zones of a database.
        case database = 4
    }

    let content: NotificationContent

    fileprivate init(_ content: NotificationContent) { self.content = content }

    /// What it tells of.
    public var notificationType: CKNotification.NotificationType { content.type }
    /// Tells notifications apart.
    public var notificationID: CKNotification.ID? { content.notificationID.map { CKNotificationID($0) } }
    /// The container in which something changed.
    public var containerIdentifier: String? { content.containerIdentifier }
    /// The subscription that asked for it.
    public var subscriptionID: CKSubscription.ID? { content.subscriptionID }
    /// The user whose subscription that is.
    public var subscriptionOwnerUserRecordID: CKRecord.ID? { content.subscriptionOwner }
    /// Whether something was left out to keep it small.
    public var isPruned: Bool { content.isPruned }

    /// The text that is shown.
    public var alertBody: String? { content.alert.texts["body"] ?? content.aps.texts["alert"] }
    /// The key of the text in the app's own texts.
    public var alertLocalizationKey: String? { content.alert.texts["loc-key"] }
    /// What fills the text's gaps.
    public var alertLocalizationArgs: [String]? { content.alert.lists["loc-args"] }
    /// The line above the text.
    public var title: String? { content.alert.texts["title"] }
    /// The key of the title in the app's own texts.
    public var titleLocalizationKey: String? { content.alert.texts["title-loc-key"] }
    /// What fills the title's gaps.
    public var titleLocalizationArgs: [String]? { content.alert.lists["title-loc-args"] }
    /// The line below the title.
    public var subtitle: String? { content.alert.texts["subtitle"] }
    /// The key of the subtitle in the app's own texts.
    public var subtitleLocalizationKey: String? { content.alert.texts["subtitle-loc-key"] }
    /// What fills the subtitle's gaps.
    public var subtitleLocalizationArgs: [String]? { content.alert.lists["subtitle-loc-args"] }
    /// The key of the button's text in the app's own texts.
    public var alertActionLocalizationKey: String? { content.alert.texts["action-loc-key"] }
    /// The picture that shows while the app starts.
    public var alertLaunchImage: String? { content.alert.texts["launch-image"] ?? content.aps.texts["launch-image"] }
    /// The number on the app's icon.
    public var badge: NSNumber? { content.badge.map { NSNumber(value: $0) } }
    /// The name of the sound.
    public var soundName: String? { content.aps.texts["sound"] }
    /// The group of actions that go with it.
    public var category: String? { content.aps.texts["category"] }

    /// The text for logs.
    public override var description: String {
        "<\(Self.self): \(content.notificationID ?? "no ID"), subscription=\(content.subscriptionID ?? "none")>"
    }

    /// The notification of a dictionary, of the class for its kind.
    fileprivate static func make(_ content: NotificationContent) -> CKNotification? {
        switch content.type {
        case .query: CKQueryNotification(content)
        case .recordZone: CKRecordZoneNotification(content)
        case .database: CKDatabaseNotification(content)
        case .unknown: CKNotification(content)
        case .readNotification: nil
        }
    }
}

/// Lets an initialiser of `CKNotification` give an instance of a subclass. Nothing else conforms.
public protocol _CKNotificationFactory {}

extension _CKNotificationFactory where Self: CKNotification {
    /// Reads the dictionary of a remote notification and gives the subclass for what it tells of.
    ///
    /// Nil where the dictionary is no notification of CloudKit's, or is one of another class than the one it is asked
    /// of.
    public init?(fromRemoteNotificationDictionary notificationDictionary: [AnyHashable: Any]) {
        guard let content = NotificationContent(notificationDictionary),
            let notification = CKNotification.make(content) as? Self
        else { return nil }
        self = notification
    }
}

// @unchecked as its superclass is: it adds nothing that is stored.
/// Tells of a record that matches a subscription's query.
public final class CKQueryNotification: CKNotification, @unchecked Sendable {
    /// What happened to the record.
    public enum Reason: Int, Hashable, Sendable {
        case recordCreated = 1
        case recordUpdated = 2
        case recordDeleted = 3
    }

    /// What happened to the record.
    public var queryNotificationReason: CKQueryNotification.Reason { content.reason }
    /// The values of the fields that the subscription asked for; nil where they were left out.
    public var recordFields: [String: Any]? { content.fields?.compactMapValues(\.object) }
    /// The record.
    public var recordID: CKRecord.ID? { content.recordID }
    /// The record's database.
    public var databaseScope: CKDatabaseScope { content.scope }
}

// @unchecked as its superclass is: it adds nothing that is stored.
/// Tells of changes in a zone.
public final class CKRecordZoneNotification: CKNotification, @unchecked Sendable {
    /// The zone.
    public var recordZoneID: CKRecordZone.ID? { content.zoneID }
    /// The zone's database.
    public var databaseScope: CKDatabaseScope { content.scope }
}

// @unchecked as its superclass is: it adds nothing that is stored.
/// Tells of changes in a database.
public final class CKDatabaseNotification: CKNotification, @unchecked Sendable {
    /// The database.
    public var databaseScope: CKDatabaseScope { content.scope }
}

/// Tells notifications apart: `CKNotification.ID`. Opaque, immutable, equal by value.
public final class CKNotificationID: NSObject, _CKImmutable, Sendable {
    let value: String

    init(_ value: String) { self.value = value }

    /// Whether the other object is equal to this one.
    public override func isEqual(_ object: Any?) -> Bool { (object as? CKNotificationID)?.value == value }
    /// Equal for equal objects.
    public override var hash: Int { value.hashValue }
    /// The text for logs.
    public override var description: String { "<CKNotificationID: \(value)>" }

    /// The class's name at Apple's.
    public override class func classFallbacksForKeyedArchiver() -> [String] { ArchiveNames.fallbacks(self) }
    /// Archives the object.
    public func encode(with coder: NSCoder) { coder.write(value, "NotificationID") }

    /// Nil where the archive holds no ID.
    public convenience init?(coder: NSCoder) {
        guard let value = coder.text("NotificationID") else { return nil }
        self.init(value)
    }
}

/// What a notification's dictionary says, in values of ours. The shape is that of the messages which Apple's push
/// service and CloudKit's web services carry: `aps` for what is shown, `ck` for what changed.
struct NotificationContent: Sendable {
    var type: CKNotification.NotificationType
    var notificationID: String?
    var containerIdentifier: String?
    var subscriptionID: String?
    var subscriptionOwner: CKRecordID?
    var isPruned: Bool
    var scope: CKDatabaseScope
    var zoneID: CKRecordZoneID?
    var recordID: CKRecordID?
    var reason: CKQueryNotification.Reason
    var fields: [String: RecordValue]?
    var aps: Texts
    /// The part of it that is about the text.
    var alert: Texts
    var badge: Int64?

    /// The texts and the lists of texts in a dictionary.
    struct Texts: Sendable {
        let texts: [String: String]
        let lists: [String: [String]]

        init(_ dictionary: [AnyHashable: Any]) {
            let members = dictionary.compactMap { key, value in (key as? String).map { ($0, value) } }
            let named = Dictionary(members) { first, _ in first }
            texts = named.compactMapValues { $0 as? String }
            lists = named.compactMapValues { ($0 as? [Any])?.map { $0 as? String ?? "\($0)" } }
        }
    }

    /// Nil if the dictionary is not a CloudKit notification.
    init?(_ dictionary: [AnyHashable: Any]) {
        guard let cloudKit = Self.dictionary(dictionary["ck"]) else { return nil }
        let kinds: [(String, CKNotification.NotificationType)] = [
            ("fet", .recordZone), ("qry", .query), ("met", .database),
        ]
        let found = kinds.lazy.compactMap { key, type in Self.dictionary(cloudKit[key]).map { (type, $0) } }.first
        // A message that was cut to its names still says that something changed.
        if found == nil, cloudKit["nid"] == nil { return nil }
        let (type, change) = found ?? (.unknown, [:])
        self.type = type
        notificationID = Self.text(cloudKit["nid"])
        containerIdentifier = Self.text(cloudKit["cid"])
        isPruned = Self.integer(cloudKit["p"]) ?? 0 != 0
        subscriptionOwner = Self.text(cloudKit["ckuserid"]).map { CKRecordID(recordName: $0) }
        subscriptionID = Self.text(change["sid"])
        // Not the numbers of `CKDatabaseScope`.
        scope =
            switch Self.integer(change["dbs"]) {
            case 2: .public
            case 3: .shared
            default: .private
            }
        zoneID = Self.zoneID(change, isShared: scope == .shared, reader: Self.text(cloudKit["ckuserid"]))
        recordID =
            if let name = Self.text(change["rid"]), let zoneID, Self.text(change["zoid"]) != nil {
                CKRecordID(recordName: name, zoneID: zoneID)
            } else { nil }
        reason =
            switch Self.integer(change["fo"]) {
            case 2: .recordUpdated
            case 3: .recordDeleted
            default: .recordCreated
            }
        fields = Self.dictionary(change["af"]).map { Self.values($0) }
        let shown = Self.dictionary(dictionary["aps"]) ?? [:]
        aps = Texts(shown)
        alert = Texts(Self.dictionary(shown["alert"]) ?? [:])
        badge = Self.integer(shown["badge"])
    }

    private static func values(_ fields: [AnyHashable: Any]) -> [String: RecordValue] {
        var values: [String: RecordValue] = [:]
        for (key, value) in fields where !(value is NSNull) {
            if let name = key as? String { values[name] = RecordValue(value) }
        }
        return values
    }

    /// As in fetched records: but for what others share, zones are the user's own, who has no name there.
    private static func zoneID(_ change: [AnyHashable: Any], isShared: Bool, reader: String?) -> CKRecordZoneID? {
        let owner = text(change["zoid"]).flatMap { isShared && $0 != reader ? $0 : nil }
        return text(change["zid"]).map { CKRecordZoneID(zoneName: $0, ownerName: owner ?? CKCurrentUserDefaultName) }
    }

    private static func dictionary(_ value: Any?) -> [AnyHashable: Any]? { value as? [AnyHashable: Any] }
    private static func text(_ value: Any?) -> String? { value as? String }

    /// A number of any type, or a Bool.
    private static func integer(_ value: Any?) -> Int64? {
        value.flatMap { RecordValue($0).read(as: Int64.self) }
    }
}
