// The forms with completion handlers of what `CKDatabase+Records.swift` has.
extension CKDatabase {
    /// The records that match a query, as many as the server gives at once; the older form of `fetch(withQuery:...)`.
    /// - Parameters:
    ///   - query: what to look for.
    ///   - zoneID: nil for every zone of the private database.
    ///   - completionHandler: gets the records, or why there are none.
    @preconcurrency
    public func perform(
        _ query: CKQuery, inZoneWith zoneID: CKRecordZone.ID?,
        completionHandler: @escaping @Sendable ([CKRecord]?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.perform(query, inZoneWith: zoneID) }) {
            completionHandler(try? $0.get(), $0.failure)
        }
    }

    /// The records that match a query, a page of them; the older form of `records(matching:inZoneWith:...)`.
    public func perform(_ query: CKQuery, inZoneWith zoneID: CKRecordZone.ID?) async throws -> [CKRecord] {
        try await records(matching: query, inZoneWith: zoneID).matchResults.map { try $0.1.get() }
    }

    /// The records that match a query.
    @preconcurrency
    public func fetch(
        withQuery query: CKQuery, inZoneWith zoneID: CKRecordZone.ID? = nil, desiredKeys: [CKRecord.FieldKey]? = nil,
        resultsLimit: Int = CKQueryOperation.maximumResults,
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)],
                        queryCursor: CKQueryOperation.Cursor?
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(
            {
                try await self.records(
                    matching: query, inZoneWith: zoneID, desiredKeys: desiredKeys, resultsLimit: resultsLimit)
            }, completionHandler)
    }

    /// The records that match the query of a cursor, from where it is on.
    @preconcurrency
    public func fetch(
        withCursor queryCursor: CKQueryOperation.Cursor, desiredKeys: [CKRecord.FieldKey]? = nil,
        resultsLimit: Int = CKQueryOperation.maximumResults,
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)],
                        queryCursor: CKQueryOperation.Cursor?
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(
            {
                try await self.records(
                    continuingMatchFrom: queryCursor, desiredKeys: desiredKeys, resultsLimit: resultsLimit)
            }, completionHandler)
    }

    /// Fetches a record.
    @preconcurrency
    public func fetch(
        withRecordID recordID: CKRecord.ID, completionHandler: @escaping @Sendable (CKRecord?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.record(for: recordID) }) { completionHandler(try? $0.get(), $0.failure) }
    }

    /// Fetches records by their IDs.
    @preconcurrency
    public func fetch(
        withRecordIDs recordIDs: [CKRecord.ID], desiredKeys: [CKRecord.FieldKey]? = nil,
        completionHandler: @escaping @Sendable (Result<[CKRecord.ID: Result<CKRecord, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete({ try await self.records(for: recordIDs, desiredKeys: desiredKeys) }, completionHandler)
    }

    /// Saves a record.
    @preconcurrency
    public func save(_ record: CKRecord, completionHandler: @escaping @Sendable (CKRecord?, (any Error)?) -> Void) {
        Callbacks.complete({ try await self.save(record) }) { completionHandler(try? $0.get(), $0.failure) }
    }

    /// Deletes a record, whatever its version.
    @preconcurrency
    public func delete(
        withRecordID recordID: CKRecord.ID,
        completionHandler: @escaping @Sendable (CKRecord.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.deleteRecord(withID: recordID) }) {
            completionHandler(try? $0.get(), $0.failure)
        }
    }

    /// Saves and deletes records.
    @preconcurrency
    public func modifyRecords(
        saving recordsToSave: [CKRecord], deleting recordIDsToDelete: [CKRecord.ID],
        savePolicy: CKModifyRecordsOperation.RecordSavePolicy = .ifServerRecordUnchanged, atomically: Bool = true,
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        saveResults: [CKRecord.ID: Result<CKRecord, any Error>],
                        deleteResults: [CKRecord.ID: Result<Void, any Error>]
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(
            {
                try await self.modifyRecords(
                    saving: recordsToSave, deleting: recordIDsToDelete, savePolicy: savePolicy, atomically: atomically)
            }, completionHandler)
    }
}
