import Foundation
import Testing

@testable import CloudKit

@Suite("Subscriptions and notifications, by sdk-surface section 7")
struct SubscriptionTests {
    @Test("a query subscription fires on every change unless it says otherwise")
    func query() {
        let predicate = NSPredicate(value: true)
        let named = CKQuerySubscription(recordType: "Pets", predicate: predicate, subscriptionID: "pets")
        #expect(named.subscriptionID == "pets" && named.subscriptionType == .query && named.recordType == "Pets")
        #expect(named.querySubscriptionOptions.rawValue == 7 && named.zoneID == nil && named.notificationInfo == nil)
        let random = CKQuerySubscription(
            recordType: "Pets", predicate: predicate, options: [.firesOnRecordDeletion, .firesOnce])
        #expect(random.querySubscriptionOptions.rawValue == 12)
        #expect(UUID(uuidString: random.subscriptionID) != nil)
        random.zoneID = CKRecordZone.ID(zoneName: "zone")
        #expect(random.zoneID?.zoneName == "zone" && random.predicate === predicate)
    }

    @Test("zone and database subscriptions may be kept to one record type")
    func others() {
        let zone = CKRecordZoneSubscription(zoneID: CKRecordZone.ID(zoneName: "zone"), subscriptionID: "z")
        zone.recordType = "Pets"
        #expect(zone.zoneID.zoneName == "zone" && zone.recordType == "Pets" && zone.subscriptionType == .recordZone)
        let database = CKDatabaseSubscription(subscriptionID: "d")
        #expect(database.subscriptionType == .database && database.recordType == nil)
        database.recordType = "Pets"
        #expect(database.recordType == "Pets")
        #expect([1, 2, 3].map { CKSubscription.SubscriptionType(rawValue: $0) } == [.query, .recordZone, .database])
    }

    @Test("a subscription keeps a copy of the notification info it is given")
    func infoIsCopied() {
        let info = CKSubscription.NotificationInfo()
        info.shouldSendContentAvailable = true
        info.alertBody = ""
        let subscription = CKDatabaseSubscription(subscriptionID: "d")
        subscription.notificationInfo = info
        info.alertBody = "changed"
        #expect(subscription.notificationInfo?.alertBody == "")
        #expect(subscription.notificationInfo?.shouldSendContentAvailable == true)
        #expect(subscription.notificationInfo?.shouldBadge == false)
    }

    @Test("notification info is made with all of its parts and is equal by value")
    func info() throws {
        let info = CKSubscription.NotificationInfo(
            alertBody: "body", alertLocalizationKey: "key", alertLocalizationArgs: ["a"], title: "title",
            titleLocalizationKey: "t", titleLocalizationArgs: ["b"], subtitle: "subtitle",
            subtitleLocalizationKey: "s", subtitleLocalizationArgs: ["c"], alertActionLocalizationKey: "action",
            alertLaunchImage: "image", soundName: "default", desiredKeys: ["d"], shouldBadge: true,
            shouldSendContentAvailable: true, shouldSendMutableContent: true, category: "category",
            collapseIDKey: "collapse")
        #expect(info.alertBody == "body" && info.alertLocalizationKey == "key" && info.alertLocalizationArgs == ["a"])
        #expect(info.title == "title" && info.titleLocalizationKey == "t" && info.titleLocalizationArgs == ["b"])
        #expect(info.subtitle == "subtitle" && info.subtitleLocalizationKey == "s")
        #expect(info.subtitleLocalizationArgs == ["c"] && info.alertActionLocalizationKey == "action")
        #expect(info.alertLaunchImage == "image" && info.soundName == "default" && info.desiredKeys == ["d"])
        #expect(info.shouldBadge && info.shouldSendContentAvailable && info.shouldSendMutableContent)
        #expect(info.category == "category" && info.collapseIDKey == "collapse")
        let copy = try #require(info.copy() as? CKSubscription.NotificationInfo)
        #expect(copy == info)
        copy.title = "other"
        #expect(copy != info && info.title == "title")
    }

    @Test("subscriptions survive a copy and an archive with their class and content")
    func copiesAndArchives() throws {
        let query = CKQuerySubscription(
            recordType: "Pets", predicate: NSPredicate(format: "name = %@", "Comet"), subscriptionID: "q",
            options: .firesOnce)
        query.zoneID = CKRecordZone.ID(zoneName: "zone")
        query.notificationInfo = CKSubscription.NotificationInfo(alertBody: "hello")
        let zone = CKRecordZoneSubscription(zoneID: CKRecordZone.ID(zoneName: "zone"), subscriptionID: "z")
        zone.recordType = "Pets"
        let database = CKDatabaseSubscription(subscriptionID: "d")
        for subscription in [query, zone, database] as [CKSubscription] {
            let data = try NSKeyedArchiver.archivedData(withRootObject: subscription, requiringSecureCoding: true)
            let archived = try NSKeyedUnarchiver.unarchivedObject(
                ofClasses: [CKQuerySubscription.self, CKRecordZoneSubscription.self, CKDatabaseSubscription.self],
                from: data)
            for other in [subscription.copy() as Any?, archived] {
                let other = try #require(other as? CKSubscription)
                #expect(type(of: other) == type(of: subscription) && other !== subscription)
                #expect(other.subscriptionID == subscription.subscriptionID)
                #expect(other.notificationInfo == subscription.notificationInfo)
                #expect((other as? CKQuerySubscription)?.zoneID == (subscription as? CKQuerySubscription)?.zoneID)
                #expect(
                    (other as? CKQuerySubscription)?.querySubscriptionOptions
                        == (subscription as? CKQuerySubscription)?.querySubscriptionOptions)
                #expect(
                    (other as? CKRecordZoneSubscription)?.recordType
                        == (subscription as? CKRecordZoneSubscription)?.recordType)
            }
        }
    }

    @Test("the dictionary of a query notification says record, reason, database, fields and what is shown")
    func queryNotification() throws {
        let json = """
            {"aps": {"alert": {"body": "hello", "loc-key": "k", "loc-args": ["a", 1], "title": "t"}, "badge": 2,
                     "sound": "default", "category": "c"},
             "ck": {"nid": "n1", "cid": "iCloud.com.example.app", "ckuserid": "_me", "p": 1,
                    "qry": {"sid": "s1", "zid": "zone", "zoid": "_me", "rid": "one", "fo": 3, "dbs": 2,
                            "af": {"name": "Comet", "age": 3, "gone": null}}}}
            """
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8))
        let dictionary = try #require(object as? [String: Any])
        let notification = try #require(CKNotification(fromRemoteNotificationDictionary: dictionary))
        #expect(notification.notificationType == .query && notification.notificationID == CKNotificationID("n1"))
        #expect(notification.containerIdentifier == "iCloud.com.example.app" && notification.isPruned)
        #expect(notification.subscriptionID == "s1")
        #expect(notification.subscriptionOwnerUserRecordID?.recordName == "_me")
        #expect(notification.alertBody == "hello" && notification.alertLocalizationKey == "k")
        #expect(notification.alertLocalizationArgs == ["a", "1"] && notification.title == "t")
        #expect(notification.badge == 2 && notification.soundName == "default" && notification.category == "c")
        let query = try #require(notification as? CKQueryNotification)
        #expect(query.queryNotificationReason == .recordDeleted && query.databaseScope == .public)
        // As fetched records have it.
        #expect(query.recordID == CKRecord.ID(recordName: "one", zoneID: CKRecordZone.ID(zoneName: "zone")))
        #expect(query.recordFields?["name"] as? String == "Comet" && query.recordFields?["age"] as? Int == 3)
        #expect(query.recordFields?.count == 2)
    }

    @Test("zone and database notifications come as their classes, from dictionaries of Swift's types too")
    func otherNotifications() throws {
        let fetch: [AnyHashable: Any] = [
            "aps": ["content-available": 1], "ck": ["fet": ["sid": "z", "zid": "zone", "zoid": "_o", "dbs": 1]],
        ]
        let zone = try #require(CKNotification(fromRemoteNotificationDictionary: fetch) as? CKRecordZoneNotification)
        #expect(zone.recordZoneID == CKRecordZone.ID(zoneName: "zone"))
        let shared: [AnyHashable: Any] = [
            "ck": ["ckuserid": "_me", "fet": ["sid": "z", "zid": "zone", "zoid": "_o", "dbs": 3]] as [String: Any]
        ]
        let others = try #require(CKRecordZoneNotification(fromRemoteNotificationDictionary: shared))
        #expect(others.recordZoneID == CKRecordZone.ID(zoneName: "zone", ownerName: "_o"))
        #expect(zone.databaseScope == .private && zone.notificationType == .recordZone && !zone.isPruned)
        let met: [AnyHashable: Any] = ["ck": ["met": ["sid": "d", "dbs": 3] as [String: Any]]]
        let database = try #require(CKDatabaseNotification(fromRemoteNotificationDictionary: met))
        #expect(database.databaseScope == .shared && database.notificationType == .database)
        #expect(database.subscriptionID == "d" && database.alertBody == nil)
        #expect(CKQueryNotification(fromRemoteNotificationDictionary: met) == nil, "asked of the wrong class")
    }

    @Test("a message that was cut to its names is a plain notification; one without fo tells of a creation")
    func pruned() throws {
        let cut = try #require(CKNotification(fromRemoteNotificationDictionary: ["ck": ["ce": 2, "nid": "n"]]))
        #expect(cut.notificationType == .unknown && cut.notificationID == CKNotificationID("n"))
        let dictionary: [AnyHashable: Any] = ["ck": ["qry": ["sid": "s", "rid": "one", "zid": "zone"]]]
        let query = try #require(CKQueryNotification(fromRemoteNotificationDictionary: dictionary))
        #expect(query.queryNotificationReason == .recordCreated && query.recordID == nil)
    }

    @Test("subscriptions are compared by what they look at")
    func equality() {
        func query(_ format: String, _ options: CKQuerySubscription.Options = .firesOnce) -> CKQuerySubscription {
            CKQuerySubscription(
                recordType: "Note", predicate: NSPredicate(format: format), subscriptionID: "s", options: options)
        }
        #expect(query("a = 1") == query("a = 1") && query("a = 1").hash == query("a = 1").hash)
        #expect(query("a = 1") != query("a = 2"))
        #expect(query("a = 1") != query("a = 1", .firesOnRecordCreation))
        let zone = CKRecordZone.ID(zoneName: "z")
        let subscription = CKRecordZoneSubscription(zoneID: zone, subscriptionID: "s")
        #expect(subscription == CKRecordZoneSubscription(zoneID: zone, subscriptionID: "s"))
        #expect(subscription != CKRecordZoneSubscription(zoneID: .default, subscriptionID: "s"))
        #expect(subscription != CKDatabaseSubscription(subscriptionID: "s"))
        let other = CKRecordZoneSubscription(zoneID: zone, subscriptionID: "s")
        other.notificationInfo = CKSubscription.NotificationInfo()
        #expect(subscription != other)
    }

    @Test("a dictionary that is no notification of CloudKit's gives nil")
    func foreign() {
        #expect(CKNotification(fromRemoteNotificationDictionary: [:]) == nil)
        #expect(CKNotification(fromRemoteNotificationDictionary: ["aps": ["alert": "hello"]]) == nil)
        #expect(CKNotification(fromRemoteNotificationDictionary: ["ck": ["ce": 2]]) == nil)
        #expect(CKNotification(fromRemoteNotificationDictionary: ["ck": 5]) == nil)
    }
}
