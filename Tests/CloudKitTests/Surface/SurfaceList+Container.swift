extension SurfaceList {
    static let container = """
        = CKContainer M class
        M class func default() -> CKContainer
        M init(identifier: String)
        M var containerIdentifier: String? { get }
        M var publicCloudDatabase: CKDatabase { get }
        M var privateCloudDatabase: CKDatabase { get }
        M var sharedCloudDatabase: CKDatabase { get }
        S func database(with: CKDatabase.Scope) -> CKDatabase
        M func accountStatus() async throws -> CKAccountStatus
        M func accountStatus(completionHandler: (CKAccountStatus, Error?) -> Void)
        M func userRecordID() async throws -> CKRecord.ID
        M func fetchUserRecordID(completionHandler: (CKRecord.ID?, Error?) -> Void)
        S func shareMetadata(for: URL) async throws -> CKShare.Metadata
        S func fetchShareMetadata(with: URL, completionHandler: (CKShare.Metadata?, Error?) -> Void)
        S func shareMetadatas(for: [URL]) async throws -> [URL: Result<CKShare.Metadata, Error>]
        S func fetchShareMetadatas(for: [URL], completionHandler: (Result<[URL: Result<CKShare.Metadata, Error>], Error>) -> Void)
        S func accept(_: CKShare.Metadata) async throws -> CKShare
        S func accept(_: CKShare.Metadata, completionHandler: (CKShare?, Error?) -> Void)
        S func accept(_: [CKShare.Metadata]) async throws -> [CKShare.Metadata: Result<CKShare, Error>]
        S func accept(_: [CKShare.Metadata], completionHandler: (Result<[CKShare.Metadata: Result<CKShare, Error>], Error>) -> Void)
        S func shareParticipant(forEmailAddress: String) async throws -> CKShare.Participant
        S func shareParticipant(forPhoneNumber: String) async throws -> CKShare.Participant
        S func shareParticipant(forUserRecordID: CKRecord.ID) async throws -> CKShare.Participant
        S func fetchShareParticipant(withEmailAddress: String, completionHandler: (CKShare.Participant?, Error?) -> Void)
        S func fetchShareParticipant(withPhoneNumber: String, completionHandler: (CKShare.Participant?, Error?) -> Void)
        S func fetchShareParticipant(withUserRecordID: CKRecord.ID, completionHandler: (CKShare.Participant?, Error?) -> Void)
        S func shareParticipants(forEmailAddresses: [String]) async throws -> [String: Result<CKShare.Participant, Error>]
        S func shareParticipants(forPhoneNumbers: [String]) async throws -> [String: Result<CKShare.Participant, Error>]
        S func shareParticipants(forUserRecordIDs: [CKRecord.ID]) async throws -> [CKRecord.ID: Result<CKShare.Participant, Error>]
        S func allLongLivedOperationIDs() async throws -> [CKOperation.ID]
        S func fetchAllLongLivedOperationIDs(completionHandler: ([CKOperation.ID]?, Error?) -> Void)
        S func longLivedOperation(for: CKOperation.ID) async throws -> CKOperation?
        S func fetchLongLivedOperation(withID: CKOperation.ID, completionHandler: (CKOperation?, Error?) -> Void)
        S func userIdentity(forEmailAddress: String) async throws -> CKUserIdentity?
        S func userIdentity(forPhoneNumber: String) async throws -> CKUserIdentity?
        S func userIdentity(forUserRecordID: CKRecord.ID) async throws -> CKUserIdentity?
        S func userIdentities(forEmailAddresses: [String]) async throws -> [String: CKUserIdentity]
        S func userIdentities(forPhoneNumbers: [String]) async throws -> [String: CKUserIdentity]
        S func userIdentities(forUserRecordIDs: [CKRecord.ID]) async throws -> [CKRecord.ID: CKUserIdentity]
        S func allUserIdentitiesFromContacts() async throws -> [CKUserIdentity]
        S func discoverUserIdentity(withEmailAddress: String, completionHandler: (CKUserIdentity?, Error?) -> Void)
        S func discoverUserIdentity(withPhoneNumber: String, completionHandler: (CKUserIdentity?, Error?) -> Void)
        S func discoverUserIdentity(withUserRecordID: CKRecord.ID, completionHandler: (CKUserIdentity?, Error?) -> Void)
        S func discoverAllIdentities(completionHandler: ([CKUserIdentity]?, Error?) -> Void)
        S func applicationPermissionStatus(for: CKContainer.ApplicationPermissions) async throws -> CKContainer.ApplicationPermissionStatus
        S func requestApplicationPermission(_: CKContainer.ApplicationPermissions) async throws -> CKContainer.ApplicationPermissionStatus
        S func add(_: CKOperation)
        S func configuredWith<R>(configuration: CKOperation.Configuration? = _, group: CKOperationGroup? = _, body: (CKContainer) throws -> R) rethrows -> R
        S func configuredWith<R>(configuration: CKOperation.Configuration? = _, group: CKOperationGroup? = _, body: (CKContainer) async throws -> R) async rethrows -> R
        = CKAccountStatus M enum
        M case couldNotDetermine
        M case available
        M case restricted
        M case noAccount
        M case temporarilyUnavailable
        = *
        M let CKCurrentUserDefaultName: String
        S let CKRecordNameZoneWideShare: String
        = NSNotification.Name
        S static let CKAccountChanged: NSNotification.Name
        """

    static let database = """
        = CKDatabase M class
        M var databaseScope: CKDatabase.Scope { get }
        M func add(_: CKDatabaseOperation)
        S func configuredWith<R>(configuration: CKOperation.Configuration? = _, group: CKOperationGroup? = _, body: (CKDatabase) throws -> R) rethrows -> R
        S func configuredWith<R>(configuration: CKOperation.Configuration? = _, group: CKOperationGroup? = _, body: (CKDatabase) async throws -> R) async rethrows -> R
        M func records(matching: CKQuery, inZoneWith: CKRecordZone.ID? = _, desiredKeys: [CKRecord.FieldKey]? = _, resultsLimit: Int = _) async throws -> (matchResults: [(CKRecord.ID, Result<CKRecord, Error>)], queryCursor: CKQueryOperation.Cursor?)
        M func records(continuingMatchFrom: CKQueryOperation.Cursor, desiredKeys: [CKRecord.FieldKey]? = _, resultsLimit: Int = _) async throws -> (matchResults: [(CKRecord.ID, Result<CKRecord, Error>)], queryCursor: CKQueryOperation.Cursor?)
        M func records(for: [CKRecord.ID], desiredKeys: [CKRecord.FieldKey]? = _) async throws -> [CKRecord.ID: Result<CKRecord, Error>]
        M func record(for: CKRecord.ID) async throws -> CKRecord
        M func save(_: CKRecord) async throws -> CKRecord
        M func save(_: CKRecordZone) async throws -> CKRecordZone
        M func save(_: CKSubscription) async throws -> CKSubscription
        M func deleteRecord(withID: CKRecord.ID) async throws -> CKRecord.ID
        M func deleteRecordZone(withID: CKRecordZone.ID) async throws -> CKRecordZone.ID
        M func deleteSubscription(withID: CKSubscription.ID) async throws -> CKSubscription.ID
        M func modifyRecords(saving: [CKRecord], deleting: [CKRecord.ID], savePolicy: CKModifyRecordsOperation.RecordSavePolicy = _, atomically: Bool = _) async throws -> (saveResults: [CKRecord.ID: Result<CKRecord, Error>], deleteResults: [CKRecord.ID: Result<Void, Error>])
        S func recordZone(for: CKRecordZone.ID) async throws -> CKRecordZone
        S func recordZones(for: [CKRecordZone.ID]) async throws -> [CKRecordZone.ID: Result<CKRecordZone, Error>]
        S func allRecordZones() async throws -> [CKRecordZone]
        S func modifyRecordZones(saving: [CKRecordZone], deleting: [CKRecordZone.ID]) async throws -> (saveResults: [CKRecordZone.ID: Result<CKRecordZone, Error>], deleteResults: [CKRecordZone.ID: Result<Void, Error>])
        S func recordZoneChanges(inZoneWith: CKRecordZone.ID, since: CKServerChangeToken?, desiredKeys: [CKRecord.FieldKey]? = _, resultsLimit: Int? = _) async throws -> (modificationResultsByID: [CKRecord.ID: Result<CKDatabase.RecordZoneChange.Modification, Error>], deletions: [CKDatabase.RecordZoneChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool)
        S func databaseChanges(since: CKServerChangeToken?, resultsLimit: Int? = _) async throws -> (modifications: [CKDatabase.DatabaseChange.Modification], deletions: [CKDatabase.DatabaseChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool)
        S func subscription(for: CKSubscription.ID) async throws -> CKSubscription
        S func subscriptions(for: [CKSubscription.ID]) async throws -> [CKSubscription.ID: Result<CKSubscription, Error>]
        S func allSubscriptions() async throws -> [CKSubscription]
        S func modifySubscriptions(saving: [CKSubscription], deleting: [CKSubscription.ID]) async throws -> (saveResults: [CKSubscription.ID: Result<CKSubscription, Error>], deleteResults: [CKSubscription.ID: Result<Void, Error>])
        M func perform(_: CKQuery, inZoneWith: CKRecordZone.ID?, completionHandler: ([CKRecord]?, Error?) -> Void)
        M func save(_: CKRecord, completionHandler: (CKRecord?, Error?) -> Void)
        M func save(_: CKRecordZone, completionHandler: (CKRecordZone?, Error?) -> Void)
        M func save(_: CKSubscription, completionHandler: (CKSubscription?, Error?) -> Void)
        M func fetch(withRecordID: CKRecord.ID, completionHandler: (CKRecord?, Error?) -> Void)
        M func delete(withRecordID: CKRecord.ID, completionHandler: (CKRecord.ID?, Error?) -> Void)
        M func delete(withRecordZoneID: CKRecordZone.ID, completionHandler: (CKRecordZone.ID?, Error?) -> Void)
        S func fetch(withQuery: CKQuery, inZoneWith: CKRecordZone.ID? = _, desiredKeys: [CKRecord.FieldKey]? = _, resultsLimit: Int = _, completionHandler: (Result<(matchResults: [(CKRecord.ID, Result<CKRecord, Error>)], queryCursor: CKQueryOperation.Cursor?), Error>) -> Void)
        S func fetch(withCursor: CKQueryOperation.Cursor, desiredKeys: [CKRecord.FieldKey]? = _, resultsLimit: Int = _, completionHandler: (Result<(matchResults: [(CKRecord.ID, Result<CKRecord, Error>)], queryCursor: CKQueryOperation.Cursor?), Error>) -> Void)
        S func fetch(withRecordIDs: [CKRecord.ID], desiredKeys: [CKRecord.FieldKey]? = _, completionHandler: (Result<[CKRecord.ID: Result<CKRecord, Error>], Error>) -> Void)
        S func fetch(withRecordZoneID: CKRecordZone.ID, completionHandler: (CKRecordZone?, Error?) -> Void)
        S func fetch(withRecordZoneIDs: [CKRecordZone.ID], completionHandler: (Result<[CKRecordZone.ID: Result<CKRecordZone, Error>], Error>) -> Void)
        S func fetchAllRecordZones(completionHandler: ([CKRecordZone]?, Error?) -> Void)
        S func fetch(withSubscriptionID: CKSubscription.ID, completionHandler: (CKSubscription?, Error?) -> Void)
        S func fetch(withSubscriptionIDs: [CKSubscription.ID], completionHandler: (Result<[CKSubscription.ID: Result<CKSubscription, Error>], Error>) -> Void)
        S func fetchAllSubscriptions(completionHandler: ([CKSubscription]?, Error?) -> Void)
        S func delete(withSubscriptionID: CKSubscription.ID, completionHandler: (String?, Error?) -> Void)
        S func modifyRecords(saving: [CKRecord], deleting: [CKRecord.ID], savePolicy: CKModifyRecordsOperation.RecordSavePolicy = _, atomically: Bool = _, completionHandler: (Result<(saveResults: [CKRecord.ID: Result<CKRecord, Error>], deleteResults: [CKRecord.ID: Result<Void, Error>]), Error>) -> Void)
        S func modifyRecordZones(saving: [CKRecordZone], deleting: [CKRecordZone.ID], completionHandler: (Result<(saveResults: [CKRecordZone.ID: Result<CKRecordZone, Error>], deleteResults: [CKRecordZone.ID: Result<Void, Error>]), Error>) -> Void)
        S func modifySubscriptions(saving: [CKSubscription], deleting: [CKSubscription.ID], completionHandler: (Result<(saveResults: [CKSubscription.ID: Result<CKSubscription, Error>], deleteResults: [CKSubscription.ID: Result<Void, Error>]), Error>) -> Void)
        S func fetchDatabaseChanges(since: CKServerChangeToken?, resultsLimit: Int? = _, completionHandler: (Result<(modifications: [CKDatabase.DatabaseChange.Modification], deletions: [CKDatabase.DatabaseChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool), Error>) -> Void)
        S func fetchRecordZoneChanges(inZoneWith: CKRecordZone.ID, since: CKServerChangeToken?, desiredKeys: [CKRecord.FieldKey]? = _, resultsLimit: Int? = _, completionHandler: (Result<(modificationResultsByID: [CKRecord.ID: Result<CKDatabase.RecordZoneChange.Modification, Error>], deletions: [CKDatabase.RecordZoneChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool), Error>) -> Void)
        = CKDatabase.Scope M enum
        M case public
        M case private
        M case shared
        = CKDatabase.DatabaseChange S enum
        = CKDatabase.DatabaseChange.Modification S struct
        S var zoneID: CKRecordZone.ID { get }
        = CKDatabase.DatabaseChange.Deletion S struct
        S var zoneID: CKRecordZone.ID { get }
        S var reason: CKDatabase.DatabaseChange.Deletion.Reason { get }
        = CKDatabase.DatabaseChange.Deletion.Reason S enum
        S case deleted
        S case purged
        S case encryptedDataReset
        = CKDatabase.RecordZoneChange S enum
        = CKDatabase.RecordZoneChange.Modification S struct
        S var record: CKRecord { get }
        = CKDatabase.RecordZoneChange.Deletion S struct
        S var recordID: CKRecord.ID { get }
        S var recordType: CKRecord.RecordType { get }
        """
}
