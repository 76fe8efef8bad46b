import Foundation

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
    var alert: Alert

    /// What is shown.
    struct Alert: Sendable {
        var body: String?
        var localizationKey: String?
        var localizationArgs: [String]?
        var title: String?
        var titleLocalizationKey: String?
        var titleLocalizationArgs: [String]?
        var subtitle: String?
        var subtitleLocalizationKey: String?
        var subtitleLocalizationArgs: [String]?
        var actionLocalizationKey: String?
        var launchImage: String?
        var badge: Int64?
        var soundName: String?
        var category: String?
    }

    /// Nil where the dictionary is no notification of CloudKit's, or of a kind that is not known.
    init?(_ dictionary: [AnyHashable: Any]) {
        guard let cloudKit = Self.dictionary(dictionary["ck"]) else { return nil }
        let kinds: [(String, CKNotification.NotificationType)] = [
            ("fet", .recordZone), ("qry", .query), ("met", .database),
        ]
        let found = kinds.lazy.compactMap { key, type in Self.dictionary(cloudKit[key]).map { (type, $0) } }.first
        guard let (type, change) = found else { return nil }
        self.type = type
        notificationID = Self.text(cloudKit["nid"])
        containerIdentifier = Self.text(cloudKit["cid"])
        isPruned = Self.integer(cloudKit["p"]) ?? 0 != 0
        subscriptionOwner = Self.text(cloudKit["ckuserid"]).map { CKRecordID(recordName: $0) }
        subscriptionID = Self.text(change["sid"])
        scope =
            switch Self.integer(change["dbs"]) {
            case 0, 1: .public
            case 3: .shared
            default: .private
            }
        zoneID = Self.text(change["zid"]).map {
            CKRecordZoneID(zoneName: $0, ownerName: Self.text(change["zoid"]) ?? CKCurrentUserDefaultName)
        }
        let zone = zoneID ?? .default
        recordID = Self.text(change["rid"]).map { CKRecordID(recordName: $0, zoneID: zone) }
        let number = Self.integer(change["fo"]).flatMap { Int(exactly: $0) }
        reason = number.flatMap { CKQueryNotification.Reason(rawValue: $0) } ?? .recordUpdated
        fields = Self.dictionary(change["af"]).map { fields in
            var values: [String: RecordValue] = [:]
            for (key, value) in fields where !(value is NSNull) {
                if let name = key as? String { values[name] = RecordValue(value) }
            }
            return values
        }
        alert = Alert(Self.dictionary(dictionary["aps"]) ?? [:])
    }

    static func dictionary(_ value: Any?) -> [AnyHashable: Any]? { value as? [AnyHashable: Any] }
    static func text(_ value: Any?) -> String? { value as? String }
    static func texts(_ value: Any?) -> [String]? { (value as? [Any])?.map { text($0) ?? "\($0)" } }

    /// A number of any type, or a Bool.
    static func integer(_ value: Any?) -> Int64? {
        value.flatMap { RecordValue($0).read(as: Int64.self) }
    }
}

extension NotificationContent.Alert {
    init(_ aps: [AnyHashable: Any]) {
        typealias Content = NotificationContent
        let alert = Content.dictionary(aps["alert"]) ?? [:]
        body = Content.text(alert["body"]) ?? Content.text(aps["alert"])
        localizationKey = Content.text(alert["loc-key"])
        localizationArgs = Content.texts(alert["loc-args"])
        title = Content.text(alert["title"])
        titleLocalizationKey = Content.text(alert["title-loc-key"])
        titleLocalizationArgs = Content.texts(alert["title-loc-args"])
        subtitle = Content.text(alert["subtitle"])
        subtitleLocalizationKey = Content.text(alert["subtitle-loc-key"])
        subtitleLocalizationArgs = Content.texts(alert["subtitle-loc-args"])
        actionLocalizationKey = Content.text(alert["action-loc-key"])
        launchImage = Content.text(alert["launch-image"]) ?? Content.text(aps["launch-image"])
        badge = Content.integer(aps["badge"])
        soundName = Content.text(aps["sound"])
        category = Content.text(aps["category"])
    }
}
