import CloudKit

extension SurfaceUses {
    static func operation(_ operation: CKOperation, _ database: CKDatabase) {
        let _: [Operation] = [operation, CKOperation()]
        let configuration = CKOperation.Configuration()
        configuration.container = nil
        configuration.qualityOfService = .userInitiated
        configuration.allowsCellularAccess = false
        configuration.timeoutIntervalForRequest = 1
        configuration.timeoutIntervalForResource = 1
        configuration.isLongLived = false
        operation.configuration = configuration
        operation.configuration.qualityOfService = .utility
        operation.group = CKOperationGroup()
        let _: CKOperation.ID = operation.operationID
        operation.queuePriority = .veryHigh
        operation.addDependency(Operation())
        (operation as? CKDatabaseOperation)?.database = database
    }

    static func query(_ operation: CKQueryOperation, _ query: CKQuery, _ cursor: CKQueryOperation.Cursor) {
        let _: [CKQueryOperation] = [
            CKQueryOperation(), CKQueryOperation(query: query), CKQueryOperation(cursor: cursor),
        ]
        let _: CKDatabaseOperation = operation
        let _: any NSSecureCoding = cursor
        operation.query = query
        operation.cursor = cursor
        operation.zoneID = .default
        operation.resultsLimit = CKQueryOperation.maximumResults
        operation.desiredKeys = ["a"]
        operation.recordMatchedBlock = { (_: CKRecord.ID, _: Result<CKRecord, any Error>) in }
        operation.queryResultBlock = { (_: Result<CKQueryOperation.Cursor?, any Error>) in }
        operation.recordFetchedBlock = { (_: CKRecord) in }
        operation.queryCompletionBlock = { (_: CKQueryOperation.Cursor?, _: (any Error)?) in }
    }

    static func modify(_ operation: CKModifyRecordsOperation, _ record: CKRecord) {
        let _: [CKModifyRecordsOperation] = [
            CKModifyRecordsOperation(), CKModifyRecordsOperation(recordsToSave: [record]),
            CKModifyRecordsOperation(recordIDsToDelete: []),
            CKModifyRecordsOperation(recordsToSave: nil, recordIDsToDelete: nil),
        ]
        operation.recordsToSave = [record]
        operation.recordIDsToDelete = [record.recordID]
        operation.savePolicy = .ifServerRecordUnchanged
        operation.isAtomic = false
        operation.clientChangeTokenData = Data()
        operation.perRecordProgressBlock = { (_: CKRecord, _: Double) in }
        operation.perRecordSaveBlock = { (_: CKRecord.ID, _: Result<CKRecord, any Error>) in }
        operation.perRecordDeleteBlock = { (_: CKRecord.ID, _: Result<Void, any Error>) in }
        operation.modifyRecordsResultBlock = { (_: Result<Void, any Error>) in }
        operation.perRecordCompletionBlock = { (_: CKRecord, _: (any Error)?) in }
        operation.modifyRecordsCompletionBlock = { (_: [CKRecord]?, _: [CKRecord.ID]?, _: (any Error)?) in }
    }

    static func fetch(_ operation: CKFetchRecordsOperation) {
        let _: [CKFetchRecordsOperation] = [
            CKFetchRecordsOperation(), CKFetchRecordsOperation(recordIDs: []),
            CKFetchRecordsOperation.fetchCurrentUserRecordOperation(),
        ]
        operation.recordIDs = []
        operation.desiredKeys = nil
        operation.perRecordProgressBlock = { (_: CKRecord.ID, _: Double) in }
        operation.perRecordResultBlock = { (_: CKRecord.ID, _: Result<CKRecord, any Error>) in }
        operation.fetchRecordsResultBlock = { (_: Result<Void, any Error>) in }
        operation.perRecordCompletionBlock = { (_: CKRecord?, _: CKRecord.ID?, _: (any Error)?) in }
        operation.fetchRecordsCompletionBlock = { (_: [CKRecord.ID: CKRecord]?, _: (any Error)?) in }
    }

    static func zones(_ modify: CKModifyRecordZonesOperation, _ fetch: CKFetchRecordZonesOperation) {
        let _: [CKModifyRecordZonesOperation] = [
            CKModifyRecordZonesOperation(recordZonesToSave: []),
            CKModifyRecordZonesOperation(recordZoneIDsToDelete: []),
        ]
        modify.recordZonesToSave = [CKRecordZone(zoneName: "z")]
        modify.recordZoneIDsToDelete = nil
        modify.perRecordZoneSaveBlock = { (_: CKRecordZone.ID, _: Result<CKRecordZone, any Error>) in }
        modify.perRecordZoneDeleteBlock = { (_: CKRecordZone.ID, _: Result<Void, any Error>) in }
        modify.modifyRecordZonesResultBlock = { (_: Result<Void, any Error>) in }
        let _: [CKFetchRecordZonesOperation] = [
            CKFetchRecordZonesOperation(recordZoneIDs: []), CKFetchRecordZonesOperation.fetchAllRecordZonesOperation(),
        ]
        fetch.recordZoneIDs = nil
        fetch.perRecordZoneResultBlock = { (_: CKRecordZone.ID, _: Result<CKRecordZone, any Error>) in }
        fetch.fetchRecordZonesResultBlock = { (_: Result<Void, any Error>) in }
    }

    static func changes(_ zones: CKFetchRecordZoneChangesOperation, _ database: CKFetchDatabaseChangesOperation) {
        typealias Configuration = CKFetchRecordZoneChangesOperation.ZoneConfiguration
        let configurations: [Configuration] = [
            Configuration(), Configuration(previousServerChangeToken: nil, resultsLimit: 1, desiredKeys: ["a"]),
        ]
        configurations[0].resultsLimit = 5
        let _: [CKFetchRecordZoneChangesOperation] = [
            CKFetchRecordZoneChangesOperation(), CKFetchRecordZoneChangesOperation(recordZoneIDs: [.default]),
            CKFetchRecordZoneChangesOperation(
                recordZoneIDs: [.default], configurationsByRecordZoneID: [.default: configurations[0]]),
        ]
        zones.fetchAllChanges = false
        zones.recordWasChangedBlock = { (_: CKRecord.ID, _: Result<CKRecord, any Error>) in }
        zones.recordWithIDWasDeletedBlock = { (_: CKRecord.ID, _: CKRecord.RecordType) in }
        zones.recordZoneChangeTokensUpdatedBlock = { (_: CKRecordZone.ID, _: CKServerChangeToken?, _: Data?) in }
        zones.recordZoneFetchResultBlock = { (_: CKRecordZone.ID, result) in
            let _: (serverChangeToken: CKServerChangeToken, clientChangeTokenData: Data?, moreComing: Bool)? =
                try? result.get()
        }
        zones.fetchRecordZoneChangesResultBlock = { (_: Result<Void, any Error>) in }
        zones.recordChangedBlock = { (_: CKRecord) in }
        zones.recordZoneFetchCompletionBlock = {
            (_: CKRecordZone.ID, _: CKServerChangeToken?, _: Data?, _: Bool, _: (any Error)?) in
        }
        zones.fetchRecordZoneChangesCompletionBlock = { (_: (any Error)?) in }
        let _ = CKFetchDatabaseChangesOperation(previousServerChangeToken: nil)
        database.fetchAllChanges = true
        database.resultsLimit = 1
        for block in [
            \CKFetchDatabaseChangesOperation.recordZoneWithIDChangedBlock, \.recordZoneWithIDWasDeletedBlock,
            \.recordZoneWithIDWasPurgedBlock, \.recordZoneWithIDWasDeletedDueToUserEncryptedDataResetBlock,
        ] { database[keyPath: block] = { (_: CKRecordZone.ID) in } }
        database.changeTokenUpdatedBlock = { (_: CKServerChangeToken) in }
        database.fetchDatabaseChangesResultBlock = { result in
            let _: (serverChangeToken: CKServerChangeToken, moreComing: Bool)? = try? result.get()
        }
    }

    static func subscriptions(_ database: CKDatabase, _ subscription: CKSubscription) async throws {
        let id: CKSubscription.ID = subscription.subscriptionID
        try await database.save(subscription)
        let _: CKSubscription.ID = try await database.deleteSubscription(withID: id)
        let _: CKSubscription = try await database.subscription(for: id)
        let _: Results<CKSubscription.ID, CKSubscription> = try await database.subscriptions(for: [id])
        let _: [CKSubscription] = try await database.allSubscriptions()
        let _:
            (saveResults: Results<CKSubscription.ID, CKSubscription>, deleteResults: Results<CKSubscription.ID, Void>) =
                try await database.modifySubscriptions(saving: [subscription], deleting: [id])
        let query = CKQuerySubscription(
            recordType: "T", predicate: NSPredicate(value: true), options: [.firesOnRecordCreation, .firesOnce])
        let _ = CKQuerySubscription(recordType: "T", predicate: NSPredicate(value: true), subscriptionID: "s")
        query.zoneID = .default
        let info = CKSubscription.NotificationInfo()
        info.alertBody = ""
        info.shouldSendContentAvailable = true
        query.notificationInfo = info
        let _ = CKSubscription.NotificationInfo(alertBody: "a", desiredKeys: ["b"], shouldBadge: true, category: "c")
        let _: [CKSubscription] = [
            query, CKRecordZoneSubscription(zoneID: .default, subscriptionID: "s"),
            CKDatabaseSubscription(subscriptionID: "s"),
        ]
        let _: CKNotification? = CKNotification(fromRemoteNotificationDictionary: ["ck": 1])
    }

    static func share(_ share: CKShare, _ participant: CKShare.Participant) {
        let _: CKRecord = share
        share.publicPermission = .readOnly
        share.addParticipant(participant)
        share.removeParticipant(participant)
        participant.permission = .readWrite
        participant.role = .privateUser
        let _: (CKShare.Participant.AcceptanceStatus, CKUserIdentity) = (
            participant.acceptanceStatus, participant.userIdentity
        )
        share[CKShare.SystemFieldKey.title] = "title"
        let _: [CKUserIdentity.LookupInfo] = [
            .init(emailAddress: "a"), .init(phoneNumber: "1"), .init(userRecordID: CKRecord.ID(recordName: "u")),
        ]
    }
}
