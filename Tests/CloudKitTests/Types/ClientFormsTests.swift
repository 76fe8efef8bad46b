// As an app has it: both modules, in this order, and nothing @testable.
import CloudKit
import Foundation
import Testing

/// The usual ways to make objects and to call what takes a handler. What the compiler takes for two things at once, or
/// for another one than Apple's, does not compile here.
@Suite("Forms that apps write")
struct ClientFormsTests {
    private let zone = CKRecordZone.ID(zoneName: "Notes")

    @Test("identifiers, records and references")
    func records() {
        let id = CKRecord.ID(recordName: "a")
        #expect(id.zoneID == .default && id == .init(recordName: "a", zoneID: .default))
        #expect(CKRecord.ID(zoneID: zone).zoneID == zone && CKRecord.ID() != CKRecord.ID())
        #expect(CKRecord.ID(recordName: "a", zoneID: CKRecordZone.ID(zoneName: "Notes")) != id)
        #expect(["a", "b"].map { CKRecord.ID(recordName: $0) }.first == id)
        #expect(["a"].map(CKRecord.ID.init(recordName:)) == [id])
        #expect(CKRecordZone.ID().zoneName == CKRecordZone.ID.defaultZoneName)
        #expect(CKRecordZone.ID(zoneName: "Notes", ownerName: CKCurrentUserDefaultName) == zone)
        #expect(CKRecordZone(zoneName: "Notes").zoneID == CKRecordZone(zoneID: zone).zoneID)
        let zones: [CKRecordZone] = [.default(), .init(zoneName: "Notes")]
        #expect(zones.map(\.zoneID) == [.default, zone])

        let records = [
            CKRecord(recordType: "Note"), CKRecord(recordType: "Note", recordID: id),
            CKRecord(recordType: "Note", recordID: .init(recordName: "b", zoneID: zone)),
            .init(recordType: CKRecord.SystemType.userRecord),
        ]
        #expect(records.map(\.recordID.zoneID) == [.default, .default, zone, .default])
        let share = CKShare(rootRecord: records[2])
        #expect(CKShare(rootRecord: records[2], shareID: .init(recordName: "s", zoneID: zone)).recordID != id)
        #expect(CKShare(recordZoneID: zone).recordID.recordName == CKRecordNameZoneWideShare)
        share[CKShare.SystemFieldKey.title] = "Notes" as any CKRecordValue
        let batch = [records[2], share]
        #expect(batch.count == 2 && share[CKShare.SystemFieldKey.title] == "Notes")
        let reference = CKRecord.Reference(record: records[1], action: .deleteSelf)
        #expect(CKRecord.Reference(recordID: id, action: .none) != reference)
    }

    @Test("values, also optional ones, with literals and nil")
    func values() {
        let record = CKRecord(recordType: "Note")
        let (text, none): (String?, String?) = ("a", nil)
        record["text"] = text
        record["none"] = none
        record["either"] = text == nil ? nil : "b"
        record["rounded"] = 3.0 as NSNumber
        record["since"] = Date(timeIntervalSince1970: 1)
        record["names"] = ["x", "y"].map { $0.uppercased() }
        record["reference"] = CKRecord.Reference(recordID: record.recordID, action: .none)
        record["file"] = CKAsset(fileURL: URL(fileURLWithPath: "/dev/null"))
        record["gone"] = nil
        record.setValue("c", forKey: "text")
        #expect(record["text"] == "c" && record["none"] == nil && record["either"] as? String == "b")
        #expect((record["names"] as? [String])?.joined() == "XY" && record["rounded"] as? Int == 3)
        #expect(record["since"] as? Date ?? .distantPast == Date(timeIntervalSince1970: 1))
        #expect((record["file"] as? CKAsset)?.fileURL?.path == "/dev/null")
        record.encryptedValues["secret"] = "s"
        #expect(record.encryptedValues["secret"] as? String == "s")
    }

    @Test("queries and subscriptions")
    func subscriptions() {
        let predicates = [
            NSPredicate(value: true), NSPredicate(format: "TRUEPREDICATE"), NSPredicate(format: "text == %@", "a"),
            NSPredicate(format: "since > %@ AND number == %d", Date() as NSDate, 5),
            NSPredicate(format: "%K IN %@", "text", ["a", "b"]),
            NSPredicate(format: "%K = %@", argumentArray: ["text", "a"]),
        ]
        let query = CKQuery(recordType: "Note", predicate: predicates[1])
        query.sortDescriptors = [NSSortDescriptor(key: "since", ascending: false)]
        let all: [CKSubscription] = [
            CKQuerySubscription(recordType: "Note", predicate: predicates[2]),
            CKQuerySubscription(recordType: "Note", predicate: predicates[2], options: .firesOnRecordCreation),
            CKQuerySubscription(
                recordType: "Note", predicate: predicates[2], subscriptionID: "q",
                options: [.firesOnRecordCreation, .firesOnRecordUpdate, .firesOnce]),
            CKRecordZoneSubscription(zoneID: zone, subscriptionID: "z"), CKDatabaseSubscription(subscriptionID: "d"),
        ]
        let info = CKSubscription.NotificationInfo()
        info.alertBody = nil
        info.shouldSendContentAvailable = true
        for subscription in all { subscription.notificationInfo = info }
        all[0].notificationInfo = .init(alertBody: "new", soundName: "default", shouldBadge: true)
        let queries = all.compactMap { $0 as? CKQuerySubscription }
        #expect(queries.map(\.predicate) == Array(repeating: predicates[2], count: 3))
        #expect(all.map(\.subscriptionID).filter { $0.count == 1 } == ["q", "z", "d"])
    }

    @Test("operations, with and without arguments, and with nil")
    func operations() {
        let query = CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
        let id = CKRecord.ID(recordName: "a", zoneID: zone)
        let configuration = CKFetchRecordZoneChangesOperation.ZoneConfiguration(previousServerChangeToken: nil)
        let all: [CKDatabaseOperation] = [
            CKFetchRecordsOperation(), CKFetchRecordsOperation(recordIDs: [id]),
            CKFetchRecordsOperation.fetchCurrentUserRecordOperation(),
            CKModifyRecordsOperation(), CKModifyRecordsOperation(recordsToSave: nil, recordIDsToDelete: nil),
            CKModifyRecordsOperation(recordsToSave: []), CKModifyRecordsOperation(recordIDsToDelete: [id]),
            CKModifyRecordsOperation(recordsToSave: [CKRecord(recordType: "Note")], recordIDsToDelete: nil),
            CKQueryOperation(), CKQueryOperation(query: query),
            CKFetchRecordZonesOperation(), CKFetchRecordZonesOperation(recordZoneIDs: [zone]),
            CKModifyRecordZonesOperation(), CKModifyRecordZonesOperation(recordZonesToSave: nil),
            CKModifyRecordZonesOperation(recordZonesToSave: [.init(zoneID: zone)], recordZoneIDsToDelete: nil),
            CKFetchDatabaseChangesOperation(), CKFetchDatabaseChangesOperation(previousServerChangeToken: nil),
            CKFetchRecordZoneChangesOperation(),
            CKFetchRecordZoneChangesOperation(recordZoneIDs: [zone], configurationsByRecordZoneID: nil),
            CKFetchRecordZoneChangesOperation(
                recordZoneIDs: [zone], configurationsByRecordZoneID: [zone: configuration]),
            CKFetchRecordZoneChangesOperation(recordZoneIDs: [zone], configurationsByRecordZoneID: [zone: .init()]),
            CKModifySubscriptionsOperation(),
            CKModifySubscriptionsOperation(subscriptionsToSave: nil, subscriptionIDsToDelete: nil),
            CKModifySubscriptionsOperation(subscriptionsToSave: [CKDatabaseSubscription(subscriptionID: "d")]),
            CKFetchSubscriptionsOperation(), CKFetchSubscriptionsOperation(subscriptionIDs: ["s"]),
        ]
        let ofContainers: [CKOperation] = [
            CKAcceptSharesOperation(), CKAcceptSharesOperation(shareMetadatas: []), CKFetchShareMetadataOperation(),
            CKFetchShareMetadataOperation(shareURLs: []), CKFetchShareParticipantsOperation(),
            CKFetchShareParticipantsOperation(userIdentityLookupInfos: [.init(emailAddress: "a@example.com")]),
        ]
        let group = CKOperationGroup()
        group.defaultConfiguration = .init()
        for operation in all + ofContainers {
            operation.group = group
            operation.configuration.qualityOfService = .utility
            operation.completionBlock = {}
        }
        #expect(Set(all.map(\.operationID)).count == all.count)
    }

    @Test("a sync engine's options, changes and batches")
    func syncEngine() async {
        let id = CKRecord.ID(recordName: "a", zoneID: zone)
        let zones: [CKSyncEngine.PendingDatabaseChange] = [.saveZone(.init(zoneName: "Notes")), .deleteZone(zone)]
        let records: [CKSyncEngine.PendingRecordZoneChange] = [.saveRecord(id), .deleteRecord(id)]
        #expect(zones[0] != zones[1] && records[0] != records[1])
        #expect(CKSyncEngine.FetchChangesOptions().scope.contains(zone))
        #expect(!CKSyncEngine.FetchChangesOptions(scope: .zoneIDs([])).scope.contains(zone))
        #expect(CKSyncEngine.SendChangesOptions(scope: .recordIDs([id])).scope.contains(records[0]))
        let batch = await CKSyncEngine.RecordZoneChangeBatch(pendingChanges: records) { id in
            CKRecord(recordType: "Note", recordID: id)
        }
        #expect(batch?.recordsToSave.count == 1 && batch?.recordIDsToDelete == [id])
        let plain = CKSyncEngine.RecordZoneChangeBatch(recordsToSave: [], recordIDsToDelete: [id], atomicByZone: true)
        #expect(plain.atomicByZone)
    }

    @Test("calls with a handler call it once, with the error where there is no server")
    func handlers() async {
        let container = CKContainer(
            configuration: ZonekeeperConfiguration(
                urls: ["https://127.0.0.1:1"], container: "c", apiToken: "a", webAuthToken: "t", patience: .zero))
        let database = container.privateCloudDatabase
        let id = CKRecord.ID(recordName: "a", zoneID: zone)
        let query = CKQuery(recordType: "Note", predicate: NSPredicate(value: true))
        let (codes, called) = AsyncStream.makeStream(of: CKError.Code?.self)
        let note = { @Sendable (error: (any Error)?) in _ = called.yield((error as? CKError)?.code) }
        container.fetchUserRecordID { _, error in note(error) }
        database.save(CKRecord(recordType: "Note", recordID: id)) { record, error in note(error) }
        database.save(CKRecordZone(zoneID: zone)) { note($1) }
        database.save(CKDatabaseSubscription(subscriptionID: "d")) { (subscription, error) in note(error) }
        database.fetch(withRecordID: id) { record, error in
            guard let record = record else { return note(error) }
            Issue.record("\(record)")
        }
        database.fetch(withRecordZoneID: zone) { _, error in note(error) }
        database.fetch(withSubscriptionID: "s") { _, error in note(error) }
        database.fetchAllRecordZones { zones, error in note(error) }
        database.fetchAllSubscriptions { _, error in note(error) }
        database.delete(withRecordID: id) { _, error in note(error) }
        database.delete(withRecordZoneID: zone) { _, error in note(error) }
        database.delete(withSubscriptionID: "s") { _, error in note(error) }
        database.fetch(withQuery: query, inZoneWith: nil) { result in
            switch result {
            case .success((let matchResults, let cursor)): Issue.record("\(matchResults) \(cursor as Any)")
            case .failure(let error): note(error)
            }
        }
        database.modifyRecords(saving: [], deleting: [id]) { result in
            if case .failure(let error) = result { note(error) }
        }
        let operation = CKFetchRecordsOperation(recordIDs: [id])
        operation.fetchRecordsResultBlock = { result in
            switch result {
            case .success: Issue.record("there is no server")
            case .failure(let error): note(error)
            }
        }
        database.add(operation)
        var found: [CKError.Code?] = []
        for await code in codes.prefix(15) { found.append(code) }
        #expect(found == Array(repeating: .networkUnavailable, count: 15))
    }
}
