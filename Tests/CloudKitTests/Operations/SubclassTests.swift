// As an app has it: nothing @testable.
import CloudKit
import Testing

/// Subclasses of every operation class that is open at Apple's, with what apps override and add.
@Suite("Operation classes that apps subclass")
struct SubclassTests {
    private final class Save: CKModifyRecordsOperation, @unchecked Sendable {
        let label: String

        init(label: String) {
            self.label = label
            super.init()
            savePolicy = .changedKeys
        }

        override func main() { super.main() }
    }
    private final class Fetch: CKFetchRecordsOperation, @unchecked Sendable {}
    private final class Query: CKQueryOperation, @unchecked Sendable {
        override init() {
            super.init()
            resultsLimit = 7
        }
    }
    private final class SaveZones: CKModifyRecordZonesOperation, @unchecked Sendable {}
    private final class FetchZones: CKFetchRecordZonesOperation, @unchecked Sendable {}
    private final class DatabaseChanges: CKFetchDatabaseChangesOperation, @unchecked Sendable {}
    private final class ZoneChanges: CKFetchRecordZoneChangesOperation, @unchecked Sendable {}
    private final class SaveSubscriptions: CKModifySubscriptionsOperation, @unchecked Sendable {}
    private final class FetchSubscriptions: CKFetchSubscriptionsOperation, @unchecked Sendable {}
    private final class ShareMetadata: CKFetchShareMetadataOperation, @unchecked Sendable {}
    private final class AcceptShares: CKAcceptSharesOperation, @unchecked Sendable {}
    private final class Participants: CKFetchShareParticipantsOperation, @unchecked Sendable {}

    @Test("Each can be subclassed, has its superclass's members, and is made by the initialisers it inherits")
    func subclasses() {
        let id = CKRecord.ID(recordName: "r")
        let zone = CKRecordZone.ID(zoneName: "z")
        let save = Save(label: "mine")
        save.recordIDsToDelete = [id]
        #expect(save.savePolicy == .changedKeys && save.recordIDsToDelete == [id] && save.label == "mine")
        #expect(Fetch(recordIDs: [id]).recordIDs == [id])
        #expect(Query(query: CKQuery(recordType: "T", predicate: NSPredicate(value: true))).resultsLimit == 7)
        #expect(SaveZones(recordZoneIDsToDelete: [zone]).recordZoneIDsToDelete == [zone])
        #expect(FetchZones(recordZoneIDs: [zone]).recordZoneIDs == [zone])
        #expect(DatabaseChanges(previousServerChangeToken: nil).fetchAllChanges)
        #expect(ZoneChanges(recordZoneIDs: [zone]).recordZoneIDs == [zone])
        #expect(SaveSubscriptions(subscriptionIDsToDelete: ["s"]).subscriptionIDsToDelete == ["s"])
        #expect(FetchSubscriptions(subscriptionIDs: ["s"]).subscriptionIDs == ["s"])
        #expect(ShareMetadata(shareURLs: []).shareURLs == [])
        #expect(AcceptShares(shareMetadatas: []).shareMetadatas == [])
        #expect(Participants(userIdentityLookupInfos: []).userIdentityLookupInfos == [])
    }

    private protocol Making {
        static func operations() -> [CKOperation]
    }

    /// What Apple deprecated may be used without a warning where the use is deprecated itself.
    private enum Older: Making {
        @available(*, deprecated)
        private final class Discover: CKDiscoverUserIdentitiesOperation, @unchecked Sendable {}
        @available(*, deprecated)
        private final class DiscoverAll: CKDiscoverAllUserIdentitiesOperation, @unchecked Sendable {}
        @available(*, deprecated)
        private final class Badge: CKModifyBadgeOperation, @unchecked Sendable {}
        @available(*, deprecated)
        private final class Notifications: CKFetchNotificationChangesOperation, @unchecked Sendable {}
        @available(*, deprecated)
        private final class MarkRead: CKMarkNotificationsReadOperation, @unchecked Sendable {}

        @available(*, deprecated)
        static func operations() -> [CKOperation] {
            let discover = Discover(userIdentityLookupInfos: [CKUserIdentity.LookupInfo(phoneNumber: "1")])
            let badge = Badge(badgeValue: 3)
            precondition(discover.userIdentityLookupInfos.count == 1 && badge.badgeValue == 3)
            let notifications = Notifications(previousServerChangeToken: nil)
            return [discover, DiscoverAll(), badge, notifications, MarkRead(notificationIDsToMarkRead: [])]
        }
    }

    @Test("Those that Apple deprecated too")
    func older() {
        let making: any Making.Type = Older.self
        #expect(Set(making.operations().map(\.operationID)).count == 5)
    }
}
