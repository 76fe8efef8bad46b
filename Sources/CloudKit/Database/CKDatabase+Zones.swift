extension CKDatabase {
    /// A zone.
    /// - Throws: `zoneNotFound` if there is none.
    public func recordZone(for recordZoneID: CKRecordZone.ID) async throws -> CKRecordZone {
        guard let result = try await service.zones([recordZoneID]).first else { throw CKError.unreadable("zone") }
        return try result.1.get()
    }

    /// Zones by their IDs, each with its zone or error.
    public func recordZones(
        for ids: [CKRecordZone.ID]
    ) async throws -> [CKRecordZone.ID: Result<CKRecordZone, any Error>] {
        Dictionary(try await service.zones(ids)) { first, _ in first }
    }

    /// All zones of the database, the default one among them.
    public func allRecordZones() async throws -> [CKRecordZone] { try await service.allZones() }

    /// Makes a zone; one that is there stays as it is.
    @discardableResult
    public func save(_ zone: CKRecordZone) async throws -> CKRecordZone {
        try await service.modifyZones(saving: [zone], deleting: []).savedItem()
    }

    /// Deletes a zone with all that is in it; one that is not there is no error.
    @discardableResult
    public func deleteRecordZone(withID recordZoneID: CKRecordZone.ID) async throws -> CKRecordZone.ID {
        try await service.modifyZones(saving: [], deleting: [recordZoneID]).deletedID()
    }

    /// Makes and deletes zones.
    /// - Throws: where nothing was done; errors of single zones are in the results.
    @discardableResult
    public func modifyRecordZones(
        saving recordZonesToSave: [CKRecordZone], deleting recordZoneIDsToDelete: [CKRecordZone.ID]
    ) async throws -> (
        saveResults: [CKRecordZone.ID: Result<CKRecordZone, any Error>],
        deleteResults: [CKRecordZone.ID: Result<Void, any Error>]
    ) {
        try await service.modifyZones(saving: recordZonesToSave, deleting: recordZoneIDsToDelete).byID()
    }
}

// The same with completion handlers; those of `CKDatabase.swift`, too.
extension CKDatabase {
    /// Fetches a zone.
    @preconcurrency
    public func fetch(
        withRecordZoneID recordZoneID: CKRecordZone.ID,
        completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.recordZone(for: recordZoneID) }, completionHandler)
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
        Callbacks.complete({ try await self.allRecordZones() }, completionHandler)
    }

    /// Makes a zone; one that is there stays as it is.
    @preconcurrency
    public func save(
        _ zone: CKRecordZone, completionHandler: @escaping @Sendable (CKRecordZone?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.save(zone) }, completionHandler)
    }

    /// Deletes a zone with all that is in it.
    @preconcurrency
    public func delete(
        withRecordZoneID zoneID: CKRecordZone.ID,
        completionHandler: @escaping @Sendable (CKRecordZone.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.deleteRecordZone(withID: zoneID) }, completionHandler)
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
