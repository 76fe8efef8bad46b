// As an app has it: nothing @testable.
import CloudKit
import Foundation
import Testing

/// What Apple deprecated, through a requirement that is not: so its uses give no warnings.
private protocol OlderBlocks {
    static func set() -> Int
}

/// Blocks and names as code has them that was written before results came in one value: that they take these types is
/// most of the test.
private enum Older: OlderBlocks {
    @available(*, deprecated)
    static func set() -> Int {
        let operations: [CKOperation] = records() + zones() + changes() + subscriptions() + sharing()
        return operations.count
    }

    @available(*, deprecated)
    private static func records() -> [CKOperation] {
        let modify = CKModifyRecordsOperation(recordsToSave: nil, recordIDsToDelete: nil)
        modify.perRecordCompletionBlock = { (_: CKRecord, _: (any Error)?) in }
        modify.modifyRecordsCompletionBlock = { (_: [CKRecord]?, _: [CKRecord.ID]?, _: (any Error)?) in }
        modify.perRecordProgressBlock = { (_: CKRecord, _: Double) in }
        modify.isLongLived = true
        modify.longLivedOperationWasPersistedBlock = {}
        (modify.timeoutIntervalForRequest, modify.timeoutIntervalForResource) = (10, 20)
        modify.allowsCellularAccess = false
        let fetch = CKFetchRecordsOperation(recordIDs: [])
        fetch.perRecordCompletionBlock = { (_: CKRecord?, _: CKRecord.ID?, _: (any Error)?) in }
        fetch.fetchRecordsCompletionBlock = { (_: [CKRecord.ID: CKRecord]?, _: (any Error)?) in }
        let query = CKQueryOperation(query: CKQuery(recordType: "A", predicate: NSPredicate(value: true)))
        query.recordFetchedBlock = { (_: CKRecord) in }
        query.queryCompletionBlock = { (_: CKQueryOperation.Cursor?, _: (any Error)?) in }
        return [modify, fetch, query]
    }

    @available(*, deprecated)
    private static func zones() -> [CKOperation] {
        let zone = CKRecordZone.ID(zoneName: CKRecordZoneDefaultName, ownerName: CKOwnerDefaultName)
        let modify = CKModifyRecordZonesOperation(
            recordZonesToSave: [CKRecordZone(zoneID: zone)], recordZoneIDsToDelete: nil)
        modify.modifyRecordZonesCompletionBlock = { (_: [CKRecordZone]?, _: [CKRecordZone.ID]?, _: (any Error)?) in }
        let fetch = CKFetchRecordZonesOperation(recordZoneIDs: [zone])
        fetch.fetchRecordZonesCompletionBlock = { (_: [CKRecordZone.ID: CKRecordZone]?, _: (any Error)?) in }
        return [modify, fetch]
    }

    @available(*, deprecated)
    private static func changes() -> [CKOperation] {
        let database = CKFetchDatabaseChangesOperation(previousServerChangeToken: nil)
        database.fetchDatabaseChangesCompletionBlock = { (_: CKServerChangeToken?, _: Bool, _: (any Error)?) in }
        let zones = CKFetchRecordZoneChangesOperation()
        zones.recordChangedBlock = { (_: CKRecord) in }
        zones.recordZoneFetchCompletionBlock = {
            (_: CKRecordZone.ID, _: CKServerChangeToken?, _: Data?, _: Bool, _: (any Error)?) in
        }
        zones.fetchRecordZoneChangesCompletionBlock = { (_: (any Error)?) in }
        return [database, zones]
    }

    @available(*, deprecated)
    private static func subscriptions() -> [CKOperation] {
        let modify = CKModifySubscriptionsOperation(subscriptionsToSave: nil, subscriptionIDsToDelete: nil)
        modify.modifySubscriptionsCompletionBlock = {
            (_: [CKSubscription]?, _: [CKSubscription.ID]?, _: (any Error)?) in
        }
        let fetch = CKFetchSubscriptionsOperation(subscriptionIDs: [])
        fetch.fetchSubscriptionCompletionBlock = { (_: [CKSubscription.ID: CKSubscription]?, _: (any Error)?) in }
        return [modify, fetch]
    }

    @available(*, deprecated)
    private static func sharing() -> [CKOperation] {
        let accept = CKAcceptSharesOperation(shareMetadatas: [])
        accept.perShareCompletionBlock = { (_: CKShare.Metadata, _: CKShare?, _: (any Error)?) in }
        accept.acceptSharesCompletionBlock = { (_: (any Error)?) in }
        let metadata = CKFetchShareMetadataOperation(shareURLs: [])
        metadata.perShareMetadataBlock = { (_: URL, _: CKShare.Metadata?, _: (any Error)?) in }
        metadata.fetchShareMetadataCompletionBlock = { (_: (any Error)?) in }
        let participants = CKFetchShareParticipantsOperation(userIdentityLookupInfos: [])
        participants.shareParticipantFetchedBlock = { (_: CKShare.Participant) in }
        participants.fetchShareParticipantsCompletionBlock = { (_: (any Error)?) in }
        let all = CKDiscoverAllUserIdentitiesOperation()
        all.userIdentityDiscoveredBlock = { (_: CKUserIdentity) in }
        all.discoverAllUserIdentitiesCompletionBlock = { (_: (any Error)?) in }
        return [accept, metadata, participants, all]
    }
}

@Suite("Blocks from before there were results")
struct OlderBlockTests {
    private var blocks: any OlderBlocks.Type { Older.self }

    @Test("every operation takes them")
    func older() { #expect(blocks.set() == 13) }
}
