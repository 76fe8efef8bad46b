extension SurfaceList {
    static let operations = """
        = CKOperation M class
        S var configuration: CKOperation.Configuration! { get set }
        S var group: CKOperationGroup? { get set }
        S var operationID: CKOperation.ID { get }
        S var longLivedOperationWasPersistedBlock: (() -> Void)? { get set }
        S typealias ID = String
        = CKOperation.Configuration S class
        S init()
        S var container: CKContainer? { get set }
        S var qualityOfService: QualityOfService { get set }
        S var allowsCellularAccess: Bool { get set }
        S var timeoutIntervalForRequest: TimeInterval { get set }
        S var timeoutIntervalForResource: TimeInterval { get set }
        S var isLongLived: Bool { get set }
        = CKDatabaseOperation M class
        M var database: CKDatabase? { get set }
        = CKOperationGroup M class
        M var name: String? { get set }
        S init(coder: NSCoder)
        S var quantity: Int { get set }
        S var operationGroupID: String { get }
        = CKQueryOperation M class
        M init()
        M init(query: CKQuery)
        M init(cursor: CKQueryOperation.Cursor)
        M var query: CKQuery? { get set }
        M var cursor: CKQueryOperation.Cursor? { get set }
        M var zoneID: CKRecordZone.ID? { get set }
        M var resultsLimit: Int { get set }
        M var desiredKeys: [CKRecord.FieldKey]? { get set }
        M var recordMatchedBlock: ((CKRecord.ID, Result<CKRecord, Error>) -> Void)? { get set }
        M var queryResultBlock: ((Result<CKQueryOperation.Cursor?, Error>) -> Void)? { get set }
        M var recordFetchedBlock: ((CKRecord) -> Void)? { get set }
        M var queryCompletionBlock: ((CKQueryOperation.Cursor?, Error?) -> Void)? { get set }
        M class let maximumResults: Int
        = CKQueryOperation.Cursor M class
        = CKModifyRecordsOperation M class
        M init()
        M init(recordsToSave: [CKRecord]? = _, recordIDsToDelete: [CKRecord.ID]? = _)
        M var recordsToSave: [CKRecord]? { get set }
        M var recordIDsToDelete: [CKRecord.ID]? { get set }
        M var savePolicy: CKModifyRecordsOperation.RecordSavePolicy { get set }
        M var isAtomic: Bool { get set }
        M var clientChangeTokenData: Data? { get set }
        M var perRecordProgressBlock: ((CKRecord, Double) -> Void)? { get set }
        M var perRecordSaveBlock: ((CKRecord.ID, Result<CKRecord, Error>) -> Void)? { get set }
        M var perRecordDeleteBlock: ((CKRecord.ID, Result<Void, Error>) -> Void)? { get set }
        M var modifyRecordsResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        M var perRecordCompletionBlock: ((CKRecord, Error?) -> Void)? { get set }
        M var modifyRecordsCompletionBlock: (([CKRecord]?, [CKRecord.ID]?, Error?) -> Void)? { get set }
        = CKModifyRecordsOperation.RecordSavePolicy M enum
        M case ifServerRecordUnchanged
        M case changedKeys
        M case allKeys
        = CKFetchRecordsOperation M class
        M init()
        M init(recordIDs: [CKRecord.ID])
        M var recordIDs: [CKRecord.ID]? { get set }
        M var desiredKeys: [CKRecord.FieldKey]? { get set }
        M var perRecordProgressBlock: ((CKRecord.ID, Double) -> Void)? { get set }
        M var perRecordResultBlock: ((CKRecord.ID, Result<CKRecord, Error>) -> Void)? { get set }
        M var fetchRecordsResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        M class func fetchCurrentUserRecordOperation() -> Self
        M var perRecordCompletionBlock: ((CKRecord?, CKRecord.ID?, Error?) -> Void)? { get set }
        M var fetchRecordsCompletionBlock: (([CKRecord.ID: CKRecord]?, Error?) -> Void)? { get set }
        = CKModifyRecordZonesOperation S class
        S init(recordZonesToSave: [CKRecordZone]? = _, recordZoneIDsToDelete: [CKRecordZone.ID]? = _)
        S var recordZonesToSave: [CKRecordZone]? { get set }
        S var recordZoneIDsToDelete: [CKRecordZone.ID]? { get set }
        S var perRecordZoneSaveBlock: ((CKRecordZone.ID, Result<CKRecordZone, Error>) -> Void)? { get set }
        S var perRecordZoneDeleteBlock: ((CKRecordZone.ID, Result<Void, Error>) -> Void)? { get set }
        S var modifyRecordZonesResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        = CKFetchRecordZonesOperation S class
        S init(recordZoneIDs: [CKRecordZone.ID])
        S var recordZoneIDs: [CKRecordZone.ID]? { get set }
        S var perRecordZoneResultBlock: ((CKRecordZone.ID, Result<CKRecordZone, Error>) -> Void)? { get set }
        S var fetchRecordZonesResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S class func fetchAllRecordZonesOperation() -> Self
        = CKModifySubscriptionsOperation S class
        S init(subscriptionsToSave: [CKSubscription]? = _, subscriptionIDsToDelete: [CKSubscription.ID]? = _)
        S var subscriptionsToSave: [CKSubscription]? { get set }
        S var subscriptionIDsToDelete: [CKSubscription.ID]? { get set }
        S var perSubscriptionSaveBlock: ((CKSubscription.ID, Result<CKSubscription, Error>) -> Void)? { get set }
        S var perSubscriptionDeleteBlock: ((CKSubscription.ID, Result<Void, Error>) -> Void)? { get set }
        S var modifySubscriptionsResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        = CKFetchSubscriptionsOperation S class
        S init(subscriptionIDs: [CKSubscription.ID])
        S var subscriptionIDs: [CKSubscription.ID]? { get set }
        S var perSubscriptionResultBlock: ((CKSubscription.ID, Result<CKSubscription, Error>) -> Void)? { get set }
        S var fetchSubscriptionsResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S class func fetchAllSubscriptionsOperation() -> Self
        = CKFetchShareMetadataOperation S class
        S init(shareURLs: [URL])
        S var shareURLs: [URL]? { get set }
        S var shouldFetchRootRecord: Bool { get set }
        S var rootRecordDesiredKeys: [CKRecord.FieldKey]? { get set }
        S var perShareMetadataResultBlock: ((URL, Result<CKShare.Metadata, Error>) -> Void)? { get set }
        S var fetchShareMetadataResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S var perShareMetadataBlock: ((URL, CKShare.Metadata?, Error?) -> Void)? { get set }
        S var fetchShareMetadataCompletionBlock: ((Error?) -> Void)? { get set }
        = CKAcceptSharesOperation S class
        S init(shareMetadatas: [CKShare.Metadata])
        S var shareMetadatas: [CKShare.Metadata]? { get set }
        S var perShareResultBlock: ((CKShare.Metadata, Result<CKShare, Error>) -> Void)? { get set }
        S var acceptSharesResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S var perShareCompletionBlock: ((CKShare.Metadata, CKShare?, Error?) -> Void)? { get set }
        S var acceptSharesCompletionBlock: ((Error?) -> Void)? { get set }
        = CKFetchShareParticipantsOperation S class
        S init(userIdentityLookupInfos: [CKUserIdentity.LookupInfo])
        S var userIdentityLookupInfos: [CKUserIdentity.LookupInfo]? { get set }
        S var perShareParticipantResultBlock: ((CKUserIdentity.LookupInfo, Result<CKShare.Participant, Error>) -> Void)? { get set }
        S var fetchShareParticipantsResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S var shareParticipantFetchedBlock: ((CKShare.Participant) -> Void)? { get set }
        S var fetchShareParticipantsCompletionBlock: ((Error?) -> Void)? { get set }
        = CKDiscoverUserIdentitiesOperation S class
        S init(userIdentityLookupInfos: [CKUserIdentity.LookupInfo])
        S var userIdentityLookupInfos: [CKUserIdentity.LookupInfo] { get set }
        S var userIdentityDiscoveredBlock: ((CKUserIdentity, CKUserIdentity.LookupInfo) -> Void)? { get set }
        S var discoverUserIdentitiesResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S var discoverUserIdentitiesCompletionBlock: ((Error?) -> Void)? { get set }
        = CKDiscoverAllUserIdentitiesOperation S class
        S var userIdentityDiscoveredBlock: ((CKUserIdentity) -> Void)? { get set }
        S var discoverAllUserIdentitiesResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S var discoverAllUserIdentitiesCompletionBlock: ((Error?) -> Void)? { get set }
        = CKModifyBadgeOperation S class
        S init(badgeValue: Int)
        S var badgeValue: Int { get set }
        S var modifyBadgeCompletionBlock: ((Error?) -> Void)? { get set }
        = CKFetchNotificationChangesOperation S class
        S init(previousServerChangeToken: CKServerChangeToken?)
        S var previousServerChangeToken: CKServerChangeToken? { get set }
        S var resultsLimit: Int { get set }
        S var moreComing: Bool { get }
        S var notificationChangedBlock: ((CKNotification) -> Void)? { get set }
        S var fetchNotificationChangesCompletionBlock: ((CKServerChangeToken?, Error?) -> Void)? { get set }
        = CKMarkNotificationsReadOperation S class
        S init(notificationIDsToMarkRead: [CKNotification.ID])
        S var notificationIDs: [CKNotification.ID] { get set }
        S var markNotificationsReadCompletionBlock: (([CKNotification.ID]?, Error?) -> Void)? { get set }
        """

    /// Of Apple's, and not here: screens, and what Apple withdrew long ago. Kept, so that the table says so.
    static let absent = """
        = CKFetchWebAuthTokenOperation L class
        = CKFetchRecordChangesOperation L class
        = CKShareRequestAccessOperation L class
        = CKAllowedSharingOptions L class
        = CKSystemSharingUIObserver L class
        = CKShareTransferRepresentation L struct
        """

    static let changes = """
        = CKFetchRecordZoneChangesOperation S class
        S init(recordZoneIDs: [CKRecordZone.ID]? = _, configurationsByRecordZoneID: [CKRecordZone.ID: CKFetchRecordZoneChangesOperation.ZoneConfiguration]? = _)
        S var recordZoneIDs: [CKRecordZone.ID]? { get set }
        S var configurationsByRecordZoneID: [CKRecordZone.ID: CKFetchRecordZoneChangesOperation.ZoneConfiguration]? { get set }
        S var fetchAllChanges: Bool { get set }
        S var recordWasChangedBlock: ((CKRecord.ID, Result<CKRecord, Error>) -> Void)? { get set }
        S var recordWithIDWasDeletedBlock: ((CKRecord.ID, CKRecord.RecordType) -> Void)? { get set }
        S var recordZoneChangeTokensUpdatedBlock: ((CKRecordZone.ID, CKServerChangeToken?, Data?) -> Void)? { get set }
        S var recordZoneFetchResultBlock: ((CKRecordZone.ID, Result<(serverChangeToken: CKServerChangeToken, clientChangeTokenData: Data?, moreComing: Bool), Error>) -> Void)? { get set }
        S var fetchRecordZoneChangesResultBlock: ((Result<Void, Error>) -> Void)? { get set }
        S var recordChangedBlock: ((CKRecord) -> Void)? { get set }
        S var recordZoneFetchCompletionBlock: ((CKRecordZone.ID, CKServerChangeToken?, Data?, Bool, Error?) -> Void)? { get set }
        S var fetchRecordZoneChangesCompletionBlock: ((Error?) -> Void)? { get set }
        S var optionsByRecordZoneID: [CKRecordZone.ID: CKFetchRecordZoneChangesOperation.ZoneOptions]? { get set }
        = CKFetchRecordZoneChangesOperation.ZoneOptions S class
        S var previousServerChangeToken: CKServerChangeToken? { get set }
        S var resultsLimit: Int { get set }
        S var desiredKeys: [CKRecord.FieldKey]? { get set }
        = CKFetchRecordZoneChangesOperation.ZoneConfiguration S class
        S init(previousServerChangeToken: CKServerChangeToken? = _, resultsLimit: Int? = _, desiredKeys: [CKRecord.FieldKey]? = _)
        S var previousServerChangeToken: CKServerChangeToken? { get set }
        S var resultsLimit: Int { get set }
        S var desiredKeys: [CKRecord.FieldKey]? { get set }
        = CKFetchDatabaseChangesOperation S class
        S init(previousServerChangeToken: CKServerChangeToken?)
        S var previousServerChangeToken: CKServerChangeToken? { get set }
        S var fetchAllChanges: Bool { get set }
        S var resultsLimit: Int { get set }
        S var recordZoneWithIDChangedBlock: ((CKRecordZone.ID) -> Void)? { get set }
        S var recordZoneWithIDWasDeletedBlock: ((CKRecordZone.ID) -> Void)? { get set }
        S var recordZoneWithIDWasPurgedBlock: ((CKRecordZone.ID) -> Void)? { get set }
        S var recordZoneWithIDWasDeletedDueToUserEncryptedDataResetBlock: ((CKRecordZone.ID) -> Void)? { get set }
        S var changeTokenUpdatedBlock: ((CKServerChangeToken) -> Void)? { get set }
        S var fetchDatabaseChangesResultBlock: ((Result<(serverChangeToken: CKServerChangeToken, moreComing: Bool), Error>) -> Void)? { get set }
        """
}
