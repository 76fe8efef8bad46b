// The forms with completion handlers of what `CKDatabase+Zones.swift` and `CKDatabase+Changes.swift` have.
extension CKDatabase {
    /// Fetches a zone.
    @preconcurrency
    public func fetch(
        withRecordZoneID recordZoneID: CKRecordZone.ID,
        completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.recordZone(for: recordZoneID) }) {
            completionHandler(try? $0.get(), $0.failure)
        }
    }

    /// Fetches zones by their IDs.
    @preconcurrency
    public func fetch(
        withRecordZoneIDs recordZoneIDs: [CKRecordZone.ID],
        completionHandler:
            @escaping @Sendable (Result<[CKRecordZone.ID: Result<CKRecordZone, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete({ try await self.recordZones(for: recordZoneIDs) }, completionHandler)
    }

    /// Fetches all zones of the database.
    @preconcurrency
    public func fetchAllRecordZones(completionHandler: @escaping @Sendable ([CKRecordZone]?, (any Error)?) -> Void) {
        Callbacks.complete({ try await self.allRecordZones() }) { completionHandler(try? $0.get(), $0.failure) }
    }

    /// Makes a zone; one that is there stays as it is.
    @preconcurrency
    public func save(
        _ zone: CKRecordZone, completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.save(zone) }) { completionHandler(try? $0.get(), $0.failure) }
    }

    /// Deletes a zone with all that is in it.
    @preconcurrency
    public func delete(
        withRecordZoneID zoneID: CKRecordZone.ID,
        completionHandler: @escaping @Sendable (CKRecordZone.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.deleteRecordZone(withID: zoneID) }) {
            completionHandler(try? $0.get(), $0.failure)
        }
    }

    /// Makes and deletes zones.
    @preconcurrency
    public func modifyRecordZones(
        saving recordZonesToSave: [CKRecordZone], deleting recordZoneIDsToDelete: [CKRecordZone.ID],
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        saveResults: [CKRecordZone.ID: Result<CKRecordZone, any Error>],
                        deleteResults: [CKRecordZone.ID: Result<Void, any Error>]
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(
            { try await self.modifyRecordZones(saving: recordZonesToSave, deleting: recordZoneIDsToDelete) },
            completionHandler)
    }

    /// Fetches the zones that changed or went since a token, one page of them.
    @preconcurrency
    public func fetchDatabaseChanges(
        since changeToken: CKServerChangeToken?, resultsLimit: Int? = nil,
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        modifications: [DatabaseChange.Modification], deletions: [DatabaseChange.Deletion],
                        changeToken: CKServerChangeToken, moreComing: Bool
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(
            { try await self.databaseChanges(since: changeToken, resultsLimit: resultsLimit) }, completionHandler)
    }

    /// Fetches the records of a zone that changed or went since a token, one page of them.
    @preconcurrency
    public func fetchRecordZoneChanges(
        inZoneWith zoneID: CKRecordZone.ID, since changeToken: CKServerChangeToken?,
        desiredKeys: [CKRecord.FieldKey]? = nil, resultsLimit: Int? = nil,
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        modificationResultsByID: [CKRecord.ID: Result<RecordZoneChange.Modification, any Error>],
                        deletions: [RecordZoneChange.Deletion], changeToken: CKServerChangeToken, moreComing: Bool
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(
            {
                try await self.recordZoneChanges(
                    inZoneWith: zoneID, since: changeToken, desiredKeys: desiredKeys, resultsLimit: resultsLimit)
            }, completionHandler)
    }
}
