extension SurfaceList {
    static let syncEngine = """
        = CKSyncEngine S class
        S init(_: CKSyncEngine.Configuration)
        S var database: CKDatabase { get }
        S var state: CKSyncEngine.State { get }
        S func fetchChanges(_: CKSyncEngine.FetchChangesOptions = _) async throws
        S func sendChanges(_: CKSyncEngine.SendChangesOptions = _) async throws
        S func cancelOperations() async
        = CKSyncEngine.Configuration S struct
        S init(database: CKDatabase, stateSerialization: CKSyncEngine.State.Serialization?, delegate: CKSyncEngineDelegate)
        S var database: CKDatabase
        S var stateSerialization: CKSyncEngine.State.Serialization?
        S var automaticallySync: Bool
        S var subscriptionID: CKSubscription.ID?
        = CKSyncEngineDelegate S protocol
        S func handleEvent(_: CKSyncEngine.Event, syncEngine: CKSyncEngine) async
        S func nextRecordZoneChangeBatch(_: CKSyncEngine.SendChangesContext, syncEngine: CKSyncEngine) async -> CKSyncEngine.RecordZoneChangeBatch?
        S func nextFetchChangesOptions(_: CKSyncEngine.FetchChangesContext, syncEngine: CKSyncEngine) async -> CKSyncEngine.FetchChangesOptions
        = CKSyncEngine.State S class
        S var pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange] { get }
        S var pendingRecordZoneChanges: [CKSyncEngine.PendingRecordZoneChange] { get }
        S var hasPendingUntrackedChanges: Bool
        S var zoneIDsWithUnfetchedServerChanges: [CKRecordZone.ID] { get }
        S func add(pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange])
        S func add(pendingRecordZoneChanges: [CKSyncEngine.PendingRecordZoneChange])
        S func remove(pendingDatabaseChanges: [CKSyncEngine.PendingDatabaseChange])
        S func remove(pendingRecordZoneChanges: [CKSyncEngine.PendingRecordZoneChange])
        = CKSyncEngine.State.Serialization S struct
        = CKSyncEngine.PendingDatabaseChange S enum
        S case saveZone(CKRecordZone)
        S case deleteZone(CKRecordZone.ID)
        = CKSyncEngine.PendingRecordZoneChange S enum
        S case saveRecord(CKRecord.ID)
        S case deleteRecord(CKRecord.ID)
        = CKSyncEngine.RecordZoneChangeBatch S struct
        S init?(pendingChanges: [CKSyncEngine.PendingRecordZoneChange], recordProvider: (CKRecord.ID) async -> CKRecord?) async
        S init(recordsToSave: [CKRecord] = _, recordIDsToDelete: [CKRecord.ID] = _, atomicByZone: Bool = _)
        S var recordsToSave: [CKRecord] { get }
        S var recordIDsToDelete: [CKRecord.ID] { get }
        S var atomicByZone: Bool
        = CKSyncEngine.SyncReason S enum
        S case scheduled
        S case manual
        = CKSyncEngine.FetchChangesContext S struct
        S var reason: CKSyncEngine.SyncReason { get }
        S var options: CKSyncEngine.FetchChangesOptions { get }
        = CKSyncEngine.FetchChangesOptions S struct
        S init(scope: CKSyncEngine.FetchChangesOptions.Scope = _, operationGroup: CKOperationGroup? = _)
        S var scope: CKSyncEngine.FetchChangesOptions.Scope
        S var prioritizedZoneIDs: [CKRecordZone.ID]
        S var operationGroup: CKOperationGroup?
        = CKSyncEngine.FetchChangesOptions.Scope S enum
        S case all
        S case allExcluding([CKRecordZone.ID])
        S case zoneIDs([CKRecordZone.ID])
        S func contains(_: CKRecordZone.ID) -> Bool
        = CKSyncEngine.SendChangesContext S struct
        S var reason: CKSyncEngine.SyncReason { get }
        S var options: CKSyncEngine.SendChangesOptions { get }
        = CKSyncEngine.SendChangesOptions S struct
        S init(scope: CKSyncEngine.SendChangesOptions.Scope = _, operationGroup: CKOperationGroup? = _)
        S var scope: CKSyncEngine.SendChangesOptions.Scope
        S var operationGroup: CKOperationGroup?
        = CKSyncEngine.SendChangesOptions.Scope S enum
        S case all
        S case allExcluding([CKRecordZone.ID])
        S case zoneIDs([CKRecordZone.ID])
        S case recordIDs([CKRecord.ID])
        S func contains(_: CKRecord.ID) -> Bool
        S func contains(_: CKSyncEngine.PendingRecordZoneChange) -> Bool
        S func contains(_: CKSyncEngine.PendingDatabaseChange) -> Bool
        = CKSyncEngine.Event S enum
        S case stateUpdate(CKSyncEngine.Event.StateUpdate)
        S case accountChange(CKSyncEngine.Event.AccountChange)
        S case fetchedDatabaseChanges(CKSyncEngine.Event.FetchedDatabaseChanges)
        S case fetchedRecordZoneChanges(CKSyncEngine.Event.FetchedRecordZoneChanges)
        S case sentDatabaseChanges(CKSyncEngine.Event.SentDatabaseChanges)
        S case sentRecordZoneChanges(CKSyncEngine.Event.SentRecordZoneChanges)
        S case willFetchChanges(CKSyncEngine.Event.WillFetchChanges)
        S case willFetchRecordZoneChanges(CKSyncEngine.Event.WillFetchRecordZoneChanges)
        S case didFetchRecordZoneChanges(CKSyncEngine.Event.DidFetchRecordZoneChanges)
        S case didFetchChanges(CKSyncEngine.Event.DidFetchChanges)
        S case willSendChanges(CKSyncEngine.Event.WillSendChanges)
        S case didSendChanges(CKSyncEngine.Event.DidSendChanges)
        = CKSyncEngine.Event.StateUpdate S struct
        S var stateSerialization: CKSyncEngine.State.Serialization { get }
        = CKSyncEngine.Event.AccountChange S struct
        S var changeType: CKSyncEngine.Event.AccountChange.ChangeType { get }
        = CKSyncEngine.Event.AccountChange.ChangeType S enum
        S case signIn(currentUser: CKRecord.ID)
        S case signOut(previousUser: CKRecord.ID)
        S case switchAccounts(previousUser: CKRecord.ID, currentUser: CKRecord.ID)
        = CKSyncEngine.Event.FetchedDatabaseChanges S struct
        S var modifications: [CKDatabase.DatabaseChange.Modification] { get }
        S var deletions: [CKDatabase.DatabaseChange.Deletion] { get }
        = CKSyncEngine.Event.FetchedRecordZoneChanges S struct
        S var modifications: [CKDatabase.RecordZoneChange.Modification] { get }
        S var deletions: [CKDatabase.RecordZoneChange.Deletion] { get }
        = CKSyncEngine.Event.SentDatabaseChanges S struct
        S var savedZones: [CKRecordZone] { get }
        S var failedZoneSaves: [CKSyncEngine.Event.SentDatabaseChanges.FailedZoneSave] { get }
        S var deletedZoneIDs: [CKRecordZone.ID] { get }
        S var failedZoneDeletes: [CKRecordZone.ID: CKError] { get }
        = CKSyncEngine.Event.SentRecordZoneChanges S struct
        S var savedRecords: [CKRecord] { get }
        S var failedRecordSaves: [CKSyncEngine.Event.SentRecordZoneChanges.FailedRecordSave] { get }
        S var deletedRecordIDs: [CKRecord.ID] { get }
        S var failedRecordDeletes: [CKRecord.ID: CKError] { get }
        = CKSyncEngine.Event.SentRecordZoneChanges.FailedRecordSave S struct
        S var record: CKRecord { get }
        S var error: CKError { get }
        = CKSyncEngine.Event.DidFetchRecordZoneChanges S struct
        S var zoneID: CKRecordZone.ID { get }
        S var error: CKError? { get }
        """
}
