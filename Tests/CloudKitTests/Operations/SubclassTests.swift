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

    /// What apps override, as far as it is open at Apple's.
    private final class Overriding: CKFetchRecordsOperation, @unchecked Sendable {
        let called = Log<String>()
        /// Whether `main()` begins the work.
        let begins: Bool

        init(begins: Bool = true) {
            self.begins = begins
            super.init()
            recordIDs = [CKRecord.ID(recordName: "a")]
        }

        override func start() {
            called.add("start")
            super.start()
        }

        override func main() {
            called.add("main")
            fetchRecordsResultBlock = { [called] in called.add($0.code == .operationCancelled ? "cancelled" : "end") }
            if begins { super.main() }
        }

        override func cancel() {
            called.add("cancel")
            super.cancel()
        }

        override var isFinished: Bool { super.isFinished }
        override var isExecuting: Bool { super.isExecuting }
        override var isAsynchronous: Bool { super.isAsynchronous }

        func beginLater() { super.main() }
    }

    /// A database that nobody serves.
    private func database() -> CKDatabase {
        CKContainer(
            configuration: ZonekeeperConfiguration(
                urls: ["https://127.0.0.1:1"], container: "c", apiToken: "a", webAuthToken: "t", patience: .zero)
        ).privateCloudDatabase
    }

    @Test("A subclass sets itself up in main(), which its work begins with")
    func overridden() async {
        let operation = Overriding()
        await run(operation, on: database())
        #expect(operation.called.all == ["start", "main", "end"])
        #expect(operation.isFinished && !operation.isExecuting)
    }

    @Test("Work that main() did not begin begins when it is asked for")
    func later() async {
        let operation = Overriding(begins: false)
        operation.database = database()
        operation.start()
        #expect(operation.called.all == ["start", "main"] && operation.isExecuting)
        await withCheckedContinuation { continuation in
            operation.completionBlock = { continuation.resume() }
            operation.beginLater()
        }
        #expect(operation.called.all == ["start", "main", "end"])
    }

    @Test("A cancelled one ends, whether main() began its work or not", arguments: [true, false])
    func cancelled(begins: Bool) async {
        let before = Overriding(begins: begins)
        before.cancel()
        await run(before, on: database())
        #expect(before.called.all == ["cancel", "start", "main", "cancelled"])
        guard !begins else { return }
        let idle = Overriding(begins: false)
        idle.database = database()
        idle.start()
        await withCheckedContinuation { continuation in
            idle.completionBlock = { continuation.resume() }
            idle.cancel()
        }
        #expect(idle.called.all == ["start", "main", "cancel", "cancelled"])
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
