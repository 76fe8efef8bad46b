import Foundation

/// Fetches zones by their IDs, or all of a database.
open class CKFetchRecordZonesOperation: CKDatabaseOperation, @unchecked Sendable {
    /// The zones to fetch; nil for all.
    @CKGuarded public var recordZoneIDs: [CKRecordZone.ID]? = nil
    /// Called for each zone.
    @preconcurrency @CKGuarded
    public var perRecordZoneResultBlock: (@Sendable (CKRecordZone.ID, Result<CKRecordZone, any Error>) -> Void)? = nil
    /// Called once, at the end. Zones that are not there are no failure of the operation.
    @preconcurrency @CKGuarded
    public var fetchRecordZonesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end, with `partialFailure` where zones failed; the older form of
    /// `fetchRecordZonesResultBlock`.
    @preconcurrency @CKGuarded
    public var fetchRecordZonesCompletionBlock: (@Sendable ([CKRecordZone.ID: CKRecordZone]?, (any Error)?) -> Void)? =
        nil

    /// An operation that fetches these zones.
    public convenience init(recordZoneIDs: [CKRecordZone.ID]) {
        self.init()
        self.recordZoneIDs = recordZoneIDs
    }

    /// An operation that fetches all zones of the database.
    public class func fetchAllRecordZonesOperation() -> Self {
        guard let operation = CKFetchRecordZonesOperation() as? Self else {
            preconditionFailure("a subclass of CKFetchRecordZonesOperation has to make this operation itself")
        }
        return operation
    }

    override func execute() async {
        let result = await outcome {
            () async throws(CKError) -> [(CKRecordZone.ID, Result<CKRecordZone, any Error>)] in
            try checkCancellation()
            if let recordZoneIDs { return try await service.zones(recordZoneIDs) }
            return try await service.allZones().map { ($0.zoneID, .success($0)) }
        }
        await Callbacks.run { [self] in
            tell(
                result, each: perRecordZoneResultBlock, end: fetchRecordZonesResultBlock,
                olderEnd: fetchRecordZonesCompletionBlock)
        }
    }
}

/// Makes and deletes zones of the private database. A zone goes with all that is in it.
open class CKModifyRecordZonesOperation: CKDatabaseOperation, @unchecked Sendable {
    /// The zones to make; one that is there stays as it is.
    @CKGuarded public var recordZonesToSave: [CKRecordZone]? = nil
    /// The zones to delete.
    @CKGuarded public var recordZoneIDsToDelete: [CKRecordZone.ID]? = nil
    /// Called for each zone to save.
    @preconcurrency @CKGuarded
    public var perRecordZoneSaveBlock: (@Sendable (CKRecordZone.ID, Result<CKRecordZone, any Error>) -> Void)? = nil
    /// Called for each zone to delete.
    @preconcurrency @CKGuarded
    public var perRecordZoneDeleteBlock: (@Sendable (CKRecordZone.ID, Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end. Zones that failed are no failure of the operation.
    @preconcurrency @CKGuarded
    public var modifyRecordZonesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end, with `partialFailure` where zones failed; the older form of
    /// `modifyRecordZonesResultBlock`.
    @preconcurrency @CKGuarded
    public var modifyRecordZonesCompletionBlock:
        (@Sendable ([CKRecordZone]?, [CKRecordZone.ID]?, (any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that saves and deletes.
    public convenience init(recordZonesToSave: [CKRecordZone]? = nil, recordZoneIDsToDelete: [CKRecordZone.ID]? = nil) {
        self.init()
        self.recordZonesToSave = recordZonesToSave
        self.recordZoneIDsToDelete = recordZoneIDsToDelete
    }

    override func execute() async {
        let result = await outcome { () async throws(CKError) -> [ModifyZoneResult] in
            try checkCancellation()
            return try await service.modifyZones(
                saving: recordZonesToSave ?? [], deleting: recordZoneIDsToDelete ?? [])
        }
        await Callbacks.run { [self] in
            tell(
                result, saves: perRecordZoneSaveBlock, deletes: perRecordZoneDeleteBlock,
                end: modifyRecordZonesResultBlock, olderEnd: modifyRecordZonesCompletionBlock)
        }
    }
}
