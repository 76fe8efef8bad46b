extension CKDatabase {
    // MARK: Queries

    /// The records that match a query, sorted as it says.
    /// - Parameters:
    ///   - query: what to look for, and in which order.
    ///   - zoneID: nil for every zone of the private database.
    ///   - desiredKeys: the fields to fetch; nil for all.
    ///   - resultsLimit: the most records; usually as many as the server gives at once.
    /// - Returns: the records, and a cursor where there are more.
    public func records(
        matching query: CKQuery, inZoneWith zoneID: CKRecordZone.ID? = nil, desiredKeys: [CKRecord.FieldKey]? = nil,
        resultsLimit: Int = CKQueryOperation.maximumResults
    ) async throws -> (
        matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)], queryCursor: CKQueryOperation.Cursor?
    ) {
        guard let call = try service.call(query, in: zoneID) else { return ([], nil) }
        return try await records(call, desiredKeys, resultsLimit)
    }

    /// The records that match the query of a cursor, from where it is on.
    public func records(
        continuingMatchFrom queryCursor: CKQueryOperation.Cursor, desiredKeys: [CKRecord.FieldKey]? = nil,
        resultsLimit: Int = CKQueryOperation.maximumResults
    ) async throws -> (
        matchResults: [(CKRecord.ID, Result<CKRecord, any Error>)], queryCursor: CKQueryOperation.Cursor?
    ) {
        try await records(queryCursor.call, desiredKeys, resultsLimit)
    }

    private func records(
        _ call: QueryCall, _ desiredKeys: [String]?, _ limit: Int
    ) async throws -> ([(CKRecord.ID, Result<CKRecord, any Error>)], CKQueryOperation.Cursor?) {
        var found: [RecordResult] = []
        let next = try await service.query(call, desiredKeys: desiredKeys, limit: limit) { found += $0 }
        return (found, next.map { CKQueryCursor($0) })
    }

    // MARK: Single records

    /// A record.
    /// - Throws: `unknownItem` if there is none.
    public func record(for recordID: CKRecord.ID) async throws -> CKRecord { try await service.record(recordID) }

    /// Saves a record: the instance itself takes the server's state over, and is returned.
    /// - Throws: `serverRecordChanged` where the server has another version, with all three versions.
    @discardableResult
    public func save(_ record: CKRecord) async throws -> CKRecord {
        try await results(of: ModifyCall(saves: [record], deletes: [])).savedItem()
    }

    /// Deletes a record, whatever its version.
    @discardableResult
    public func deleteRecord(withID recordID: CKRecord.ID) async throws -> CKRecord.ID {
        try await results(of: ModifyCall(saves: [], deletes: [recordID])).deletedID()
    }

    // MARK: Several records

    /// Records by their IDs, each with its record or error.
    public func records(
        for ids: [CKRecord.ID], desiredKeys: [CKRecord.FieldKey]? = nil
    ) async throws -> [CKRecord.ID: Result<CKRecord, any Error>] {
        var found: [CKRecord.ID: Result<CKRecord, any Error>] = [:]
        try await service.fetch(ids, desiredKeys: desiredKeys) { results in
            for (id, result) in results { found[id] = result }
        }
        return found
    }

    /// Saves and deletes records, at most 400.
    /// - Parameters:
    ///   - recordsToSave: each instance takes the server's state over when it was saved.
    ///   - recordIDsToDelete: deleted whatever their version.
    ///   - savePolicy: what to do where the server has another version of a record.
    ///   - atomically: whether the records of each custom zone are saved and deleted wholly or not at all; elsewhere
    ///     each stands alone. At most 200 of one zone can go so, where CloudKit has 400: more fail with
    ///     `limitExceeded`.
    /// - Throws: where nothing was done; errors of single records are in the results.
    @discardableResult
    public func modifyRecords(
        saving recordsToSave: [CKRecord], deleting recordIDsToDelete: [CKRecord.ID],
        savePolicy: CKModifyRecordsOperation.RecordSavePolicy = .ifServerRecordUnchanged, atomically: Bool = true
    ) async throws -> (
        saveResults: [CKRecord.ID: Result<CKRecord, any Error>], deleteResults: [CKRecord.ID: Result<Void, any Error>]
    ) {
        let call = ModifyCall(
            saves: recordsToSave, deletes: recordIDsToDelete, policy: savePolicy, isAtomic: atomically)
        return try await results(of: call).byID()
    }

    private func results(of call: ModifyCall) async throws(CKError) -> [ModifyResult] {
        var all: [ModifyResult] = []
        try await service.modify(call) { all += $0 }
        return all
    }
}

// The same with completion handlers.
extension CKDatabase {
    /// The records that match a query, as many as the server gives at once; the older form of `fetch(withQuery:...)`.
    /// - Parameters:
    ///   - query: what to look for.
    ///   - zoneID: nil for every zone of the private database.
    ///   - completionHandler: gets the records, or the error.
    @preconcurrency
    public func perform(
        _ query: CKQuery, inZoneWith zoneID: CKRecordZone.ID?,
        completionHandler: @escaping @Sendable ([CKRecord]?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.perform(query, inZoneWith: zoneID) }
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
        Callbacks.complete(completionHandler) {
            try await self.records(
                matching: query, inZoneWith: zoneID, desiredKeys: desiredKeys, resultsLimit: resultsLimit)
        }
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
        Callbacks.complete(completionHandler) {
            try await self.records(
                continuingMatchFrom: queryCursor, desiredKeys: desiredKeys, resultsLimit: resultsLimit)
        }
    }

    /// Fetches a record.
    @preconcurrency
    public func fetch(
        withRecordID recordID: CKRecord.ID, completionHandler: @escaping @Sendable (CKRecord?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.record(for: recordID) }
    }

    /// Fetches records by their IDs.
    @preconcurrency
    public func fetch(
        withRecordIDs recordIDs: [CKRecord.ID], desiredKeys: [CKRecord.FieldKey]? = nil,
        completionHandler: @escaping @Sendable (Result<[CKRecord.ID: Result<CKRecord, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.records(for: recordIDs, desiredKeys: desiredKeys) }
    }

    /// Saves a record.
    @preconcurrency
    public func save(_ record: CKRecord, completionHandler: @escaping @Sendable (CKRecord?, (any Error)?) -> Void) {
        Callbacks.complete(completionHandler) { try await self.save(record) }
    }

    /// Deletes a record, whatever its version.
    @preconcurrency
    public func delete(
        withRecordID recordID: CKRecord.ID,
        completionHandler: @escaping @Sendable (CKRecord.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.deleteRecord(withID: recordID) }
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
        Callbacks.complete(completionHandler) {
            try await self.modifyRecords(
                saving: recordsToSave, deleting: recordIDsToDelete, savePolicy: savePolicy, atomically: atomically)
        }
    }
}
